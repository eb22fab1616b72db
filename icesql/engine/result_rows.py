"""Rows of the engine's own Python values, which become those of each declared type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import time, tzinfo
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.result_schema import ResultType
from icesql.engine.struct_names import are_alike
from icesql.engine.values import Timestamp, microseconds_to_datetime
from icesql.errors import DataError

if TYPE_CHECKING:
    from sqlglot import exp

Converter = Callable[[Any], Any]


# Kinds whose values inside of others the engine's own Python values would lose or change.
_LOSSY_INSIDE: Final = frozenset(
    {
        "date", "time", "time_ns", "timetz", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "interval", "hugeint", "map",
    }
)  # fmt: skip
# DuckDB's infinities; Arrow has the same numbers for them, and so have the last times of a table.
INFINITE_NANOS: Final = ((1 << 63) - 1, 1 - (1 << 63))


def needs_arrow_rows(declared: ResultType) -> bool:
    """Whether the engine's own Python values would lose something of this type."""
    if declared.kind in ("interval", "timestamptz_ns", "time_ns", "map"):
        return True
    if declared.kind == "struct" and are_alike([name for name, _ in declared.children]):
        return True
    return any(
        child.kind in _LOSSY_INSIDE or needs_arrow_rows(child) for _, child in declared.children
    )


def may_be_infinite(types: Iterable[ResultType], tree: exp.Expr) -> bool:
    """Whether the nanoseconds of a result may be infinite, and not only times of a table.

    A table has no infinity. The engine makes one of texts and of other times, where it casts them
    or where a UNION, a CASE or a function has to give one type to both.
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
    """SQL that fetches a declared column without loss; ``row_converter`` undoes it.

    ``infinite``: nanoseconds that the engine takes for infinity are that.
    """
    problem = "'" + no_python_value(declared) + "'"
    match declared.kind:
        case "timestamptz":
            return f"CASE WHEN isinf({column}) THEN error({problem}) ELSE epoch_us({column}) END"
        case "date" | "timestamp":
            # Beyond these the engine gives the last moment of 9999 for infinity, and text.
            kind, last = declared.kind.upper(), "9999-12-31"
            last += " 23:59:59.999999" if kind == "TIMESTAMP" else ""
            return (
                f"CASE WHEN {column} NOT BETWEEN {kind} '0001-01-01' AND {kind} '{last}' "
                f"THEN error({problem}) ELSE {column} END"
            )
        case "timestamp_ns" if not infinite:
            # The engine has no number for what it takes for infinity.
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
            # The engine gives an int for it, which is what a sum of integers is.
            return f"CAST({column} AS HUGEINT)"
        case _:
            return column


def no_python_value(declared: ResultType) -> str:
    """Why a value of a declared type cannot be in a row, and what to do."""
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


def converted(
    rows: list[tuple[Any, ...]], converters: Sequence[Converter | None]
) -> list[tuple[Any, ...]]:
    """Rows whose values are those of ``row_expression``, through the ``row_converter`` of each."""
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
    """A converter of fetched values to Python values, None if they need none."""
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
    """A time of day with an offset from DuckDB's text of it, such as ``15:30:00.5+02``.

    Raises DataError for 24:00:00.
    """
    try:
        return time.fromisoformat(text)
    except ValueError as error:
        raise DataError(no_python_value(ResultType("timetz"))) from error
