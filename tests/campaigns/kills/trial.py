"""One statement on one catalog: how long it takes, and what is there after it was killed."""

from __future__ import annotations

import mmap
import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.campaigns.kills.forks import Ended, Job, Moment, serve
from tests.campaigns.kills.lake import Lake
from tests.campaigns.kills.slow import LENGTH, Marks, delays_for
from tests.campaigns.kills.statements import Statement

_TRIES = 5
_ALL_READ = 4


class Forker:
    """The process that forks. Made before this one has threads."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, LENGTH)
        self.marks = Marks(memory)
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, memory), daemon=True)
        self._process.start()
        theirs.close()
        self._warm = False

    def run(self, job: Job) -> Ended:
        """Run a job to its end, or kill it."""
        self._pipe.send(job)
        ended: Ended = self._pipe.recv()
        return ended

    def warm(self, job: Job) -> None:
        """Let it import what a job needs."""
        if not self._warm:
            told = Path(job.errors).with_suffix(".modules")
            self.run(Job(job.connect, job.sql, {}, None, str(told)))
            self._pipe.send(told.read_text().split("\n"))
            self._pipe.recv()
            self._warm = True

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()
        self._pipe.close()


class Point(Struct, frozen=True):
    """What came of one kill. ``wrong`` says what should not be."""

    statement: str
    kind: str
    number: int
    killed: bool
    phase: str
    after_seconds: float
    of_seconds: float
    state: str
    orphans: int
    removed: int
    wrong: tuple[str, ...]


class Trial:
    """A statement that is killed on a lake again and again; it lasts ``seconds`` or longer.

    With ``rows_alone`` it lasts as long as its rows need: nothing waits.
    """

    def __init__(
        self,
        lake: Lake,
        statement: Statement,
        forker: Forker,
        seconds: float,
        rows_alone: bool = False,
    ) -> None:
        self.lake, self.statement, self._forker = lake, statement, forker
        self._errors = str(lake.live.parent / "error.txt")
        lake.restore()
        before, self._known = lake.made, lake.snapshots
        job = Job(lake.connect, statement.sql, {}, None, self._errors)
        forker.warm(job)
        lake.restore()
        counted = self._run(job)
        after = lake.rows()
        lake.run(statement.sql)
        self._rows = {"before": before, "after": after, "twice": lake.rows()}
        if statement.changes_rows == (before == after):
            raise AssertionError(f"{statement.name} leaves {after} of {before}")
        self._delays = delays_for(counted.counts, 0.0)
        self._steps = counted.counts
        self.seconds = counted.seconds
        # On a busy machine it lasts as long anyway, most of it before the first file.
        wanted = 0.0 if rows_alone else seconds
        while wanted and (not any(self._delays.values()) or self.seconds < seconds):
            self._delays = delays_for(counted.counts, wanted)
            lake.restore()
            self.seconds = self._run(self._slow(None)).seconds
            wanted *= 1.3

    def _slow(self, kill: Moment | None) -> Job:
        return Job(self.lake.connect, self.statement.sql, self._delays, kill, self._errors)

    def _run(self, job: Job) -> Ended:
        server = self.lake.server
        if server is not None:
            server.pause = lambda: self._pause(job)
        ended = self._forker.run(job)
        if server is not None:
            server.wait()
            server.pause = None
        if not ended.killed and ended.status:
            raise AssertionError(Path(self._errors).read_text())
        return ended

    def _pause(self, job: Job) -> None:
        self._forker.marks.count("swap")
        time.sleep(job.delays.get("swap", 0.0))

    def point(self, number: int, seed: int) -> Point:
        """Kill it once, at a random time, and look."""
        chance = random.Random(f"{seed} {self.statement.name} {self.lake.kind} {number}")
        for _ in range(_TRIES):
            moment = self._moment(chance)
            self.lake.restore()
            ended = self._run(self._slow(moment))
            if ended.killed:
                break  # it did not end before
        wrong: list[str] = []
        state, orphans, removed = "?", -1, -1
        try:
            state, orphans, removed = self._looked_at(number, wrong)
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
        return Point(
            self.statement.name, self.lake.kind, number, ended.killed, ended.phase,
            round(ended.seconds, 3), round(self.seconds, 3), state, orphans, removed, tuple(wrong),
        )  # fmt: skip

    def _moment(self, chance: random.Random) -> Moment:
        """By the clock; or, as that goes otherwise on a busy machine, by the steps of a phase."""
        if chance.random() < 0.2 or not any(self._delays.values()):
            return Moment(chance.uniform(0, self.seconds))
        phase = chance.choice([*self._steps])
        step = chance.randint(1, self._steps[phase])
        return Moment(chance.uniform(0, self._delays[phase]), phase, step)

    def _looked_at(self, number: int, wrong: list[str]) -> tuple[str, int, int]:
        lake, rows = self.lake, self._rows
        found, versions = lake.read()
        state = self._state(found, versions, wrong)
        if lake.is_refused():
            # Metadata that the catalog never took could be another table's, until a commit is newer.
            lake.run(("ALTER TABLE ns.t SET TBLPROPERTIES ('touched' = 'true')",))
        expected, needed = lake.orphans(), lake.needed()
        removed = lake.remove_orphans()
        if removed != expected:
            wrong.append(f"orphans not found {sorted(expected - removed)[:3]}")
            wrong.append(f"found that are none {sorted(removed - expected)[:3]}")
        self._judge_missing(needed - lake.files(), wrong)
        if lake.orphans():
            wrong.append(f"orphans left {sorted(lake.orphans())[:3]}")
        # That their files are there is known; a part of the times all are read again.
        read = lake.read() if number % _ALL_READ == 0 else (lake.rows(), versions)
        if read != (found, versions):
            wrong.append("the table reads differently after remove_orphan_files")
        lake.run(self.statement.sql)
        again, wanted = lake.rows(), rows["twice" if found == rows["after"] else "after"]
        if again != wanted:
            wrong.append(f"run again it leaves {again}, not {wanted}")
        left = {each for each in lake.orphans() if not each.endswith(".metadata.json")}
        if left:
            wrong.append(f"run again it leaves orphans {sorted(left)[:3]}")
        return state, len(expected), len(removed)

    def _state(self, found: str, versions: dict[int, str], wrong: list[str]) -> str:
        rows = self._rows
        if found not in (rows["before"], rows["after"]):
            wrong.append(f"rows {found}, before {rows['before']}, after {rows['after']}")
        for each, held in versions.items():
            if each in self._known:
                if held != self._known[each]:
                    wrong.append(f"snapshot {each} has other rows than before")
            elif self.statement.name != "transaction" and held not in (rows["after"], found):
                wrong.append(f"new snapshot {each} has rows {held}")
        if rows["before"] != rows["after"]:
            return "before" if found == rows["before"] else "after"
        if len(versions) == len(self._known):
            return "before"
        new = len([each for each in versions if each not in self._known])
        return f"after {new} commits" if new > 1 else "after"

    def _judge_missing(self, missing: set[str], wrong: list[str]) -> None:
        """The log may name old metadata files that are gone; all else has to be there."""
        gone = {each for each in missing if not each.endswith(".metadata.json")}
        if gone:
            wrong.append(f"files of the table are gone: {sorted(gone)[:3]}")


def told(point: Point) -> dict[str, Any]:
    """A point as JSON has it."""
    return {each: getattr(point, each) for each in point.__struct_fields__}
