"""What runs a campaign of histories: seeds in lanes, what each has shown, and the total."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

KINDS = ("folder", "sqlite", "rest")


class Writers:
    """The catalogs, and the other writers of each, as histories need them."""

    def __init__(self, folder: Path, java: tuple[str, str] | None = None) -> None:
        self.folder, self._java = folder, java
        self._stack = ExitStack()
        self._known: dict[str, tuple[Any, Any, Any]] = {}

    def of(self, kind: str) -> tuple[Any, Any, Any]:
        """A warehouse, PyIceberg and Java."""
        from tests.campaigns.histories.catalogs import Warehouse
        from tests.campaigns.histories.others import Java, PyIceberg

        if kind not in self._known:
            made = self._stack.enter_context(closing(Warehouse(kind, self.folder / kind)))
            made.connect().close()  # which makes the catalog
            theirs = java = None
            if kind != "folder":
                theirs = self._stack.enter_context(closing(PyIceberg(made)))
            if self._java is not None:
                java = self._stack.enter_context(closing(Java(*self._java, made)))
            self._known[kind] = made, theirs, java
        return self._known[kind]

    def close(self) -> None:
        """End all of them."""
        self._stack.close()


# The outcome of a history of a seed and a length, in a catalog of a kind.
History = Callable[[int, Writers, int, str], Any]


def one(made: str, seed: int, writers: Writers, length: int, kind: str) -> Any:
    """The outcome of one history of a class, ``module:Class`` of this folder."""
    module, _, name = made.partition(":")
    warehouse, theirs, java = writers.of(kind)
    history = getattr(import_module(f"tests.campaigns.histories.{module}"), name)
    found = history(seed, warehouse, pyiceberg=theirs, java=java).run(length)
    if not found.faults:
        warehouse.forget(f"h{seed}")
    return found


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
    java: str = "",
    jars: str = "",
) -> bool:
    """Run histories, print what they have shown, and tell whether anything was wrong.

    What is done in the file ``out`` is not run again; seeds of ``only`` are told step by step.
    ``java`` is a Python with PySpark, for Java as a writer and reader, ``jars`` Iceberg's and SQLite's.
    """
    place = Path(folder or tempfile.mkdtemp(prefix="icesql-histories-"))
    place.mkdir(parents=True, exist_ok=True)
    chosen = tuple(kinds.split(","))
    lane = Lane(history, length, chosen, (java, jars) if java else None)
    if only:
        return any([*lane.told(place, only)])
    file = Path(out) if out else place / "histories.jsonl"
    file.touch()
    done = {each["seed"] for each in _lines(file)}
    seeds = [each for each in range(first, first + histories) if each not in done]
    start = time.perf_counter()
    processes = [
        multiprocessing.get_context("spawn").Process(
            target=lane.run, args=(place / f"lane{number}", seeds[number::lanes], file)
        )
        for number in range(lanes)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    print(f"{time.perf_counter() - start:.0f} s")
    return _report(_lines(file)) or any(each.exitcode for each in processes)


@dataclass
class Lane:
    """Histories one after another, in a process of its own."""

    history: History
    length: int
    kinds: tuple[str, ...]
    java: tuple[str, str] | None

    def run(self, folder: Path, seeds: Sequence[int], out: Path) -> None:
        """Note what they have shown."""
        with out.open("a", encoding="utf-8") as file:
            for wrong in self.told(folder, seeds, file):
                if wrong:
                    print(wrong, flush=True)

    def told(self, folder: Path, seeds: Sequence[int], file: Any = None) -> Iterator[str]:
        """What is wrong with each history, or nothing; told in full, or noted in a file."""
        with closing(Writers(folder, self.java)) as writers:
            for seed in seeds:
                start = time.perf_counter()
                found = self.history(seed, writers, self.length, kind_of(seed, self.kinds))
                told = vars(found) | {"seconds": round(time.perf_counter() - start, 2)}
                if file is None:
                    print("\n".join([*found.told, *found.foreign, *found.faults]), flush=True)
                else:
                    shown = told | {"told": found.told if found.faults else []}
                    file.write(json.dumps(shown) + "\n")
                    file.flush()
                place = f"seed {seed} ({found.kind}, v{found.version})"
                yield f"WRONG {place}: {found.faults[0][:600]}" if found.faults else ""


def kind_of(seed: int, kinds: tuple[str, ...] = KINDS) -> str:
    """The catalog of a history."""
    return kinds[seed % len(kinds)]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text(encoding="utf-8").splitlines()]


def _report(found: list[dict[str, Any]]) -> bool:
    for what in ("kinds", "others", "moments", "gateway"):
        counted: Counter[str] = sum((Counter(each[what]) for each in found), Counter())
        print(f"{what}: {dict(counted.most_common())}")
    foreign = Counter(text[:100] for each in found for text in each["foreign"])
    for text, count in foreign.most_common(10):
        print(f"{count} x {text}")
    wrong = sum(bool(each["faults"]) for each in found)
    print(f"{len(found)} histories, {wrong} wrong")
    return wrong > 0
