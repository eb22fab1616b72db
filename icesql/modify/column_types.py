"""Iceberg types of columns: of SQL type names, and of the columns of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import ProgrammingError, UnsupportedSqlError, nearest
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.sql.writes.statements import ColumnDefinition, TypeName


def types_by_name(table: str) -> dict[str, t.IcebergType]:
    """Read a table whose lines have an Iceberg type and its names in another system."""
    rows = (line.split(": ") for line in table.strip().splitlines())
    return {name: t.parse_primitive(type) for type, names in rows for name in names.split()}


_NAMES: Final = types_by_name("""
boolean: BOOLEAN BOOL LOGICAL
int: TINYINT INT1 BYTE SMALLINT INT2 SHORT INT INTEGER INT4 SIGNED UTINYINT USMALLINT
long: BIGINT INT8 LONG UINTEGER
float: FLOAT FLOAT4 REAL
double: DOUBLE FLOAT8
string: STRING VARCHAR TEXT CHAR BPCHAR CHARACTER
binary: BINARY VARBINARY BLOB BYTEA
decimal(20,0): UBIGINT
decimal(38,0): HUGEINT
date: DATE
time: TIME
timestamp: TIMESTAMP_NTZ DATETIME TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_US
timestamptz: TIMESTAMPTZ TIMESTAMP_LTZ
timestamp_ns: TIMESTAMP_NS
timestamptz_ns: TIMESTAMPTZ_NS
uuid: UUID
variant: VARIANT
geometry: GEOMETRY
geography: GEOGRAPHY
unknown: UNKNOWN VOID
""")
_INSTEAD: Final = {
    "TIMETZ": "TIME",
    "TIME_NTZ": "TIME",
    "INTERVAL": "BIGINT or VARCHAR",
    "UHUGEINT": "DECIMAL(38, 0)",
    "JSON": "VARCHAR",
    "ENUM": "VARCHAR",
    "BIT": "VARCHAR or BLOB",
    "UNION": "STRUCT",
    "TINYTEXT": "VARCHAR",
}
_LENGTHS: Final = ("VARCHAR", "CHAR", "CHARACTER", "BPCHAR", "TEXT", "STRING")
_SPARK: Final = ("spark", "spark2", "databricks", "hive")


def column_fields(
    columns: tuple[ColumnDefinition, ...],
    dialect: str,
    default_of: Callable[[ColumnDefinition, t.IcebergType], object],
) -> tuple[t.NestedField, ...]:
    """The fields of a table's columns, with distinct ids.

    ``dialect`` decides what TIMESTAMP and DECIMAL without arguments are; ``default_of`` computes
    the default of a column that has one. Raises ProgrammingError and
    UnsupportedSqlError for bad types.
    """
    return tuple(map(_Reader(dialect.lower() in _SPARK, default_of, count(1)).field, columns))


class _Reader(Frozen):
    """Reads the definitions of one table's columns, which get the next ``ids``."""

    is_spark: bool
    default_of: Callable[[ColumnDefinition, t.IcebergType], object]
    ids: count[int]

    def field(self, column: ColumnDefinition) -> t.NestedField:
        own = next(self.ids)
        type = self._type(column.type)
        default = t.MISSING if column.default is None else self.default_of(column, type)
        return t.NestedField(
            own,
            column.name,
            type,
            column.required,
            column.comment,
            initial_default=default,
            write_default=default,
        )

    def _type(self, name: TypeName) -> t.IcebergType:
        match name.name:
            case "STRUCT" | "ROW":
                return t.StructType(tuple(map(self.field, name.fields)))
            case "ARRAY" | "LIST":
                (element,) = name.fields
                return t.ListType(next(self.ids), self._type(element.type), element.required)
            case "MAP":
                key, value = name.fields
                key_id, value_id = next(self.ids), next(self.ids)
                kinds = [self._type(each.type) for each in (key, value)]
                return t.MapType(key_id, kinds[0], value_id, kinds[1], value.required)
            case "DECIMAL" | "NUMERIC" | "DEC":
                return _decimal(name, self.is_spark)
            case "FIXED":
                return _fixed(name)
            case "TIMESTAMP":
                _check_arguments(name, most=1)
                return t.TIMESTAMPTZ if self.is_spark else t.TIMESTAMP
            case "GEOMETRY" | "GEOGRAPHY" if name.arguments:
                texts = map(str, name.arguments)
                made = t.GeometryType if name.name == "GEOMETRY" else t.GeographyType
                return made(*texts)
        found = _NAMES.get(name.name)
        if found is None:
            raise _no_type(name)
        _check_arguments(name, most=1 if name.name in (*_LENGTHS, "TIME", "TIMESTAMPTZ") else 0)
        return found


def _decimal(name: TypeName, is_spark: bool) -> t.DecimalType:
    usual = (10, 0) if is_spark else (18, 3)
    given = [each for each in name.arguments if isinstance(each, int)]
    precision, scale = (*given, 0) if len(given) == 1 else given if len(given) == 2 else usual
    if len(given) != len(name.arguments) or not 0 < precision <= 38 or scale > precision:
        raise ProgrammingError(
            f"{_shown(name)} is no decimal; it has 1 to 38 digits, as many after the point at most"
        )
    return t.DecimalType(precision, scale)


def _fixed(name: TypeName) -> t.FixedType:
    match name.arguments:
        case (int() as length,) if length > 0:
            return t.FixedType(length)
    raise ProgrammingError("FIXED has a length: FIXED(16)")


def _check_arguments(name: TypeName, *, most: int) -> None:
    if len(name.arguments) > most:
        raise ProgrammingError(f"{_shown(name)}: the type {name.name} takes no such arguments")


def _shown(name: TypeName) -> str:
    return f"{name.name}({', '.join(map(str, name.arguments))})" if name.arguments else name.name


def _no_type(name: TypeName) -> UnsupportedSqlError:
    instead = _INSTEAD.get(name.name)
    hint = f"use {instead}" if instead else nearest(name.name, _NAMES, form="did you mean {}?")
    return UnsupportedSqlError(f"a column of type {name.name}", hint=hint, offset=name.offset)


# ------------------------------------------------------------------ columns of a query


_KINDS: Final = types_by_name("""
boolean: boolean
int: tinyint smallint integer
long: bigint
decimal(20,0): ubigint
decimal(38,0): hugeint
float: float
double: double
date: date
time: time
timestamp: timestamp
timestamptz: timestamptz
timestamp_ns: timestamp_ns
timestamptz_ns: timestamptz_ns
string: varchar
uuid: uuid
binary: blob
variant: variant
""")
_CAST_TO: Final = {
    "null": "BIGINT or another type; a table of format version 3 can have it",
    "interval": "VARCHAR",
    "union": "a STRUCT",
}


def result_fields(
    columns: Sequence[ResultColumn], *, unknown: bool = False
) -> tuple[t.NestedField, ...]:
    """The table fields for the rows of a query, all optional, with distinct ids.

    ``unknown``: a column that has only NULL gets the type ``unknown``, which format v3 has.

    Raises UnsupportedSqlError for a type that tables cannot have.
    """
    ids = count(1)
    return tuple(
        t.NestedField(
            next(ids),
            each.name,
            t.UNKNOWN if unknown and each.type.kind == "null" else _type(each.type, each.name, ids),
        )
        for each in columns
    )


def _type(given: ResultType, name: str, ids: count[int]) -> t.IcebergType:
    match given.kind:
        case "decimal":
            return t.DecimalType(given.precision, given.scale)
        case "struct" | "tuple":
            return t.StructType(
                tuple(
                    t.NestedField(next(ids), own, _type(inner, f"{name}.{own}", ids))
                    for own, inner in given.children
                )
            )
        case "list":
            return t.ListType(next(ids), _type(given.children[0][1], name, ids))
        case "map":
            key, value = (inner for _, inner in given.children)
            key_id, value_id = next(ids), next(ids)
            return t.MapType(key_id, _type(key, name, ids), value_id, _type(value, name, ids))
        case kind if kind in _KINDS:
            return _KINDS[kind]
        case kind:
            raise UnsupportedSqlError(
                f'a table with column "{name}" of type {kind}',
                hint=f"CAST it to {_CAST_TO.get(kind, 'VARCHAR')}",
            )
