"""Narrow plans by the keys of small scans, for any engine: the keys filter another scan's files.

A scan is read first if it is small according to metadata, and if its keys join to a scan whose
partitions or bounds differ enough for a key to exclude files. Its rows stay with its plan, so it is
read only once. Keys pass through chains of small tables (region, nation, customer, orders).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.engine.duckdb.arrow_stream import TaskStream
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.schema import Schema
from icesql.query.pushdown.comparison import any_of
from icesql.scan.planner import plan as plan_scan
from icesql.scan.pruning.column_summary import may_leave_out_files

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery, KeyEdge
    from icesql.scan.plan import ScanPlan


# Limits of scans that are read first: with a filter, and without one, where keys are rarely few.
_MOST_ROWS: Final = 1_000_000
_MOST_ROWS_UNFILTERED: Final = 100_000
_MOST_BYTES: Final = 16 << 20
# If the join uses only the least or greatest value, one column of few files is read.
_MOST_ROWS_OF_EXTREMES: Final = 4_000_000
# A target needs at least this many files, and this many times the rows of the source.
_FEWEST_FILES: Final = 3
_TIMES: Final = 4


def expected(bound: BoundQuery, plans: Sequence[ScanPlan]) -> tuple[KeyEdge, ...]:
    """The edges by which the query will probably skip files, according to metadata."""
    if not bound.edges or any(each.settings.verify == "full" for each in plans):
        return ()
    rows = [each.rows_in_files for each in plans]
    small = {number for number, each in enumerate(plans) if _is_small(each, rows[number])}
    found: dict[KeyEdge, None] = {}
    wanted = [each for each in bound.edges if each.source in small and _is_worth(each, plans, rows)]
    # A source may itself be narrowed by the keys of other small scans.
    while wanted:
        edge = wanted.pop()
        if edge not in found:
            found[edge] = None
            wanted += [
                each
                for each in bound.edges
                if each.target == edge.source
                and each.source in small
                and rows[each.source] < rows[each.target]
            ]
    return tuple(found)


def narrowed(
    edges: Sequence[KeyEdge], plans: Sequence[ScanPlan], query: QueryContext
) -> tuple[ScanPlan, ...]:
    """Read the sources of ``edges``, which ``expected`` returned; the plans after narrowing.

    Raises the errors of reading and planning.
    """
    known = list(plans)
    waiting = {each.source for each in edges}
    while waiting:
        query.check()
        source = min(waiting, key=lambda number: known[number].rows_in_files)
        waiting.remove(source)
        rows = read_rows(known[source], query)
        known[source] = replace(known[source], rows_read=rows)
        for edge in edges:
            if edge.source != source or known[edge.target].rows_read is not None:
                continue
            scan = known[edge.target].scan
            found = keys_filter(edge, rows, scan.schema)
            explain = known[edge.target].scan.explain
            wanted = replace(scan, row_filter=scan.row_filter & found, explain=explain)
            known[edge.target] = plan_scan(wanted, query)
    return tuple(known)


def _is_small(plan: ScanPlan, rows: int) -> bool:
    scan = plan.scan
    if plan.metadata is not None or plan.changes is not None or scan.limit is not None:
        return False
    most = _MOST_ROWS_UNFILTERED if scan.row_filter is ALWAYS_TRUE else _MOST_ROWS
    if scan.extremes and len(scan.projection.fields) == 1:
        most = _MOST_ROWS_OF_EXTREMES
    size = plan.projected_bytes + plan.counts.total_delete_file_size_in_bytes
    is_known = all(task.data_file.record_count >= 0 for task in plan.files)
    return is_known and rows <= most and size <= _MOST_BYTES


def _is_worth(edge: KeyEdge, plans: Sequence[ScanPlan], rows: Sequence[int]) -> bool:
    """True if the keys of a small scan may exclude files of a large one."""
    target = plans[edge.target]
    if len(target.files) < _FEWEST_FILES or rows[edge.source] * _TIMES > rows[edge.target]:
        return False
    return may_leave_out_files(target, edge.target_id)


# ------------------------------------------------------------------ filters of keys


# More keys than this become a range: checking a longer list costs more than it saves.
MOST_KEYS: Final = 1_000
_MOST_RANGES: Final = 50
_MICROS_OF_DAY: Final = 86_400_000_000
# The last day of 64-bit microseconds is some days later.
_LAST_DAY: Final = 106_000_000
_INTEGERS: Final[dict[type[t.IcebergType], int]] = {t.IntegerType: 32, t.LongType: 64}


def read_rows(plan: ScanPlan, query: QueryContext) -> pa.Table:
    """The live rows that satisfy the scan's filter; columns are called ``c<field id>``.

    Raises CorruptFileError, StorageError and QueryCancelledError.
    """
    stream = TaskStream(plan.files, plan.context, query)
    try:
        return stream.table()
    finally:
        stream.stop()


def keys_filter(edge: KeyEdge, rows: pa.Table, schema: Schema) -> Predicate:
    """A predicate on the target's column: its value is among the keys in ``rows``.

    ``schema`` is that of the target. A NULL key equals nothing.
    """
    column = rows[f"c{edge.source_id}"]
    if edge.only:
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.min_max(column)[edge.only]
        column = pa.chunked_array([pa.array([found], column.type)])
    if edge.of_day:
        return days_filter(column, Term(edge.target_id, edge.target_name))
    return values_filter(column, schema.field_by_id[edge.target_id], edge.target_name)


def values_filter(
    column: pa.ChunkedArray, field: t.NestedField, name: str | None = None
) -> Predicate:
    """A predicate that a column is among some values: a list, or a range for many values.

    ``column`` has values that SQL compares with those of ``field`` without converting either;
    a NULL equals nothing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.drop_null(pc.unique(column))
    term = Term(field.field_id, name or field.name)
    if len(column) <= MOST_KEYS:
        keys = [each for each in _values(column) if _fits(each, field.type)]
        return any_of(Leaf(Operation.EQ, term, each) for each in keys)
    least, greatest = pc.min_max(column).values()
    low, high = _values(pa.array([least, greatest], column.type))
    bits = _INTEGERS.get(type(field.type))
    if bits is not None:
        low, high = max(low, -(1 << (bits - 1))), min(high, (1 << (bits - 1)) - 1)
        if low > high:
            return ALWAYS_FALSE
    return Leaf(Operation.GT_EQ, term, low) & Leaf(Operation.LT_EQ, term, high)


def days_filter(column: pa.ChunkedArray, term: Term) -> Predicate:
    """A predicate that a timestamp without zone is on one of some dates.

    Consecutive dates share a range; too many ranges become a single one. A NULL equals nothing.
    Dates outside of all timestamps, such as infinity, make the predicate always true.
    """
    import pyarrow.compute as pc

    days = sorted(_values(pc.drop_null(pc.unique(column))))
    if not days:
        return ALWAYS_FALSE
    if not -_LAST_DAY <= days[0] <= days[-1] <= _LAST_DAY:
        return ALWAYS_TRUE
    firsts = [day for day, before in zip(days, [None, *days], strict=False) if day - 1 != before]
    lasts = [day for day, after in zip(days, [*days[1:], None], strict=True) if day + 1 != after]
    if len(firsts) > _MOST_RANGES:
        firsts, lasts = firsts[:1], lasts[-1:]
    ranges = [
        Leaf(Operation.GT_EQ, term, first * _MICROS_OF_DAY)
        & Leaf(Operation.LT, term, (last + 1) * _MICROS_OF_DAY)
        for first, last in zip(firsts, lasts, strict=True)
    ]
    return any_of(ranges)


def _values(column: pa.Array) -> list[Any]:
    """The values in the internal form of ``iceberg.types``."""
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.view(pa.int64())
    return list(column.to_pylist())


def _fits(value: Any, kind: t.IcebergType) -> bool:
    bits = _INTEGERS.get(type(kind))
    return bits is None or -(1 << (bits - 1)) <= value < 1 << (bits - 1)
