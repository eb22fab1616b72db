"""Python values of results: what each declared type becomes in a row of the DB-API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.result_schema import ResultType
from icesql.engine.struct_names import are_alike
from icesql.engine.values import Timestamp, microseconds_to_datetime
from icesql.errors import DataError
from icesql.interval import Interval

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

Converter = Callable[[Any], Any]


# Kinds whose values inside of others the engine's own Python values would lose or change.
_LOSSY_INSIDE: Final = frozenset(
    {
        "date", "time", "time_ns", "timetz", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "interval", "hugeint", "map",
    }
)  # fmt: skip
_DAY_MICROS: Final = 86_400_000_000
# DuckDB's infinities; Arrow has the same numbers for them, and so have the last times of a table.
_INFINITE_NANOS: Final = ((1 << 63) - 1, 1 - (1 << 63))


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
    problem = "'" + _no_python_value(declared) + "'"
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
            greatest, least = _INFINITE_NANOS
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


def _no_python_value(declared: ResultType) -> str:
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
    """What turns a fetched value into its Python value, None when it already is."""
    match declared.kind:
        case "timestamptz":
            return lambda value: None if value is None else microseconds_to_datetime(value, zone)
        case "timestamp_ns":
            return lambda value: None if value is None else Timestamp.from_nanoseconds(value, None)
        case "timetz":
            return lambda value: None if value is None else _zoned_time(value)
        case _:
            return None


def python_values(
    array: pa.Array, declared: ResultType, zone: tzinfo, *, infinite: bool = False
) -> list[Any]:
    """The Python values of an Arrow array of a declared type, NULL as None.

    ``infinite`` as for ``row_expression``. Raises DataError for a value that Python has none for.
    """
    if declared.is_nested:
        return _nested_values(array, declared, zone, infinite)
    convert: Converter
    match declared.kind:
        case "timestamptz":
            array, convert = _numbers(array), lambda value: _instant(value, declared, zone)
        case "timestamp_ns" | "timestamptz_ns":
            inner = zone if declared.kind == "timestamptz_ns" else None
            array, convert = (
                _numbers(array),
                lambda value: _timestamp(value, declared, inner, infinite),
            )
        case "time" | "time_ns":
            array, convert = _numbers(array), lambda value: _time(value, declared)
        case "timetz":
            convert = _zoned_time
        case "interval":
            convert = _interval
        case "hugeint":
            convert = int
        case _:
            try:
                values: list[Any] = array.to_pylist()
            except (OverflowError, ValueError) as error:
                raise DataError(_no_python_value(declared)) from error
            return values
    return [None if value is None else convert(value) for value in array.to_pylist()]


def _numbers(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    return array.cast(pa.int64())


def _nested_values(
    array: pa.Array, declared: ResultType, zone: tzinfo, infinite: bool
) -> list[Any]:
    match declared.kind:
        case "list":
            values = python_values(array.values, declared.children[0][1], zone, infinite=infinite)
            return _slices(array, values)
        case "map":
            (_, key), (_, item) = declared.children
            keys = python_values(array.keys, key, zone, infinite=infinite)
            items = python_values(array.items, item, zone, infinite=infinite)
            return _slices(array, list(zip(keys, items, strict=True)))
    names = [name for name, _ in declared.children]
    columns = [
        python_values(array.field(index), child, zone, infinite=infinite)
        for index, (_, child) in enumerate(declared.children)
    ]
    if declared.kind == "union":
        # A NULL is one of a member; Arrow's unions have no others.
        codes = array.type_codes.to_pylist()
        return [columns[code][row] for row, code in enumerate(codes)]
    present = array.is_valid().to_pylist()
    rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
    if declared.kind == "tuple":
        return [row if valid else None for valid, row in zip(present, rows, strict=True)]
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for valid, row in zip(present, rows, strict=True)
    ]


def _slices(array: pa.Array, values: list[Any]) -> list[list[Any] | None]:
    offsets = array.offsets.to_pylist()
    present = array.is_valid().to_pylist()
    return [
        values[offsets[index] : offsets[index + 1]] if valid else None
        for index, valid in enumerate(present)
    ]


def _interval(value: Any) -> timedelta | Interval:
    microseconds = value.nanoseconds // 1000
    if not value.months:
        try:
            return timedelta(days=value.days, microseconds=microseconds)
        except OverflowError:
            pass
    return Interval(value.months, value.days, microseconds)


def _instant(microseconds: int, declared: ResultType, zone: tzinfo) -> datetime:
    try:
        return microseconds_to_datetime(microseconds, zone)
    except DataError as error:
        raise DataError(_no_python_value(declared)) from error


def _timestamp(
    nanoseconds: int, declared: ResultType, zone: tzinfo | None, infinite: bool
) -> Timestamp:
    if infinite and nanoseconds in _INFINITE_NANOS:
        raise DataError(_no_python_value(declared))
    return Timestamp.from_nanoseconds(nanoseconds, zone)


def _time(units: int, declared: ResultType) -> time:
    """A time of day from its micro- or nanoseconds, which must be whole microseconds."""
    micros, rest = (units, 0) if declared.kind == "time" else divmod(units, 1000)
    if rest or micros >= _DAY_MICROS:
        raise DataError(_no_python_value(declared))
    seconds, micros = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def _zoned_time(text: str) -> time:
    """A time of day with an offset from DuckDB's text of it, such as ``15:30:00.5+02``."""
    try:
        return time.fromisoformat(text)
    except ValueError as error:
        raise DataError(_no_python_value(ResultType("timetz"))) from error
