"""The declared result contract: what type every result column has, whichever way it came.

The engine's own types are mapped to one Arrow type and one Python value each:

    boolean → bool · tinyint … bigint, unsigned → int · float, double → float
    hugeint (sum of integers) → int, declared bigint and checked to fit
    decimal → Decimal · date → date · time → time · timestamp → datetime
    timestamptz → aware datetime in the session zone · *_ns → Timestamp with ``nanosecond``
    varchar, json, enum, bit → str · uuid → UUID · blob → bytes · interval → timedelta
    list → list · struct → dict · map → list of (key, value) pairs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from icesql.engine.struct_names import are_alike, engine_names, renamed, true_name
from icesql.engine.values import Timestamp, microseconds_to_datetime
from icesql.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Converter = Callable[[Any], Any]


class ResultType(Struct, frozen=True):
    """One type of the contract; ``name`` is its SQL spelling, ``kind`` the key into the tables."""

    kind: str
    precision: int = 0
    scale: int = 0
    children: tuple[tuple[str, ResultType], ...] = ()

    @property
    def name(self) -> str:
        """SQL spelling such as ``decimal(10,2)`` or ``struct(a bigint)``."""
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "list":
                return f"{self.children[0][1].name}[]"
            case "struct":
                inner = ", ".join(f"{name} {child.name}" for name, child in self.children)
                return f"struct({inner})"
            case "map":
                return f"map({self.children[0][1].name}, {self.children[1][1].name})"
            case _:
                return self.kind

    @property
    def is_nested(self) -> bool:
        """Whether values hold values of other types."""
        return self.kind in ("list", "struct", "map")


class ResultColumn(Struct, frozen=True):
    """A column of a result: its name as the statement gives it, and its declared type."""

    name: str
    type: ResultType


_KINDS: Final[dict[str, str]] = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "integer": "integer",
    "bigint": "bigint",
    "hugeint": "bigint",
    "uhugeint": "bigint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "uinteger": "bigint",
    "ubigint": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "time",
    "time_ns": "time",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp_ns",
    "timestamp with time zone": "timestamptz",
    "timestamptz_ns": "timestamptz_ns",
    "varchar": "varchar",
    "json": "varchar",
    "enum": "varchar",
    "bit": "varchar",
    "bignum": "varchar",
    "time with time zone": "varchar",
    "uuid": "uuid",
    "blob": "blob",
    "interval": "interval",
    "null": "null",
}
# What the engine has to cast so that a column has its declared type.
_SQL_TYPES: Final[dict[str, str]] = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "timestamp": "TIMESTAMP",
    "time": "TIME",
    "varchar": "VARCHAR",
}


def declare(engine_type: Any) -> ResultType:
    """The declared type of a DuckDB type (an object with ``id`` and ``children``)."""
    kind = str(engine_type.id).lower()
    match kind:
        case "decimal":
            parts = dict(engine_type.children)
            return ResultType("decimal", int(parts["precision"]), int(parts["scale"]))
        case "list" | "array":
            return ResultType("list", children=(("element", declare(engine_type.children[0][1])),))
        case "struct" | "map":
            inner = tuple(
                (true_name(str(name)), declare(child)) for name, child in engine_type.children
            )
            return ResultType(kind, children=inner)
    # A type outside the contract (union, geometry, …) is shown as text.
    return ResultType(_KINDS.get(kind, "varchar"))


def declared_expression(column: str, engine_type: Any) -> str:
    """SQL that turns ``column`` of an engine type into its declared type."""
    kind = str(engine_type.id).lower()
    declared = declare(engine_type)
    if declared.is_nested:
        sql_type = engine_sql_type(declared)
        return column if sql_type == str(engine_type) else f"CAST({column} AS {sql_type})"
    if kind == declared.kind or kind in ("decimal", "timestamp with time zone"):
        return column
    cast_to = _SQL_TYPES.get(declared.kind)
    return f"CAST({column} AS {cast_to})" if cast_to else column


def engine_sql_type(declared: ResultType) -> str:
    """The DuckDB spelling of a declared type."""
    match declared.kind:
        case "decimal":
            return f"DECIMAL({declared.precision},{declared.scale})"
        case "list":
            return f"{engine_sql_type(declared.children[0][1])}[]"
        case "struct":
            names = engine_names(name for name, _ in declared.children)
            inner = ", ".join(
                f"{_quoted(name)} {engine_sql_type(child)}"
                for name, (_, child) in zip(names, declared.children, strict=True)
            )
            return f"STRUCT({inner})"
        case "map":
            key, value = (engine_sql_type(child) for _, child in declared.children)
            return f"MAP({key}, {value})"
        case "timestamptz":
            return "TIMESTAMP WITH TIME ZONE"
        case "null":
            return '"NULL"'
        case kind:
            return kind.upper()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ------------------------------------------------------------------ Arrow


def arrow_type(declared: ResultType) -> pa.DataType:
    """The Arrow type of a declared type; zones are UTC, children nullable."""
    import pyarrow as pa

    match declared.kind:
        case "decimal":
            return pa.decimal128(declared.precision, declared.scale)
        case "list":
            return pa.list_(pa.field("element", arrow_type(declared.children[0][1])))
        case "struct":
            return pa.struct([(name, arrow_type(child)) for name, child in declared.children])
        case "map":
            return pa.map_(*(arrow_type(child) for _, child in declared.children))
        case "boolean":
            return pa.bool_()
        case "tinyint":
            return pa.int8()
        case "smallint":
            return pa.int16()
        case "integer":
            return pa.int32()
        case "bigint":
            return pa.int64()
        case "float":
            return pa.float32()
        case "double":
            return pa.float64()
        case "date":
            return pa.date32()
        case "time":
            return pa.time64("us")
        case "timestamp":
            return pa.timestamp("us")
        case "timestamptz":
            return pa.timestamp("us", tz="UTC")
        case "timestamp_ns":
            return pa.timestamp("ns")
        case "timestamptz_ns":
            return pa.timestamp("ns", tz="UTC")
        case "uuid":
            return pa.uuid()
        case "blob":
            return pa.binary()
        case "interval":
            return pa.month_day_nano_interval()
        case "null":
            return pa.null()
        case _:
            return pa.string()


def arrow_schema(columns: Sequence[ResultColumn]) -> pa.Schema:
    """The Arrow schema of a result."""
    import pyarrow as pa

    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """``batch`` with the types of ``schema``, column by column in order."""
    import pyarrow as pa

    arrays = [
        column if column.type == wanted.type else _cast(renamed(column, wanted.type), wanted.type)
        for column, wanted in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(wanted, pa.UuidType) and not isinstance(column.type, pa.UuidType):
        from uuid import UUID

        stored = [None if text is None else UUID(text).bytes for text in column.to_pylist()]
        return pa.ExtensionArray.from_storage(wanted, pa.array(stored, pa.binary(16)))
    return column.cast(wanted)


# ------------------------------------------------------------------ Python rows


def needs_arrow_rows(declared: ResultType) -> bool:
    """Whether the engine's own Python values would lose something of this type."""
    if declared.kind in ("interval", "timestamptz_ns", "map"):
        return True
    if declared.kind == "struct" and are_alike([name for name, _ in declared.children]):
        return True
    inner_lossy = (
        "date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "interval", "map"
    )  # fmt: skip
    return any(
        child.kind in inner_lossy or needs_arrow_rows(child) for _, child in declared.children
    )


def row_expression(column: str, declared: ResultType) -> str:
    """SQL that fetches a declared column without loss; ``row_converter`` undoes it."""
    match declared.kind:
        case "timestamptz":
            problem = _no_python_value(declared)
            return f"CASE WHEN isinf({column}) THEN error({problem}) ELSE epoch_us({column}) END"
        case "date" | "timestamp":
            # Beyond these the engine gives the last moment of 9999 for infinity, and text.
            kind, last = declared.kind.upper(), "9999-12-31"
            last += " 23:59:59.999999" if kind == "TIMESTAMP" else ""
            return (
                f"CASE WHEN {column} NOT BETWEEN {kind} '0001-01-01' AND {kind} '{last}' "
                f"THEN error({_no_python_value(declared)}) ELSE {column} END"
            )
        case "timestamp_ns":
            return f"epoch_ns({column})"
        case _:
            return column


def _no_python_value(declared: ResultType) -> str:
    return (
        f"'a {declared.name} beyond the years 1 to 9999 has no Python value; "
        "CAST it to VARCHAR or read it through arrow()'"
    )


def row_converter(declared: ResultType, zone: tzinfo) -> Converter | None:
    """What turns a fetched value into its Python value, None when it already is."""
    match declared.kind:
        case "timestamptz":
            return lambda value: None if value is None else microseconds_to_datetime(value, zone)
        case "timestamp_ns":
            return lambda value: None if value is None else Timestamp.from_nanoseconds(value, None)
        case _:
            return None


def python_values(array: pa.Array, declared: ResultType, zone: tzinfo) -> list[Any]:
    """The Python values of an Arrow array of a declared type, NULL as None."""
    import pyarrow as pa

    match declared.kind:
        case "timestamptz":
            return [
                None if value is None else microseconds_to_datetime(value, zone)
                for value in array.cast(pa.int64()).to_pylist()
            ]
        case "timestamp_ns" | "timestamptz_ns":
            inner = zone if declared.kind == "timestamptz_ns" else None
            return [
                None if value is None else Timestamp.from_nanoseconds(value, inner)
                for value in array.cast(pa.int64()).to_pylist()
            ]
        case "interval":
            return [None if value is None else _interval(value) for value in array.to_pylist()]
        case "list":
            values = python_values(array.values, declared.children[0][1], zone)
            return _slices(array, values)
        case "map":
            (_, key), (_, item) = declared.children
            keys = python_values(array.keys, key, zone)
            items = python_values(array.items, item, zone)
            return _slices(array, list(zip(keys, items, strict=True)))
        case "struct":
            names = [name for name, _ in declared.children]
            columns = [
                python_values(array.field(index), child, zone)
                for index, (_, child) in enumerate(declared.children)
            ]
            present = array.is_valid().to_pylist()
            return [
                dict(zip(names, row, strict=True)) if valid else None
                for valid, row in zip(present, zip(*columns, strict=True), strict=True)
            ]
        case _:
            try:
                values_: list[Any] = array.to_pylist()
            except (OverflowError, ValueError) as error:
                raise DataError(_no_python_value(declared).strip("'")) from error
            return values_


def _slices(array: pa.Array, values: list[Any]) -> list[list[Any] | None]:
    offsets = array.offsets.to_pylist()
    present = array.is_valid().to_pylist()
    return [
        values[offsets[index] : offsets[index + 1]] if valid else None
        for index, valid in enumerate(present)
    ]


def _interval(value: Any) -> timedelta:
    if value.months:
        raise DataError(
            f"an interval of {value.months} months has no exact Python value; "
            "CAST it to VARCHAR or read it through arrow()"
        )
    return timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
