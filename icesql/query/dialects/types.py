"""Types of expressions in other dialects, from Iceberg types and casts, and as DuckDB types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.quoting import quoted


class SqlType(Struct, frozen=True):
    """A type: its ``kind`` as Spark names it, digits of a decimal, parts of a nested type.

    The dialects of Trino and Snowflake use only the kind and may leave digits and parts out.

    ``parts`` are the element of an array, key and value of a map, the fields of a struct;
    ``names`` are the names of the fields. Kind "null" is the type of NULL, "unknown" is undecided.
    """

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple[SqlType, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array" | "map":
                return f"{self.kind}<{', '.join(map(str, self.parts))}>"
            case "struct":
                named = zip(self.names, self.parts, strict=True)
                return f"struct<{', '.join(f'{name}: {each}' for name, each in named)}>"
            case _:
                return self.kind

    @property
    def element(self) -> SqlType:
        """The type of an array's elements."""
        return self.parts[0] if self.parts else UNKNOWN


BOOLEAN: Final = SqlType("boolean")
TINYINT: Final = SqlType("tinyint")
SMALLINT: Final = SqlType("smallint")
INT: Final = SqlType("int")
BIGINT: Final = SqlType("bigint")
FLOAT: Final = SqlType("float")
DOUBLE: Final = SqlType("double")
STRING: Final = SqlType("string")
BINARY: Final = SqlType("binary")
DATE: Final = SqlType("date")
TIMESTAMP: Final = SqlType("timestamp")
NTZ: Final = SqlType("timestamp_ntz")
MONTHS: Final = SqlType("interval year to month")
TIME_SPAN: Final = SqlType("interval day to second")
UUID: Final = SqlType("uuid")
VARIANT: Final = SqlType("variant")
NULL: Final = SqlType("null")
UNKNOWN: Final = SqlType("unknown")

INTEGRAL: Final = ("tinyint", "smallint", "int", "bigint")
FRACTIONAL: Final = ("float", "double")
NUMERIC: Final = (*INTEGRAL, "decimal", *FRACTIONAL)
INTERVALS: Final = (MONTHS.kind, TIME_SPAN.kind)
MOMENTS: Final = ("date", "timestamp_ntz", "timestamp")
SCALAR: Final = (*NUMERIC, *MOMENTS, "boolean", "string", "binary", "null")
# The decimal digits needed for every value of an integral type.
DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
MOST_DIGITS: Final = 38


def decimal(precision: int, scale: int) -> SqlType:
    """A decimal type, limited to 38 digits as in Spark: at least six remain after the point."""
    if precision > MOST_DIGITS:
        whole = precision - scale
        scale = max(MOST_DIGITS - whole, min(scale, 6))
        precision = MOST_DIGITS
    return SqlType("decimal", precision, scale)


def array(element: SqlType) -> SqlType:
    """An array type."""
    return SqlType("array", parts=(element,))


def map_of(key: SqlType, value: SqlType) -> SqlType:
    """A map type."""
    return SqlType("map", parts=(key, value))


def struct(names: Sequence[str], parts: Sequence[SqlType]) -> SqlType:
    """A struct type."""
    return SqlType("struct", parts=tuple(parts), names=tuple(names))


_ICEBERG: Final[dict[type, SqlType]] = {
    t.BooleanType: BOOLEAN,
    t.IntegerType: INT,
    t.LongType: BIGINT,
    t.FloatType: FLOAT,
    t.DoubleType: DOUBLE,
    t.DateType: DATE,
    t.TimestampType: NTZ,
    t.TimestamptzType: TIMESTAMP,
    # Spark has no nanosecond types. The engine compares their values exactly.
    t.TimestampNanoType: NTZ,
    t.TimestamptzNanoType: TIMESTAMP,
    t.VariantType: VARIANT,
    t.StringType: STRING,
    t.BinaryType: BINARY,
    t.FixedType: BINARY,
    # Spark reads a UUID as a text.
    t.UUIDType: UUID,
}


def of_iceberg(node: t.IcebergType) -> SqlType:
    """The type of an Iceberg column."""
    match node:
        case t.DecimalType(precision, scale):
            return SqlType("decimal", precision, scale)
        case t.ListType():
            return array(of_iceberg(node.element))
        case t.MapType():
            return map_of(of_iceberg(node.key), of_iceberg(node.value))
        case t.StructType(fields):
            return struct(
                [each.name for each in fields], [of_iceberg(each.type) for each in fields]
            )
        case _:
            return _ICEBERG.get(type(node), UNKNOWN)


_T: Final = exp.DataType.Type
# The types of casts without sizes.
NAMED: Final[dict[Any, SqlType]] = {
    _T.BOOLEAN: BOOLEAN,
    _T.TINYINT: TINYINT,
    _T.SMALLINT: SMALLINT,
    _T.INT: INT,
    _T.BIGINT: BIGINT,
    _T.FLOAT: FLOAT,
    _T.DOUBLE: DOUBLE,
    _T.TEXT: STRING,
    _T.VARCHAR: STRING,
    _T.CHAR: STRING,
    _T.BINARY: BINARY,
    _T.VARBINARY: BINARY,
    _T.DATE: DATE,
    _T.TIMESTAMP: TIMESTAMP,
    _T.TIMESTAMPTZ: TIMESTAMP,
    _T.TIMESTAMPLTZ: TIMESTAMP,
    _T.TIMESTAMPNTZ: NTZ,
    _T.NULL: NULL,
}


def of_cast(to: exp.DataType) -> SqlType | None:
    """The type of a cast's target, None for an unknown type."""
    inner = [each for each in to.expressions if isinstance(each, exp.DataType)]
    match to.this:
        case _T.DECIMAL:
            sizes = [int(each.this.name) for each in to.expressions]
            if len(sizes) > 2 or (sizes and not 0 < sizes[0] <= MOST_DIGITS):
                return None
            precision = sizes[0] if sizes else 10
            scale = sizes[1] if len(sizes) == 2 else 0
            return SqlType("decimal", precision, scale) if 0 <= scale <= precision else None
        case _T.ARRAY if len(inner) == 1:
            element = of_cast(inner[0])
            return None if element is None else array(element)
        case _T.MAP if len(inner) == 2:
            key, value = of_cast(inner[0]), of_cast(inner[1])
            return None if key is None or value is None else map_of(key, value)
        case _T.STRUCT:
            return _struct_of_cast(to)
        case _:
            return None if to.expressions else NAMED.get(to.this)


def of_engine(kind: str) -> SqlType:
    """The type with this name in DuckDB, UNKNOWN for other names."""
    if not kind:
        return UNKNOWN
    if kind == "TIMESTAMP":
        return of_iceberg(t.TIMESTAMP)
    return of_cast(exp.DataType.build(kind, dialect="duckdb")) or UNKNOWN


def _struct_of_cast(to: exp.DataType) -> SqlType | None:
    names, parts = [], []
    for each in to.expressions:
        kind = each.args.get("kind")
        found = of_cast(kind) if isinstance(kind, exp.DataType) else None
        if found is None:
            return None
        names.append(each.name)
        parts.append(found)
    return struct(names, parts) if parts else None


_DUCKDB: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "uuid": "UUID",
    MONTHS.kind: "INTERVAL",
    TIME_SPAN.kind: "INTERVAL",
}


def duckdb_name(of: SqlType) -> str | None:
    """The name of a type in DuckDB, None if a part of it is unknown."""
    match of.kind:
        case "decimal":
            return f"DECIMAL({of.precision},{of.scale})"
        case "array":
            element = duckdb_name(of.element)
            return None if element is None else f"{element}[]"
        case "map":
            key, value = duckdb_name(of.parts[0]), duckdb_name(of.parts[1])
            return None if key is None or value is None else f"MAP({key}, {value})"
        case "struct":
            parts = [duckdb_name(each) for each in of.parts]
            if None in parts:
                return None
            named = zip(map(quoted, of.names), parts, strict=True)
            return f"STRUCT({', '.join(f'{name} {part}' for name, part in named)})"
        case _:
            return _DUCKDB.get(of.kind)


def duckdb_type(of: SqlType) -> exp.DataType | None:
    """The type as a node of DuckDB's dialect; None if a part of it is unknown."""
    name = duckdb_name(of)
    return None if name is None else exp.DataType.build(name, dialect="duckdb")


def as_decimal(of: SqlType) -> SqlType:
    """The decimal type with the digits of an integral type."""
    return of if of.kind == "decimal" else SqlType("decimal", DIGITS[of.kind], 0)


def common(one: SqlType, other: SqlType) -> SqlType | None:
    """The common type of two types in ANSI mode; None if there is none."""
    if one == other or other.kind == "null":
        return one
    if one.kind == "null":
        return other
    if one.kind in NUMERIC and other.kind in NUMERIC:
        return _common_number(one, other)
    kinds = {one.kind, other.kind}
    if "string" in kinds:
        return _beside_text(other if one.kind == "string" else one)
    if kinds <= set(MOMENTS):
        return TIMESTAMP if "timestamp" in kinds else NTZ
    if one.kind == other.kind and one.kind in ("array", "map", "struct"):
        if len(one.parts) != len(other.parts):
            return None
        parts = [common(a, b) for a, b in zip(one.parts, other.parts, strict=True)]
        if None in parts or [n.lower() for n in one.names] != [n.lower() for n in other.names]:
            return None
        return SqlType(one.kind, parts=tuple(each for each in parts if each), names=one.names)
    return None


def _beside_text(other: SqlType) -> SqlType | None:
    """The common type of text and another type: ANSI mode casts the text."""
    if other.kind in INTEGRAL:
        return BIGINT
    if other.kind in ("decimal", *FRACTIONAL):
        return DOUBLE
    return other if other.kind in (*MOMENTS, "boolean", "binary") else None


def _common_number(one: SqlType, other: SqlType) -> SqlType:
    kinds = {one.kind, other.kind}
    if kinds & set(FRACTIONAL):
        return FLOAT if kinds == {"float"} else DOUBLE
    if "decimal" in kinds:
        one, other = as_decimal(one), as_decimal(other)
        scale = max(one.scale, other.scale)
        return decimal(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)
    return max(one, other, key=lambda each: INTEGRAL.index(each.kind))
