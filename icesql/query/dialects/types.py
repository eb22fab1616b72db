"""Types of expressions in other dialects, from Iceberg types and casts, and as DuckDB types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.quoting import quoted


class SqlType(Frozen):
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


_T: Final = exp.DataType.Type
# The types without parts: the kind, the names of DuckDB, of sqlglot in casts, and of Iceberg. Spark
# reads a UUID as a text. It has no nanosecond types; the engine compares their values exactly.
_ROWS: Final = [
    [column.strip() for column in line.split("|")]
    for line in """
    boolean       | BOOLEAN     | BOOLEAN                            | boolean
    tinyint       | TINYINT     | TINYINT                            |
    smallint      | SMALLINT    | SMALLINT                           |
    int           | INT         | INT                                | int
    bigint        | BIGINT      | BIGINT                             | long
    float         | FLOAT       | FLOAT                              | float
    double        | DOUBLE      | DOUBLE                             | double
    string        | VARCHAR     | TEXT VARCHAR CHAR                  | string
    binary        | BLOB        | BINARY VARBINARY                   | binary fixed
    date          | DATE        | DATE                               | date
    timestamp     | TIMESTAMPTZ | TIMESTAMP TIMESTAMPTZ TIMESTAMPLTZ | timestamptz timestamptz_ns
    timestamp_ntz | TIMESTAMP   | TIMESTAMPNTZ                       | timestamp timestamp_ns
    uuid          | UUID        |                                    | uuid
    variant       |             |                                    | variant
    null          |             | NULL                               |
    """.strip().splitlines()
]
_DUCKDB: Final = {kind: name for kind, name, *_ in _ROWS} | dict.fromkeys(INTERVALS, "INTERVAL")
NAMED: Final[dict[Any, SqlType]] = {
    _T[name]: SqlType(kind) for kind, _, names, _ in _ROWS for name in names.split()
}
_ICEBERG: Final = {name: SqlType(kind) for kind, *_, names in _ROWS for name in names.split()}


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
            return _ICEBERG.get(str(node).partition("[")[0], UNKNOWN)


def of_cast(to: exp.DataType) -> SqlType | None:
    """The type of a cast's target, None for an unknown type."""
    match to.this:
        case _T.DECIMAL:
            sizes = [int(each.this.name) for each in to.expressions]
            if len(sizes) > 2 or (sizes and not 0 < sizes[0] <= MOST_DIGITS):
                return None
            precision = sizes[0] if sizes else 10
            scale = sizes[1] if len(sizes) == 2 else 0
            return SqlType("decimal", precision, scale) if 0 <= scale <= precision else None
        case _T.ARRAY | _T.MAP | _T.STRUCT as outer:
            listed, named = to.expressions, outer == _T.STRUCT
            inner = [each.args.get("kind") if named else each for each in listed]
            parts = tuple(found for each in inner if each and (found := of_cast(each)))
            if len(parts) != {_T.ARRAY: 1, _T.MAP: 2}.get(outer, len(listed) or 1):
                return None
            names = tuple(each.name for each in listed) if named else ()
            return SqlType(outer.name.lower(), parts=parts, names=names)
        case _:
            return None if to.expressions else NAMED.get(to.this)


def of_engine(kind: str) -> SqlType:
    """The type with this name in DuckDB, UNKNOWN for other names."""
    if not kind:
        return UNKNOWN
    if kind == "TIMESTAMP":
        return NTZ
    return of_cast(exp.DataType.build(kind, dialect="duckdb")) or UNKNOWN


def duckdb_name(of: SqlType) -> str | None:
    """The name of a type in DuckDB, None if a part of it is unknown."""
    parts = [duckdb_name(each) for each in of.parts]
    if None in parts:
        return None
    match of.kind:
        case "decimal":
            return f"DECIMAL({of.precision},{of.scale})"
        case "array" if parts:
            return f"{parts[0]}[]"
        case "map":
            return f"MAP({parts[0]}, {parts[1]})"
        case "struct":
            named = zip(map(quoted, of.names), parts, strict=True)
            return f"STRUCT({', '.join(f'{name} {part}' for name, part in named)})"
        case _:
            return _DUCKDB.get(of.kind) or None


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
