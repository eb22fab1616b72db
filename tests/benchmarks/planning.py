"""Planning of tables whose metadata lists many files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from frame import Table, command, turns
from sides import parts, side_by_side
from tables import CACHE, FILES_OF_DAY, FIRST_DAY, MICROS_OF_DAY, ROWS_OF_FILE, described, large


def icesql(metadata: str, disk: str = "", kept: bool = False) -> Callable[[str, int], object]:
    """The number of files that icesql plans, with the cache of a session or a folder of one."""
    from icesql.catalog.open import open_table
    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
    from icesql.scan.plan import TableScan
    from icesql.scan.planner import plan
    from icesql.storage.cache import Blocks, BoundedCache

    cache = BoundedCache() if kept else None
    if disk:
        cache = BoundedCache(blocks=Blocks(Settings().with_text("cache_directory", disk)))

    def run(which: str, files: int) -> object:
        table = open_table(metadata, cache=cache)
        low, high = bounds(which, files)
        row_filter: Predicate = ALWAYS_TRUE
        if which == "day":
            time = Term(2, "ts")
            row_filter = Leaf(Operation.GT_EQ, time, low) & Leaf(Operation.LT, time, high)
        elif which == "id":
            row_filter = Leaf(Operation.EQ, Term(1, "id"), low)
        schema = table.metadata.schema
        scan = TableScan(table, table.metadata.current_snapshot, schema, schema, row_filter)
        return [[len(plan(scan, QueryContext()).files)]]

    return run


def pyiceberg(metadata: str, **_: Any) -> Callable[[str, int], object]:
    from pyiceberg.expressions import AlwaysTrue, And, EqualTo, GreaterThanOrEqual, LessThan
    from pyiceberg.expressions.literals import TimestampLiteral
    from pyiceberg.table import StaticTable

    def run(which: str, files: int) -> object:
        low, high = bounds(which, files)
        row_filter: object = AlwaysTrue()
        if which == "day":
            row_filter = And(
                GreaterThanOrEqual("ts", TimestampLiteral(low)),
                LessThan("ts", TimestampLiteral(high)),
            )
        elif which == "id":
            row_filter = EqualTo("id", low)
        table = StaticTable.from_metadata(metadata)
        return [[sum(1 for _ in table.scan(row_filter=row_filter).plan_files())]]

    return run


def bounds(which: str, files: int) -> tuple[int, int]:
    """A day in the middle of the table, or the id of one row."""
    if which == "day":
        day = FIRST_DAY + files // FILES_OF_DAY // 2
        return day * MICROS_OF_DAY, (day + 1) * MICROS_OF_DAY
    return files // 2 * ROWS_OF_FILE + 5, 0


def planning(
    cache: Path = CACHE,
    files: int = 50_000,
    columns: int = 20,
    rounds: int = 5,
    only: str = "id,day,none",
    peers: str = "pyiceberg",
) -> int:
    """The files of one id, of a day, of all: whole processes (also with the cache folder that
    another one left), then again in one process, and with the manifests that a session keeps."""
    metadata = described(large(cache, files, columns))["tables"]["t"]["metadata"]
    names, table = ("icesql", *peers.split(",")), Table()
    disk = {"metadata": metadata, "disk": str(cache / "planning-disk")}
    for case, given in {"cold": {"metadata": metadata}, "disk": disk}.items():
        for which in only.split(","):
            ways = {}
            for name in names:
                kind, python, root = parts(cache, name)
                code = f"import planning; planning.{kind}(**{given})({which!r}, {files})"
                ways[name] = partial(command, [python, "-c", code], root)
            table.line(f"{which} {case}", turns(ways, rounds, warm=1))
    status, cases = table.end(), {which: (which, files) for which in only.split(",")}
    for kept in (False, True):
        print("one process, with the manifests that a session keeps" if kept else "one process")
        given = {"metadata": metadata, "kept": kept}
        status |= side_by_side(cache, names, given, cases, module="planning", rounds=rounds)
    return status
