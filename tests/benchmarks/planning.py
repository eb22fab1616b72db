"""Time the planning of large tables against PyIceberg and Polars in the same run.

    pip install polars polars_iceberg
    python tests/benchmarks/planning.py [--files 1000,10000,50000] [--rounds 5] [--filters "one id"]
        [--columns 20]

"cold" is a whole process, from start to exit: load the metadata file and plan once; "disk" is the
same with icesql's cache folder, which another process has filled. "warm" loads the
table and plans again in one process, decoding every manifest anew; "kept" is the same with the
cache of decoded manifests that a session has, which the others do not have. Milliseconds, medians,
wall and CPU (on a busy machine the CPU says more, a planner of many threads gets more of it);
ratios are icesql to each, so below 1 is faster. icesql and PyIceberg must find the same files;
Polars, with its native plugin, plans and then fails to open the data files, which do not exist. The
last columns are MiB by which a process grew over its imports, planning once and keeping nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

SIZED = ("warm", "wall")
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


def plan_with_polars(metadata: str, which: str) -> int:
    """1 once Polars' plugin has planned: it has no way to ask for the files alone."""
    import polars

    low, high = wanted(metadata, which)
    frame = polars.scan_iceberg(metadata)
    if which == "one day":
        ts = polars.col("ts").cast(polars.Int64)
        frame = frame.filter((ts >= low) & (ts < high))
    elif which == "one id":
        frame = frame.filter(polars.col("id") == low)
    try:
        frame.collect()
    except (FileNotFoundError, polars.exceptions.ComputeError):
        return 1
    raise AssertionError("the data files exist")


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
    "polars": plan_with_polars,
}


def main() -> None:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", default="1000,10000,50000")
    parser.add_argument("--filters", default=",".join(FILTERS))
    parser.add_argument("--peers", help="pyiceberg, polars or both; those that are installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--columns", type=int, default=20, help="of tables that are generated")
    parser.add_argument("--keep", help="folder to keep the generated tables in")
    parser.add_argument("--once", nargs=3, metavar=("PLANNER", "METADATA", "FILTER"))
    parser.add_argument("--disk", help="with --once: icesql's cache folder")
    parser.add_argument("--growth", nargs=3, metavar=("PLANNER", "METADATA", "FILTER"))
    arguments = parser.parse_args()
    if arguments.once:
        planner, metadata, which = arguments.once
        if arguments.disk and planner == "icesql":
            print(plan_with_icesql(metadata, which, cache_of(arguments.disk)))
        else:
            print(PLANNERS[planner](metadata, which))
        return
    if arguments.growth:
        print(growth(*arguments.growth))
        return
    from generate_metadata import widen

    widen(arguments.columns)
    peers = arguments.peers.split(",") if arguments.peers else installed()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        heads = "".join(f"{each:>11} {'ratio':>6}" for each in peers)
        print(f"{'files':>6} {'filter':8} {'':10} {'icesql':>8}{heads}   MiB")
        for files in map(int, arguments.files.split(",")):
            for which in arguments.filters.split(","):
                measure(folder, files, which, ["icesql", *peers], arguments.rounds)


def cache_of(folder: str) -> object:
    """What a session has whose ``cache_directory`` is this folder."""
    from icesql.config import Settings
    from icesql.storage.cache import BoundedCache
    from icesql.storage.stores.cached import Blocks

    return BoundedCache(blocks=Blocks(Settings().with_text("cache_directory", folder)))


def installed() -> list[str]:
    """The peers that are here."""
    found = ["pyiceberg"]
    if find_spec("polars") and find_spec("polars_iceberg"):
        found.append("polars")
    return found


def measure(folder: Path, files: int, which: str, names: list[str], rounds: int) -> None:
    """Print the lines of one filter over one table."""
    from generate_metadata import write_table

    from icesql.storage.cache import BoundedCache

    target = folder / str(files) / "metadata" / "v1.metadata.json"
    metadata = str(target if target.exists() else write_table(folder / str(files), files))
    found = {name: PLANNERS[name](metadata, which) for name in names if name != "polars"}
    assert len(set(found.values())) == 1, f"{which}: {found}"
    cache = BoundedCache()
    plan_with_icesql(metadata, which, cache)
    cold = {name: partial(run_cold, name, metadata, which) for name in names}
    kept_at = str(folder / f"cache-{os.getpid()}")
    disk = {name: partial(run_cold, name, metadata, which, kept_at) for name in names}
    disk["icesql"]()
    warm = {name: partial(PLANNERS[name], metadata, which) for name in names}
    kept = {**warm, "icesql": partial(plan_with_icesql, metadata, which, cache)}
    grown = [run_growth(name, metadata, which) for name in names]
    every = {"cold": cold, "disk": disk, "warm": warm, "kept": kept}
    for label, tasks in every.items():
        times = interleaved(tasks, rounds)
        ours = times.pop("icesql")
        for index, kind in enumerate(("wall", "CPU")):
            others = "".join(
                f"{each[index]:11.1f} {ours[index] / each[index]:6.2f}" for each in times.values()
            )
            sizes = "  ".join(f"{each:.0f}" for each in grown) if (label, kind) == SIZED else ""
            line = f"{files:6} {which:8} {label:5} {kind:4} {ours[index]:8.1f}{others}   {sizes}"
            print(line, flush=True)


def run_cold(name: str, metadata: str, which: str, disk: str | None = None) -> None:
    """Plan once in a process of its own."""
    command = [sys.executable, __file__, "--once", name, metadata, which]
    command += [] if disk is None else ["--disk", disk]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def run_growth(name: str, metadata: str, which: str) -> float:
    """``growth`` in a process of its own."""
    command = [sys.executable, __file__, "--growth", name, metadata, which]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def growth(name: str, metadata: str, which: str) -> float:
    """MiB that the peak of a process grows by, after planning a table of one file."""
    import resource

    from generate_metadata import write_table

    with tempfile.TemporaryDirectory() as folder:
        PLANNERS[name](str(write_table(Path(folder) / "1", 1)), which)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    PLANNERS[name](metadata, which)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def interleaved(
    tasks: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Median milliseconds, wall and CPU, of each task; rounds alternate: noise hits all alike."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            started, used = time.perf_counter(), cpu_seconds()
            task()
            took = time.perf_counter() - started, cpu_seconds() - used
            times[name].append((took[0] * 1000, took[1] * 1000))
    return {
        name: (statistics.median(each[0] for each in all), statistics.median(e[1] for e in all))
        for name, all in times.items()
    }


def cpu_seconds() -> float:
    """The CPU time of this process and of its children that ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
