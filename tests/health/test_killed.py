"""A run that is killed anywhere loses no row, and goes on with what is not finished."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from icesql.errors import CommitConflictError
from tests.health.lake import DAMAGED, QUIET, TROUBLED, build, connect, contents
from tests.processes import ran

# A run of which each write to the disk is a step; the process ends at one of them.
CHILD = """
import os, sys
from tests.health.lake import connect
from pathlib import Path
last, folder, history = int(sys.argv[1]), sys.argv[2], sys.argv[3]
step = 0
def fsync(file):
    global step
    step += 1
    if step == last:
        os._exit(9)
os.fsync = fsync
with connect(Path(folder)) as con:
    report = con.maintain(history=history)
print(step)
"""


def child(last: int, folder: Path, history: Path) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, "-c", CHILD, str(last), str(folder), str(history)],
        cwd=Path(__file__).parents[2], timeout=600,
    )  # fmt: skip


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    lake, history = build(tmp_path / "wh"), tmp_path / "history"
    before = contents(lake)
    chosen, kills = random.Random(26), 0
    while True:
        # Once for each part of the work; a run gets further than the one before it.
        done = child(chosen.randrange(3, 12) if kills < 5 else -1, lake, history)
        assert done.returncode in (0, 9), done.stderr
        assert contents(lake) == before
        if done.returncode == 0:
            break
        kills += 1
    assert kills
    lines = [json.loads(line) for line in history.read_text().splitlines() if line.startswith("{")]
    assert len({each["run"] for each in lines}) == 1
    finished = [each["table"] for each in lines if each.get("status") in ("done", "nothing")]
    assert len(finished) == len(set(finished)) == len(TROUBLED | QUIET)
    with connect(lake, caches="off") as con:
        after = con.maintain()
    assert {each.table for each in after.tables if each.status != "nothing"} == {DAMAGED}


def test_a_writer_beside_it_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "wh"
    folder.mkdir()
    with connect(folder) as con:
        con.execute("CREATE SCHEMA ns")
        con.execute(
            "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
            "'commit.retry.num-retries' = '50', 'commit.retry.min-wait-ms' = '1')"
        )
    expected: set[int] = set()
    failures: list[Exception] = []
    is_over = threading.Event()

    def write() -> None:
        try:
            with connect(folder) as con:
                for n in range(15):
                    con.execute(
                        f"INSERT INTO ns.t SELECT range FROM range({10 * n}, {10 * n + 10})"
                    )
                    expected.update(range(10 * n, 10 * n + 10))
                    while True:
                        try:
                            con.execute(f"DELETE FROM ns.t WHERE id = {5 * n}")
                            break
                        except CommitConflictError:
                            continue  # its file was compacted: the delete is planned again
                    expected.discard(5 * n)
        except Exception as error:
            failures.append(error)
        finally:
            is_over.set()

    writer = threading.Thread(target=write)
    writer.start()
    with connect(folder) as con:
        while not is_over.is_set():
            con.maintain("ns.t")
            time.sleep(0.05)
        writer.join()
        assert not failures
        con.maintain("ns.t")
        assert con.maintain("ns.t").exit_code == 0
        assert con.maintain("ns.t").tables[0].status == "nothing"
        assert {row[0] for row in con.execute("SELECT id FROM ns.t").fetchall()} == expected
        assert con.execute("SELECT count(*) FROM ns.t").fetchone() == (len(expected),)
