"""Time the planning of large tables against PyIceberg in the same run.

    python tests/benchmarks/planning.py [--files 1000,10000,50000] [--rounds 5]

"cold" is a whole process, from start to exit: load the metadata file and plan once. "warm" loads the
table and plans again in one process, decoding every manifest anew; "kept" is the same with the
cache of decoded manifests that a session has. Milliseconds, medians; ratios are icesql to
PyIceberg, so below 1 is faster. Both must find the same files.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

FILTERS = ("none", "one day", "one id")


def plan_with_icesql(metadata: str, which: str, cache: object | None = None) -> int:
    """The number of files that icesql plans."""
    from icesql.catalog.open import open_table
    from icesql.context import QueryContext
    from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
    from icesql.scan.planner import plan
    from icesql.scan.table_scan import TableScan

    table = open_table(metadata, cache=cache)  # type: ignore[arg-type]
    low, high = wanted(metadata, which)
    row_filter: Predicate = ALWAYS_TRUE
    if which == "one day":
        ts = Term(2, "ts")
        row_filter = Leaf(Operation.GT_EQ, ts, low) & Leaf(Operation.LT, ts, high)
    elif which == "one id":
        row_filter = Leaf(Operation.EQ, Term(1, "id"), low)
    schema = table.metadata.schema
    scan = TableScan(table, table.metadata.current_snapshot, schema, schema, row_filter)
    return len(plan(scan, QueryContext()).files)


def plan_with_pyiceberg(metadata: str, which: str) -> int:
    """The number of files that PyIceberg plans."""
    from pyiceberg.expressions import AlwaysTrue, And, EqualTo, GreaterThanOrEqual, LessThan
    from pyiceberg.expressions.literals import TimestampLiteral
    from pyiceberg.table import StaticTable

    low, high = wanted(metadata, which)
    row_filter: object = AlwaysTrue()
    if which == "one day":
        row_filter = And(
            GreaterThanOrEqual("ts", TimestampLiteral(low)), LessThan("ts", TimestampLiteral(high))
        )
    elif which == "one id":
        row_filter = EqualTo("id", low)
    table = StaticTable.from_metadata(metadata)
    return sum(1 for _ in table.scan(row_filter=row_filter).plan_files())  # type: ignore[arg-type]


def wanted(metadata: str, which: str) -> tuple[int, int]:
    """The bounds of the filter: a day in the middle of the table, or the id of one row."""
    files = int(Path(metadata).parents[1].name)
    if which == "one day":
        micros = 86_400_000_000
        day = 19_000 + files // 200
        return day * micros, (day + 1) * micros
    return files // 2 * 10_000 + 5, 0


PLANNERS: dict[str, Callable[[str, str], int]] = {
    "icesql": plan_with_icesql,
    "pyiceberg": plan_with_pyiceberg,
}


def main() -> None:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", default="1000,10000,50000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", help="folder to keep the generated tables in")
    parser.add_argument("--once", nargs=3, metavar=("PLANNER", "METADATA", "FILTER"))
    arguments = parser.parse_args()
    if arguments.once:
        planner, metadata, which = arguments.once
        print(PLANNERS[planner](metadata, which))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        print(f"{'files':>6} {'filter':8} {'':5} {'icesql':>8} {'pyiceberg':>10} {'ratio':>6}")
        for files in map(int, arguments.files.split(",")):
            measure(folder, files, arguments.rounds)


def measure(folder: Path, files: int, rounds: int) -> None:
    """Print the lines of one table."""
    from generate_metadata import write_table

    from icesql.storage.cache import BoundedCache

    target = folder / str(files) / "metadata" / "v1.metadata.json"
    metadata = str(target if target.exists() else write_table(folder / str(files), files))
    for which in FILTERS:
        found = {name: planner(metadata, which) for name, planner in PLANNERS.items()}
        assert len(set(found.values())) == 1, f"{which}: {found}"
        rounds_here = max(1, rounds // 2) if files > 10_000 else rounds
        cache = BoundedCache()
        plan_with_icesql(metadata, which, cache)
        cold = {name: partial(run_cold, name, metadata, which) for name in PLANNERS}
        warm = {name: partial(planner, metadata, which) for name, planner in PLANNERS.items()}
        kept = {**warm, "icesql": partial(plan_with_icesql, metadata, which, cache)}
        for label, tasks in (("cold", cold), ("warm", warm), ("kept", kept)):
            times = interleaved(tasks, rounds_here)
            ours, theirs = times["icesql"], times["pyiceberg"]
            print(
                f"{files:6} {which:8} {label:5} {ours:8.1f} {theirs:10.1f} {ours / theirs:6.2f}",
                flush=True,
            )


def run_cold(name: str, metadata: str, which: str) -> None:
    """Plan once in a process of its own."""
    command = [sys.executable, __file__, "--once", name, metadata, which]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each task; rounds alternate, so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(each) for name, each in times.items()}


if __name__ == "__main__":
    main()
