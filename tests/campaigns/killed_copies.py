"""Copies killed at random moments, beside a writer that expires snapshots: always a whole table.

    python killed_copies.py [--rounds 50] [--seed 1]

A writer inserts, deletes by position, compacts and expires without a pause. Copies of the table
start, are killed, fail where a file was expired under them, and go on. After each the copy is read
at every snapshot, and the rows of those that the table has had are compared with what it gave then. Prints
what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from icesql import errors

COPY = """
import os, sys
os.fsync = lambda file: None
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.context import QueryContext
from icesql.maintain.relocation.copy import CopyRequest, copy_table
table = DirectoryCatalog(sys.argv[1]).load(("ns", "t"))
try:
    copy_table(table, CopyRequest(sys.argv[2], since=sys.argv[3] or None), QueryContext())
except errors.SnapshotNotFoundError:
    sys.exit(4)
except errors.Error as error:
    print(error)
    sys.exit(3)
"""


class Writer(threading.Thread):
    """Commits until it is told to stop; ``rows`` are those of each snapshot when it was made."""

    def __init__(self, warehouse: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self._warehouse, self._random = warehouse, random.Random(seed)
        self.stopped = threading.Event()
        self.rows: dict[int, list[Any]] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        """Write, and keep what it wrote."""
        try:
            self._write()
        except BaseException as error:
            self.error = error

    def _write(self) -> None:
        with icesql.connect(warehouse=str(self._warehouse)) as con:
            number = 0
            while not self.stopped.is_set():
                number += 1
                match self._random.randrange(8):
                    case 0:
                        con.execute("CALL system.rewrite_data_files('ns.t')")
                    case 1:
                        con.execute(
                            "CALL system.expire_snapshots('ns.t', older_than => now(), "
                            "retain_last => 3)"
                        )
                    case 2 | 3:
                        con.execute(f"DELETE FROM ns.t WHERE id % 17 = {number % 17}")
                    case _:
                        con.execute(
                            f"INSERT INTO ns.t SELECT range + {number * 100} FROM range(50)"
                        )
                head = con.execute("SELECT snapshot_id FROM ns.t.refs").fetchone()
                if head is not None and head[0] not in self.rows:
                    self.rows[head[0]] = sorted(con.execute("SELECT id FROM ns.t").fetchall())


def seen(folder: Path) -> dict[int, list[Any]]:
    with icesql.connect(settings={"caches": False, "prune": False}) as con:
        con.register_table("t", str(folder))
        ids = [row[0] for row in con.execute("SELECT snapshot_id FROM t.snapshots").fetchall()]
        return {
            each: sorted(con.execute(f"SELECT id FROM t VERSION AS OF {each}").fetchall())
            for each in ids
        }


def campaign(rounds: int, seed: int, folder: Path) -> int:
    os.fsync = lambda file: None
    chance, wrong = random.Random(seed), 0
    outcomes: dict[str, int] = {}
    warehouse, target = folder / "wh", folder / "copy"
    warehouse.mkdir()
    with icesql.connect(warehouse=str(warehouse)) as con:
        con.execute("CREATE SCHEMA ns")
        con.execute(
            "CREATE TABLE ns.t (id BIGINT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
            f"'format-version' = '{2 + seed % 2}')"
        )
        con.execute("INSERT INTO ns.t SELECT range FROM range(1000)")
    writer = Writer(warehouse, seed)
    writer.start()
    for number in range(rounds):
        since = chance.choice(["", "latest"])
        arguments = [sys.executable, "-c", COPY, str(warehouse), str(target), since]
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        wait = chance.choice([None, chance.uniform(0.5, 3)])
        try:
            told = child.communicate(timeout=wait)[0]
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            told = child.communicate()[0]
        code = {0: "copied", 3: "failed", 4: "not yet", -9: "killed"}.get(child.returncode, "odd")
        outcomes[code] = outcomes.get(code, 0) + 1
        if code == "odd" or (code == "failed" and "the next copy goes on" not in told):
            wrong += 1
            print(number, code, told)
        if not [*target.glob("metadata/*.metadata.json")]:
            continue
        try:
            found = seen(target)
        except errors.Error as error:
            wrong += 1
            print(number, code, "the copy cannot be read:", error)
            continue
        time.sleep(0.2)  # a snapshot that was made is noted a moment later
        for snapshot, rows in found.items():
            if snapshot in writer.rows and writer.rows[snapshot] != rows:
                wrong += 1
                print(number, code, snapshot, len(rows), len(writer.rows[snapshot]))
    writer.stopped.set()
    writer.join()
    if writer.error is not None:
        wrong += 1
        print("the writer:", writer.error)
    print(f"{rounds} copies of {len(writer.rows)} snapshots: {outcomes}, {wrong} differences")
    return wrong


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(bool(campaign(given.rounds, given.seed, Path(folder))))


if __name__ == "__main__":
    main()
