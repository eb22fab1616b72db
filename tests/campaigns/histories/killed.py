"""A history whose statements run in processes that are killed; the judge checks after each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.histories.beside import TwoWriters
from tests.campaigns.histories.drawing import Statement
from tests.campaigns.histories.judge import run_texts
from tests.campaigns.histories.model import Fault, TableModel, told
from tests.campaigns.histories.moments import KILLS, Moments

_ROOT = str(Path(__file__).parents[3])
# Each process is forked from one that has imported what statements need.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.campaigns.histories.imported"])
_PATIENCE_SECONDS = 120


class Killed(Exception):
    """The process was killed before it could report how the statement ended."""


def perform(
    connect: dict[str, Any], texts: tuple[str, ...], wanted: list[tuple[str, int]], pipe: Any
) -> None:
    """Run statements in this process, which kills itself at a moment; send the error."""
    moments = Moments(lambda name: os.kill(os.getpid(), signal.SIGKILL), lambda: None)
    error = None
    with moments.installed(), icesql.connect(**connect) as con, moments.inside(wanted):
        pipe.send("begun")
        try:
            run_texts(con, texts)
        except icesql.Error as caught:
            error = caught
    pipe.send((error, moments.counts))


def started(*given: Any) -> tuple[Any, Any]:
    """A running process with ``perform``, and the pipe on which it reports."""
    os.environ["PYTHONPATH"] = _ROOT
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=perform, args=(*given, theirs))
    process.start()
    theirs.close()
    try:
        ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process ended with {process.exitcode}") from None
    return process, ours


class KilledHistory(TwoWriters):
    """No other writer; statements are killed, and the next ones see their leftovers."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._left: set[str] = set()

    def _drawn_own(self) -> Statement:
        if self.chance.random() < 0.4:
            self._other(self._drawn_other())
        if self.chance.random() < 0.08:
            return self.draw.copy(self.tables["t"], self._copy)
        if self.chance.random() < 0.08:
            return self.draw.maintain(self.tables["t"])
        return super()._drawn_own()

    @property
    def _copy(self) -> Path:
        return self.warehouse.folder / "copies" / self.namespace

    def _perform(self, statement: Statement) -> BaseException | None:
        wanted = self.moments.draw(self.chance, 1, KILLS)
        self._tell(f"OWN {statement.text}   at {wanted}")
        by_clock = self.chance.random() < 0.25
        process, pipe = started(
            self.warehouse.arguments(), statement.texts, [] if by_clock else wanted
        )
        if by_clock:
            time.sleep(self.chance.uniform(0, 0.15))
            process.kill()
        process.join(_PATIENCE_SECONDS)
        if process.exitcode == -signal.SIGKILL:
            if self.warehouse.kind == "rest":
                time.sleep(0.1)  # the server may still process a request
            self.outcome.kinds["killed"] += 1
            self.outcome.moments["clock" if by_clock else wanted[0][0]] += 1
            return Killed()
        if process.exitcode != 0:
            raise Fault(f"{statement.text}: the process ended with {process.exitcode}")
        error: BaseException | None = pipe.recv()[0]
        return error

    def _judge(self, statement: Statement, error: BaseException | None) -> None:
        if isinstance(error, Killed):
            self._tell(f"   -> killed, {'applied' if self._applied else 'not applied'}")
            self._judge_whole(statement)
        else:
            super()._judge(statement, error)
        for table in self.tables.values():
            if table.document is not None:
                self._check_files(table, statement, isinstance(error, Killed))
        with self.moments.apart(), self.warehouse.connect() as con:
            for table in self.tables.values():
                if table.document is not None:
                    self._check_past(con, table)
        self._check_copy()

    def _end(self) -> None:
        self._look_after(self.tables["t"])
        super()._end()

    def _check_files(self, table: TableModel, statement: Statement, killed: bool) -> None:
        """``remove_orphan_files`` removes what nothing needs; a whole statement leaves nothing."""
        found = self._orphans(table)
        left = {each for each in found - self._left if not each.endswith(".metadata.json")}
        if left and not killed:
            raise Fault(f"{statement.text} leaves {sorted(left)[:3]}")
        self.outcome.kinds["orphans found"] += len(found - self._left)
        if killed and self.chance.random() < 0.3:
            self._left |= found
            return  # the next statement meets them
        self._remove_orphans(table, statement)

    def _check_copy(self) -> None:
        """Check that the copy is complete, with rows that the table has had."""
        if not [*self._copy.glob("metadata/*.metadata.json")]:
            return
        with icesql.connect(settings={"caches": False, "prune": False}) as con:
            con.register_table("copied", str(self._copy))
            for (number,) in con.execute("SELECT snapshot_id FROM copied.snapshots").fetchall():
                found = con.execute(f"SELECT * FROM copied VERSION AS OF {number}").fetchall()
                self._check_known("the copy", number, told(found))


def crowd(arguments: dict[str, Any], writers: int, commits: int, kills: int) -> list[str]:
    """Let processes append to one table at once, and kill some; return what is wrong."""
    with icesql.connect(**arguments) as con:
        con.execute("CREATE SCHEMA IF NOT EXISTS crowd")
        con.execute(
            "CREATE OR REPLACE TABLE crowd.t (id BIGINT) TBLPROPERTIES ("
            "'commit.retry.num-retries' = '1000', 'commit.retry.min-wait-ms' = '1', "
            "'commit.retry.max-wait-ms' = '50', 'commit.manifest.min-count-to-merge' = '4', "
            "'write.metadata.previous-versions-max' = '5')"
        )
    texts = [
        tuple(f"INSERT INTO crowd.t VALUES ({10_000 * each + n})" for n in range(commits))
        for each in range(writers)
    ]
    children = [started(arguments, each, []) for each in texts]
    for process, _ in children[:kills]:
        time.sleep(0.2)
        process.kill()
    for process, _ in children:
        process.join(_PATIENCE_SECONDS)
    with icesql.connect(**arguments, settings={"caches": False}) as con:
        found = Counter(row for (row,) in con.execute("SELECT id FROM crowd.t").fetchall())
        counted = con.execute("SELECT count(*) FROM crowd.t").fetchone()
    wrong = [f"{each} is there {times} times" for each, times in found.items() if times > 1]
    for each in range(writers):
        own = [row % 10_000 for row in found if row // 10_000 == each]
        whole = len(own) if each < kills else commits
        if sorted(own) != [*range(whole)]:
            wrong.append(f"of writer {each} there are {sorted(own)}")
    if counted != (len(found),):
        wrong.append(f"{counted} rows by count, {len(found)} by reading")
    return wrong
