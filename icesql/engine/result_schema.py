"""The declared result contract: the type of every result column, whichever engine made it.

The engine's own types are mapped to one Arrow type and one Python value each:

    boolean → bool · tinyint … bigint, ubigint → int · float, double → float
    hugeint (sum of integers) → int, in Arrow decimal(38,0), checked to fit
    decimal → Decimal · date → date · time, time_ns → time · timestamp → datetime
    timestamptz → aware datetime in the session zone · *_ns → Timestamp with ``nanosecond``
    varchar, json, enum, bit, bignum → str · variant → str (JSON) · uuid → UUID
    blob, geometry (WKB) → bytes · timetz → time with an offset, in Arrow text
    interval → timedelta, Interval where it has months
    list, array → list · struct → dict · ROW(…), (a, b) → tuple, in Arrow a struct of element1 …
    map → list of (key, value) pairs · union → the value of its member
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb_types import engine_names, renamed, true_name
from icesql.errors import DataError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.quoting import literal, quoted

if TYPE_CHECKING:
    import pyarrow as pa


# ------------------------------------------------------------------ intervals that Arrow lacks
# Arrow has nanoseconds in 64 bits for the time part; DuckDB's export to it overflows for longer
# intervals without an error.


_MOST_HOURS: Final = (1 << 63) // 3_600_000_000_000
_PROBLEM: Final = (
    "'an interval with more than 292 years in hours, minutes or seconds has no value in a result; "
    "CAST it to VARCHAR'"
)


def without_long_intervals(column: str, declared: ResultType) -> str:
    """SQL for ``column`` that raises an error if a value, at any depth, is too long."""
    too_long = _too_long(column, declared, 0)
    return (
        column
        if too_long is None
        else f"CASE WHEN {too_long} THEN error({_PROBLEM}) ELSE {column} END"
    )


def _too_long(value: str, declared: ResultType, depth: int) -> str | None:
    """SQL that is true if ``value`` contains too long an interval; None for other types."""
    match declared.kind:
        case "interval":
            return f"abs(date_part('hour', {value})) >= {_MOST_HOURS}"
        case "list":
            return _any_too_long(value, declared.children[0][1], depth)
        case "map":
            (_, key), (_, item) = declared.children
            parts = [
                _any_too_long(f"map_keys({value})", key, depth),
                _any_too_long(f"map_values({value})", item, depth),
            ]
        case "struct" | "tuple":
            parts = [
                _too_long(f"struct_extract_at({value}, {place})", child, depth)
                for place, (_, child) in enumerate(declared.children, start=1)
            ]
        case "union":
            parts = [
                _too_long(f"union_extract({value}, {literal(name)})", child, depth)
                for name, child in declared.children
            ]
        case _:
            return None
    found = [f"coalesce({part}, false)" for part in parts if part is not None]
    return f"({' OR '.join(found)})" if found else None


def _any_too_long(values: str, element: ResultType, depth: int) -> str | None:
    inner = _too_long(f"e{depth}", element, depth + 1)
    return inner and f"len(list_filter({values}, lambda e{depth}: {inner})) > 0"


# ------------------------------------------------------------------ the contract


Row = tuple[Any, ...]


class ResultType(Frozen):
    """One type of the contract; ``name`` is its SQL spelling, ``kind`` the key into the tables."""

    kind: str
    precision: int = 0
    scale: int = 0
    children: tuple[tuple[str, ResultType], ...] = ()

    def __post_init__(self) -> None:
        # Arrow's C interface ends names of fields at this character.
        if any("\0" in name for name, _ in self.children):
            raise DataError("a key with the character NUL cannot be the name of a field")

    def has(self, kind: str) -> bool:
        """True if this type is of the kind, or has one of it inside."""
        return self.kind == kind or any(child.has(kind) for _, child in self.children)

    @property
    def name(self) -> str:
        """SQL spelling such as ``decimal(10,2)`` or ``struct(a bigint)``."""
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "list":
                return f"{self.children[0][1].name}[]"
            case "struct" | "union":
                inner = ", ".join(f"{name} {child.name}" for name, child in self.children)
                return f"{self.kind}({inner})"
            case "tuple":
                return f"tuple({', '.join(child.name for _, child in self.children)})"
            case "map":
                return f"map({self.children[0][1].name}, {self.children[1][1].name})"
            case _:
                return self.kind

    @property
    def is_nested(self) -> bool:
        """True if values contain values of other types."""
        return self.kind in ("list", "struct", "tuple", "map", "union")


class ResultColumn(Frozen):
    """A column of a result: its name in the statement, and its declared type."""

    name: str
    type: ResultType


# Arrow's types of kinds, by pyarrow's names for them; other kinds are strings or in ``arrow_type``.
_ARROW: Final = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "integer": "int32",
    "bigint": "int64",
    "ubigint": "uint64",
    "float": "float",
    "double": "double",
    "date": "date32",
    "time": "time64[us]",
    "time_ns": "time64[ns]",
    "timestamp": "timestamp[us]",
    "timestamp_ns": "timestamp[ns]",
    "blob": "binary",
    "interval": "month_day_nano_interval",
    "null": "null",
}
# The kinds of DuckDB's types.
_KINDS: Final = {
    **{kind: kind for kind in (*_ARROW, "hugeint", "timestamptz_ns", "varchar", "variant", "uuid")},
    **dict.fromkeys(("json", "html", "enum", "bit", "bignum", "type"), "varchar"),
    **dict.fromkeys(("timestamp_s", "timestamp_ms"), "timestamp"),
    "uhugeint": "hugeint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "uinteger": "bigint",
    "timestamp with time zone": "timestamptz",
    "time with time zone": "timetz",
    "geometry": "blob",
}
# Kinds for which the engine has no Arrow type, and the types that it casts them to.
_CARRIED: Final = {"hugeint": "DECIMAL(38,0)", "timetz": "VARCHAR", "variant": "JSON"}


def declare(engine_type: Any) -> ResultType:
    """The declared type of a DuckDB type (an object with ``id`` and ``children``).

    Raises UnsupportedSqlError for a type outside the contract.
    """
    kind = str(engine_type.id).lower()
    match kind:
        case "decimal":
            parts = dict(engine_type.children)
            return ResultType("decimal", int(parts["precision"]), int(parts["scale"]))
        case "list" | "array":
            return ResultType("list", children=(("element", declare(engine_type.children[0][1])),))
        case "map":
            (_, key), (_, item) = engine_type.children
            # Arrow has no map with keys of type null, and such a map is always empty.
            keys = ResultType("varchar") if str(key.id) == "null" else declare(key)
            return ResultType("map", children=(("key", keys), ("value", declare(item))))
        case "struct":
            inner = tuple(
                (true_name(str(name)), declare(child)) for name, child in engine_type.children
            )
        case "tuple":
            # Arrow's fields need names: use the engine's names for unnamed fields.
            fields = enumerate(engine_type.children, start=1)
            inner = tuple((f"element{place}", declare(child)) for place, (_, child) in fields)
        case "union":
            # The first child is the tag.
            inner = tuple((str(name), declare(child)) for name, child in engine_type.children[1:])
        case _ if kind in _KINDS:
            return ResultType(_KINDS[kind])
        case _:
            hint = "CAST it to a type that icesql returns"
            raise UnsupportedSqlError(f"a result of type {engine_type}", hint=hint)
    return ResultType(kind, children=inner)


def declared_expression(column: str, engine_type: Any) -> str:
    """SQL that converts ``column`` of an engine type to its declared type."""
    kind = str(engine_type.id).lower()
    declared = declare(engine_type)
    if declared.is_nested:
        sql_type = engine_sql_type(declared)
        if sql_type != str(engine_type):
            column = f"CAST({column} AS {sql_type})"
    if declared.is_nested or declared.kind == "interval":
        return without_long_intervals(column, declared)
    if kind not in _CARRIED and declared.kind in (kind, "timestamptz"):
        return column
    return f"CAST({column} AS {engine_sql_type(declared)})"


def selected(query: str, expressions: Sequence[str]) -> str:
    """Expressions over columns ``q.c0``, ``q.c1`` … of a query; if just those, the query itself."""
    names = [f"c{index}" for index in range(len(expressions))]
    if all(each == f"q.{name}" for each, name in zip(expressions, names, strict=True)):
        return query
    values = ", ".join(f"{each} AS {name}" for each, name in zip(expressions, names, strict=True))
    return f"SELECT {values} FROM ({query}\n) AS q({', '.join(names)})"


def engine_sql_type(declared: ResultType) -> str:
    """The DuckDB spelling of a declared type."""
    match declared.kind:
        case "decimal":
            return f"DECIMAL({declared.precision},{declared.scale})"
        case "list":
            return f"{engine_sql_type(declared.children[0][1])}[]"
        case "struct" | "union":
            names = [name for name, _ in declared.children]
            if declared.kind == "struct":
                names = engine_names(names)
            inner = ", ".join(
                f"{quoted(name)} {engine_sql_type(child)}"
                for name, (_, child) in zip(names, declared.children, strict=True)
            )
            return f"{declared.kind.upper()}({inner})"
        case "tuple" if declared.children:
            return f"TUPLE({', '.join(engine_sql_type(child) for _, child in declared.children)})"
        case "map":
            key, value = (engine_sql_type(child) for _, child in declared.children)
            return f"MAP({key}, {value})"
        case "timestamptz":
            return "TIMESTAMP WITH TIME ZONE"
        case "null":
            return '"NULL"'
        case kind if kind in _CARRIED:
            return _CARRIED[kind]
        case kind:
            return kind.upper()


def unique_names(names: Sequence[str], *, ignore_case: bool = True) -> list[str]:
    """The names, made unique by suffixes ``_1``, ``_2`` …, as DuckDB's COPY does."""
    taken: set[str] = set()
    made = []
    for name in names:
        numbers = count(1)
        found = name
        while (key := found.lower() if ignore_case else found) in taken:
            found = f"{name}_{next(numbers)}"
        taken.add(key)
        made.append(found)
    return made


# ------------------------------------------------------------------ Arrow


def arrow_type(declared: ResultType) -> pa.DataType:
    """The Arrow type of a declared type; zones are UTC, children nullable."""
    import pyarrow as pa

    match declared.kind:
        case "decimal":
            return pa.decimal128(declared.precision, declared.scale)
        case "list":
            return pa.list_(pa.field("element", arrow_type(declared.children[0][1])))
        case "struct" | "tuple":
            return pa.struct([(name, arrow_type(child)) for name, child in declared.children])
        case "union":
            return pa.sparse_union(
                [pa.field(name, arrow_type(child)) for name, child in declared.children]
            )
        case "map":
            return pa.map_(*(arrow_type(child) for _, child in declared.children))
        case "hugeint":
            return pa.decimal128(38, 0)
        case "timestamptz":
            return pa.timestamp("us", tz="UTC")
        case "timestamptz_ns":
            return pa.timestamp("ns", tz="UTC")
        case "uuid":
            return pa.uuid()
        case kind:
            return pa.type_for_alias(_ARROW.get(kind, "string"))


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


def uuids(texts: pa.Array) -> pa.Array:
    """UUIDs from their texts, as both engines write them."""
    import pyarrow as pa

    digits = (text and text.replace("-", "") for text in texts.to_pylist())
    stored = [None if each is None else bytes.fromhex(each) for each in digits]
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(stored, pa.binary(16)))


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(wanted, pa.UuidType) and not isinstance(column.type, pa.UuidType):
        return uuids(column)
    try:
        return column.cast(wanted)
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"a value of type {wanted} has no place in a result; CAST it to VARCHAR"
        ) from error
