"""Run a campaign: seeds in parallel lanes, the outcome of each, and the total."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import duckdb

from tests.campaigns.histories.catalogs import KINDS, Warehouse
from tests.campaigns.histories.judge import Outcome
from tests.campaigns.histories.others import PyIceberg


class Writers:
    """The catalogs, and the other writer of each, as histories need them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._known: dict[str, tuple[Warehouse, PyIceberg | None]] = {}

    def of(self, kind: str) -> tuple[Warehouse, PyIceberg | None]:
        """A warehouse, and PyIceberg, which has no catalog for folders."""
        if kind not in self._known:
            made = self._stack.enter_context(closing(Warehouse(kind, self.folder / kind)))
            made.connect().close()  # creates the catalog
            theirs = None
            if kind != "folder":
                theirs = self._stack.enter_context(closing(PyIceberg(made)))
            self._known[kind] = made, theirs
        return self._known[kind]

    def close(self) -> None:
        """End all of them."""
        self._stack.close()


# Runs a seed with a length in a catalog of a kind.
History = Callable[[int, Writers, int, str], Outcome]


def one(made: Any, seed: int, writers: Writers, length: int, kind: str) -> Outcome:
    """The outcome of one history of a class, after ``length`` statements."""
    warehouse, theirs = writers.of(kind)
    found: Outcome = made(seed, warehouse, pyiceberg=theirs).run(length)
    if not found.faults:
        warehouse.forget(f"h{seed}")
    return found


def world(made: Any, seed: int, writers: Writers, length: int, kind: str) -> Outcome:
    """The outcome of ``length`` queries to a world of a class.

    After a fatal error of DuckDB its tables are lost, and the next world starts.
    """
    with tempfile.TemporaryDirectory(dir=writers.folder) as folder:
        with closing(made(Path(folder), seed)) as asked, suppress(duckdb.FatalException):
            asked.ask(length)
        return Outcome(seed, kind, 2, asked.wrong, kinds=asked.found)


def run(
    history: History,
    *,
    histories: int,
    length: int,
    first: int = 0,
    kinds: str = ",".join(KINDS),
    lanes: int = 2,
    folder: str = "",
    out: str = "",
    only: tuple[int, ...] = (),
) -> bool:
    """Run histories, print their outcomes, and return whether anything was wrong.

    Seeds that the file ``out`` has are not run again; seeds of ``only`` are printed step by step.
    """
    place = Path(folder or tempfile.mkdtemp(prefix="icesql-histories-"))
    place.mkdir(parents=True, exist_ok=True)
    file = Path(out) if out else place / "histories.jsonl"
    file.touch()
    done = {each["seed"] for each in _lines(file)}
    seeds = only or [each for each in range(first, first + histories) if each not in done]
    start = time.perf_counter()
    chosen = length, kinds.split(","), bool(only), file
    processes = [
        multiprocessing.get_context("spawn").Process(
            target=_lane, args=(history, *chosen, place / f"lane{number}", seeds[number::lanes])
        )
        for number in range(lanes)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    print(f"{time.perf_counter() - start:.0f} s")
    return _report(_lines(file)) or any(each.exitcode for each in processes)


def _lane(
    history: History, length: int, kinds: Sequence[str], shown: bool, out: Path, folder: Path,
    seeds: Sequence[int],
) -> None:  # fmt: skip
    """Run histories one after another in a separate process, which records their outcomes."""
    folder.mkdir(exist_ok=True)
    with closing(Writers(folder)) as writers, out.open("a", encoding="utf-8") as file:
        for seed in seeds:
            start = time.perf_counter()
            found = history(seed, writers, length, kinds[seed % len(kinds)])
            if shown:
                print("\n".join([*found.told, *found.foreign]), flush=True)
            for fault in found.faults:
                print(f"WRONG seed {seed} ({found.kind}, v{found.version}): {fault}", flush=True)
            told = {"told": found.told * bool(found.faults)}
            seconds = {"seconds": round(time.perf_counter() - start, 2)}
            file.write(json.dumps(vars(found) | told | seconds) + "\n")
            file.flush()


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text(encoding="utf-8").splitlines()]


def _report(found: list[dict[str, Any]]) -> bool:
    for what in ("kinds", "others", "moments", "gateway"):
        counted: Counter[str] = sum((Counter(each[what]) for each in found), Counter())
        if counted:
            print(f"{what}: {dict(counted.most_common())}")
    foreign = Counter(text[:100] for each in found for text in each["foreign"])
    for text, count in foreign.most_common(10):
        print(f"{count} x {text}")
    wrong = sum(bool(each["faults"]) for each in found)
    print(f"{len(found)} histories, {wrong} wrong")
    return wrong > 0
