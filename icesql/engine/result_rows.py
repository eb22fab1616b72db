"""The engine's own Python values as rows: sizes of chunks, and conversion to declared types."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import time, tzinfo
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb_types import are_alike
from icesql.engine.result_schema import ResultType, Row
from icesql.engine.values import Timestamp, microseconds_to_datetime
from icesql.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan

Converter = Callable[[Any], Any]


# Kinds that lose or change values in the engine's own Python values of nested types.
_LOSSY_INSIDE: Final = frozenset(
    {
        "date", "time", "time_ns", "timetz", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "interval", "hugeint", "map",
    }
)  # fmt: skip
# DuckDB's infinities; in Arrow and in tables the same numbers are finite times.
INFINITE_NANOS: Final = ((1 << 63) - 1, 1 - (1 << 63))


def need_arrow_rows(types: Iterable[ResultType]) -> bool:
    """True if the engine's own Python values would lose part of a value of these types."""
    return any(map(_needs_arrow_rows, types))


def _needs_arrow_rows(declared: ResultType) -> bool:
    if declared.kind in ("interval", "timestamptz_ns", "time_ns", "map"):
        return True
    if declared.kind == "struct" and are_alike([name for name, _ in declared.children]):
        return True
    return any(
        child.kind in _LOSSY_INSIDE or _needs_arrow_rows(child) for _, child in declared.children
    )


def may_be_infinite(types: Iterable[ResultType], tree: exp.Expr) -> bool:
    """True if nanosecond times of a result may be infinite, rather than from a table.

    A table contains no infinity. The engine makes one from texts and from other times, where it
    casts them or where a UNION, a CASE or a function converts both to one type.
    """
    if not any(map(_has_nanoseconds, types)):
        return False
    from sqlglot import exp

    values = (
        exp.Column, exp.Identifier, exp.Star, exp.Alias, exp.Literal, exp.Paren, exp.Count,
        exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last,
    )  # fmt: skip
    if tree.find(exp.SetOperation, exp.Values, exp.UDTF) is not None:
        return True
    if any(join.args.get("using") or join.method for join in tree.find_all(exp.Join)):
        return True
    return not all(
        isinstance(node, values)
        for select in tree.find_all(exp.Select)
        for item in select.expressions
        for node in item.walk()
    )


def _has_nanoseconds(declared: ResultType) -> bool:
    return declared.kind in ("timestamp_ns", "timestamptz_ns") or any(
        _has_nanoseconds(child) for _, child in declared.children
    )


def row_expression(column: str, declared: ResultType, *, infinite: bool = False) -> str:
    """SQL that fetches a declared column without loss; ``row_converter`` converts it back.

    ``infinite``: the engine's infinite nanoseconds are infinite, not a table's last times.
    """
    problem = "'" + no_python_value(declared) + "'"
    match declared.kind:
        case "timestamptz":
            return f"CASE WHEN isinf({column}) THEN error({problem}) ELSE epoch_us({column}) END"
        case "date" | "timestamp":
            # Outside of this range the engine returns text, and the end of 9999 for infinity.
            kind, last = declared.kind.upper(), "9999-12-31"
            last += " 23:59:59.999999" if kind == "TIMESTAMP" else ""
            return (
                f"CASE WHEN {column} NOT BETWEEN {kind} '0001-01-01' AND {kind} '{last}' "
                f"THEN error({problem}) ELSE {column} END"
            )
        case "timestamp_ns" if not infinite:
            # The engine has no number for its infinities.
            greatest, least = INFINITE_NANOS
            side = (
                f"CASE WHEN {column} > TIMESTAMP_NS '1970-01-01' THEN {greatest} ELSE {least} END"
            )
            return f"CASE WHEN isinf({column}) THEN {side} ELSE epoch_ns({column}) END"
        case "timestamp_ns":
            return f"CASE WHEN isinf({column}) THEN error({problem}) ELSE epoch_ns({column}) END"
        case "time":
            return f"CASE WHEN {column} = TIME '24:00:00' THEN error({problem}) ELSE {column} END"
        case "hugeint":
            # The engine returns an int for it, as a sum of integers should be.
            return f"CAST({column} AS HUGEINT)"
        case _:
            return column


def no_python_value(declared: ResultType) -> str:
    """Why a value of a declared type cannot be in a row, and how to avoid that."""
    match declared.kind:
        case "time" | "timetz":
            what = f"a {declared.name} of 24:00:00 has no Python value"
        case "time_ns":
            what = "a time_ns of 24:00:00 or not of whole microseconds has no Python value"
        case "timestamp_ns" | "timestamptz_ns":
            what = f"an infinite {declared.name} has no Python value"
        case _:
            what = f"a {declared.name} beyond the years 1 to 9999 has no Python value"
    where = "" if declared.kind == "timetz" else " or read it through arrow()"
    return f"{what}; CAST it to VARCHAR{where}"


def converted(rows: list[Row], converters: Sequence[Converter | None]) -> list[Row]:
    """Rows fetched by ``row_expression``, with each column's ``row_converter`` applied."""
    if not any(converters):
        return rows
    return [
        tuple(
            value if convert is None else convert(value)
            for convert, value in zip(converters, row, strict=True)
        )
        for row in rows
    ]


def row_converter(declared: ResultType, zone: tzinfo) -> Converter | None:
    """A converter from fetched values to Python values, None if they need none."""
    match declared.kind:
        case "timestamptz":
            return lambda value: None if value is None else microseconds_to_datetime(value, zone)
        case "timestamp_ns":
            return lambda value: None if value is None else Timestamp.from_nanoseconds(value, None)
        case "timetz":
            return lambda value: None if value is None else zoned_time(value)
        case _:
            return None


def zoned_time(text: str) -> time:
    """A time of day with an offset from DuckDB's text, such as ``15:30:00.5+02``.

    Raises DataError for 24:00:00.
    """
    try:
        return time.fromisoformat(text)
    except ValueError as error:
        raise DataError(no_python_value(ResultType("timetz"))) from error


# How many rows are taken at once: many narrow ones, few wide ones.
# This many stay in the processor's cache from one step to the next: 8,192 take half as long again.
MOST_ROWS: Final = 2_048
# Waiting for another thread takes as long as many rows, so it returns all that arrive in a moment.
_MOMENT_SECONDS: Final = 0.005
_MOST_STEPS: Final = 8
_FIRST_ROWS: Final = 64
_CHUNK_BYTES: Final = 8 << 20
# The number of rows that are measured in a long chunk.
_SAMPLE: Final = 16

_MOST_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 64 << 20
# Estimated size of unpacked data, relative to a file's bytes.
_PACKED: Final = 4
# The size of a tuple and of each value in it, beside its bytes in Arrow, and the growth of nested
# values as Python objects.
_ROW_BYTES, _VALUE_BYTES, _UNPACKED = 64, 40, 4

# Converting this many rows to Python values takes as long as importing Arrow.
_MANY_ROWS: Final = 100_000

_VARYING: Final = frozenset({"varchar", "blob", "list", "struct", "tuple", "map", "union"})


class ChunkSize:
    """``rows`` is the next number of rows to fetch, by the widths of earlier rows.

    ``is_over`` is true if the last fetch returned fewer.
    """

    def __init__(self, types: Sequence[ResultType]) -> None:
        self._varying = [at for at, each in enumerate(types) if each.kind in _VARYING]
        self.rows = _FIRST_ROWS if self._varying else MOST_ROWS
        self.is_over = False

    def fetch(self, fetchmany: Callable[[int], list[Row]]) -> list[Row]:
        """The next rows: narrow ones in several steps, as long as they come quickly."""
        end = perf_counter() + _MOMENT_SECONDS
        rows: list[Row] = []
        for _ in range(_MOST_STEPS):
            wanted = self.rows
            part = fetchmany(wanted)
            self.is_over = len(part) < wanted
            self.measure(part)
            rows = rows + part if rows else part
            if self.is_over or self.rows < MOST_ROWS or perf_counter() > end:
                break
        return rows

    def measure(self, rows: Sequence[Row]) -> None:
        """Set ``rows`` by the widths of texts and bytes in these rows."""
        if not self._varying or not rows:
            return
        sample = rows[:: max(len(rows) // _SAMPLE, 1)]
        size = sum(
            len(value)
            for at in self._varying
            for row in sample
            if isinstance(value := row[at], str | bytes)
        )
        width = size // len(sample) + 1
        self.rows = min(max(_CHUNK_BYTES // width, 1), MOST_ROWS)


def batches(reader: Iterator[pa.RecordBatch], *, several: bool) -> list[pa.RecordBatch]:
    """The next batch, or ``several`` if they are narrow and come quickly; empty at the end."""
    end = perf_counter() + _MOMENT_SECONDS
    found = []
    size = 0
    for batch in islice(reader, _MOST_STEPS if several else 1):
        found.append(batch)
        size += batch.nbytes
        if size > _CHUNK_BYTES or perf_counter() > end:
            break
    return found


def rows_at_once(batch: pa.RecordBatch) -> int:
    """Rows of a batch whose Python values take about the maximum size of a chunk."""
    inside = _UNPACKED * batch.nbytes // max(batch.num_rows, 1)
    width: int = _ROW_BYTES + _VALUE_BYTES * batch.num_columns + inside
    return max(_CHUNK_BYTES // width, 1)


def batch_rows(types: Sequence[ResultType], plans: Sequence[ScanPlan]) -> int:
    """Rows of an Arrow batch, by the width of the rows in the scanned files."""
    if not any(each.kind in _VARYING for each in types):
        return _MOST_BATCH_ROWS
    widest = 1
    for plan in plans:
        size = sum(max(task.data_file.file_size_in_bytes, 0) for task in plan.files)
        widest = max(widest, _PACKED * size // max(plan.rows_in_files, 1))
    return min(max(_BATCH_BYTES // widest, MOST_ROWS), _MOST_BATCH_ROWS)


def are_many(bound: BoundQuery, plans: Sequence[ScanPlan], *, at_once: bool) -> bool:
    """True if a query probably returns many rows: no aggregate and no LIMIT over a long scan.

    Such rows are read as Arrow, whose columns become Python values in three quarters of the time
    that the engine needs. With a WHERE they may be few, and a caller that does not fetch all
    ``at_once`` may stop: then Arrow is only used if it is imported already.
    """
    is_imported = "pyarrow.compute" in sys.modules
    if not (at_once or is_imported):
        return False
    if max((plan.rows_in_files for plan in plans), default=0) < _MANY_ROWS:
        return False
    from sqlglot import exp

    tree = bound.tree
    if not isinstance(tree, exp.Select) or tree.args.get("limit") or tree.args.get("group"):
        return False
    if any(each.find(exp.AggFunc) for each in tree.expressions):
        return False
    is_open = not tree.args.get("where") and not tree.args.get("having")
    return is_open or is_imported
