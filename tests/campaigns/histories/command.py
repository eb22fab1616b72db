"""The command of a campaign of histories: seeds in lanes, what each has shown, and the total."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
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


def run(history: History, words: str, histories: int, length: int, kinds: tuple[str, ...]) -> int:
    """Read the arguments, run the histories, and print what they have shown; the exit code."""
    parser = argparse.ArgumentParser(description=words.splitlines()[0])
    parser.add_argument("--histories", type=int, default=histories)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=length)
    parser.add_argument("--kinds", type=lambda text: tuple(text.split(",")), default=kinds)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path, help="what is done there is not run again")
    parser.add_argument("--only", type=int, nargs="*", help="seeds to tell step by step")
    parser.add_argument("--java", help="a Python with PySpark, for Java as a writer and reader")
    parser.add_argument("--jars", default="", help="Iceberg's runtime and SQLite's driver")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="icesql-histories-"))
    folder.mkdir(parents=True, exist_ok=True)
    given.out = given.out or folder / "histories.jsonl"
    given.out.touch()
    if given.only:
        return int(any([*_told(history, given, folder, given.only)]))
    done = {each["seed"] for each in _lines(given.out)}
    seeds = [each for each in range(given.first, given.first + given.histories) if each not in done]
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    lanes = [
        context.Process(target=_lane, args=(history, number, given, folder, seeds))
        for number in range(given.lanes)
    ]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    print(f"{time.perf_counter() - start:.0f} s")
    return _report(_lines(given.out)) or int(any(each.exitcode for each in lanes))


def _lane(
    history: History, number: int, given: argparse.Namespace, folder: Path, seeds: list[int]
) -> None:
    own = seeds[number :: given.lanes]
    with given.out.open("a", encoding="utf-8") as file:
        for wrong in _told(history, given, folder / f"lane{number}", own, file):
            if wrong:
                print(wrong, flush=True)


def _told(
    history: History, given: argparse.Namespace, folder: Path, seeds: list[int], file: Any = None
) -> Any:
    """What is wrong with each history, or nothing; told in full, or noted in a file."""
    java = (given.java, given.jars) if given.java else None
    with closing(Writers(folder, java)) as writers:
        for seed in seeds:
            start = time.perf_counter()
            found = history(seed, writers, given.length, kind_of(seed, given.kinds))
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


def _report(found: list[dict[str, Any]]) -> int:
    for what in ("kinds", "others", "moments", "gateway"):
        counted: Counter[str] = sum((Counter(each[what]) for each in found), Counter())
        print(f"{what}: {dict(counted.most_common())}")
    foreign = Counter(text[:100] for each in found for text in each["foreign"])
    for text, count in foreign.most_common(10):
        print(f"{count} x {text}")
    wrong = sum(bool(each["faults"]) for each in found)
    print(f"{len(found)} histories, {wrong} wrong")
    return int(wrong > 0)
