"""Two writers of one table: another commits inside of each statement of icesql.

    python tests/campaigns/two_writers.py [--histories 2000] [--first 0] [--length 6]
        [--kinds folder,sqlite,rest] [--lanes 2] [--out F] [--only N …]
        [--java PYTHON --jars A.jar:B.jar]

A history is a table (of two over REST) with random properties, and statements of icesql: rows,
transactions, maintenance, branches, columns. Inside of each, at random moments (planning, files
written, before an attempt, between an attempt and the look at its outcome, clean-up …), another
writer commits: icesql in another connection, equality and position deletes or vectors as Flink
writes them, PyIceberg (no folders, no version 3; where there are equality deletes it appends only,
for it writes the rows that they delete anew), and Java where ``--java`` names a Python with
PySpark. REST is behind a gateway that loses, repeats and delays what is sent.

A model applies what was committed, in its order, by what the statement's isolation allows (the
table in the manual's chapter Write). A statement that is planned again has to be what it is after
the commits before that. After each commit and each step the table has the model's rows, and in
version 3 row ids that are unique and stay; at the end so has every snapshot that is retained, by
PyIceberg and Java too. What was refused has changed nothing. One seed gives one history. Exits with
1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

KINDS = ("folder", "sqlite", "rest")


class Writers:
    """The catalogs, and the other writers of each, as histories need them."""

    def __init__(self, folder: Path, java: tuple[str, str] | None = None) -> None:
        self._folder, self._java = folder, java
        self._stack = ExitStack()
        self._known: dict[str, tuple[Any, Any, Any]] = {}

    def of(self, kind: str) -> tuple[Any, Any, Any]:
        """A warehouse, PyIceberg and Java."""
        from tests.campaigns.writers.catalogs import Warehouse
        from tests.campaigns.writers.others import Java, PyIceberg

        if kind not in self._known:
            made = self._stack.enter_context(closing(Warehouse(kind, self._folder / kind)))
            made.connect().close()  # which makes the catalog
            theirs = None
            if kind != "folder":
                theirs = self._stack.enter_context(closing(PyIceberg(made)))
            java = None
            if self._java is not None:
                java = self._stack.enter_context(closing(Java(*self._java, made)))
            self._known[kind] = made, theirs, java
        return self._known[kind]

    def close(self) -> None:
        """End all of them."""
        self._stack.close()


def kind_of(seed: int, kinds: tuple[str, ...] = KINDS) -> str:
    """The catalog of a history."""
    return kinds[seed % len(kinds)]


def history(seed: int, writers: Writers, length: int, kinds: tuple[str, ...] = KINDS) -> Any:
    """The outcome of one history."""
    from tests.campaigns.writers.history import History

    warehouse, theirs, java = writers.of(kind_of(seed, kinds))
    found = History(seed, warehouse, pyiceberg=theirs, java=java).run(length)
    if not found.faults:
        warehouse.forget(f"h{seed}")
    return found


def lane(number: int, given: argparse.Namespace, folder: Path, seeds: list[int]) -> None:
    java = (given.java, given.jars) if given.java else None
    with closing(Writers(folder / f"lane{number}", java)) as writers:
        for seed in seeds[number :: given.lanes]:
            start = time.perf_counter()
            found = history(seed, writers, given.length, given.kinds)
            told = {
                "seed": seed, "kind": found.kind, "version": found.version,
                "faults": found.faults, "foreign": found.foreign, "kinds": found.kinds,
                "others": found.others, "moments": found.moments, "gateway": found.gateway,
                "seconds": round(time.perf_counter() - start, 2),
                "told": found.told if found.faults else [],
            }  # fmt: skip
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")
            if found.faults:
                print(f"WRONG seed {seed} ({found.kind}, v{found.version}): {found.faults[0][:600]}",
                      flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--kinds", type=lambda text: tuple(text.split(",")), default=KINDS)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--java", help="a Python with PySpark, for Java as a writer and reader")
    parser.add_argument("--jars")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="icesql-two-writers-"))
    folder.mkdir(parents=True, exist_ok=True)
    given.out = given.out or folder / "histories.jsonl"
    given.out.touch()
    if given.only:
        return only(given, folder)
    done = {json.loads(each)["seed"] for each in given.out.read_text().splitlines()}
    seeds = [each for each in range(given.first, given.first + given.histories) if each not in done]
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    lanes = [
        context.Process(target=lane, args=(number, given, folder, seeds))
        for number in range(given.lanes)
    ]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    found = [json.loads(each) for each in given.out.read_text().splitlines()]
    return report(found, time.perf_counter() - start, any(each.exitcode for each in lanes))


def only(given: argparse.Namespace, folder: Path) -> int:
    """These histories alone, told step by step."""
    java = (given.java, given.jars) if given.java else None
    wrong = 0
    with closing(Writers(folder, java)) as writers:
        for seed in given.only:
            found = history(seed, writers, given.length, given.kinds)
            print(f"seed {seed} ({found.kind}, v{found.version})")
            print("\n".join([*found.told, *found.foreign, *found.faults]))
            wrong += bool(found.faults)
    return int(bool(wrong))


def report(found: list[dict[str, Any]], seconds: float, broken: bool) -> int:
    """Print what the histories have shown; the exit code."""
    for what in ("kinds", "others", "moments", "gateway"):
        counted: Counter[str] = sum((Counter(each[what]) for each in found), Counter())
        print(f"{what}: {dict(counted.most_common())}")
    foreign = Counter(text[:100] for each in found for text in each["foreign"])
    for text, count in foreign.most_common(10):
        print(f"{count} x {text}")
    wrong = [each for each in found if each["faults"]]
    print(f"{len(found)} histories, {len(wrong)} wrong, in {seconds:.0f} s")
    return int(bool(wrong) or broken)


if __name__ == "__main__":
    raise SystemExit(main())
