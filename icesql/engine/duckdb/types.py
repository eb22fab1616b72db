"""The DuckDB types for Iceberg types, for the columns that a scan exposes."""

from __future__ import annotations

from collections.abc import Iterable

from icesql.engine.struct_names import engine_names
from icesql.iceberg import types as t


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def duckdb_type(node: t.IcebergType) -> str:
    """The DuckDB type that holds every value of an Iceberg type.

    fixed, binary and geo (WKB) are BLOB; variant is its JSON text; unknown is DuckDB's NULL type.
    """
    match node:
        case t.BooleanType():
            return "BOOLEAN"
        case t.IntegerType():
            return "INTEGER"
        case t.LongType():
            return "BIGINT"
        case t.FloatType():
            return "FLOAT"
        case t.DoubleType():
            return "DOUBLE"
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case t.DateType():
            return "DATE"
        case t.TimeType():
            return "TIME"
        case t.TimestampType():
            return "TIMESTAMP"
        case t.TimestamptzType():
            return "TIMESTAMPTZ"
        case t.TimestampNanoType():
            return "TIMESTAMP_NS"
        case t.TimestamptzNanoType():
            return "TIMESTAMPTZ_NS"
        case t.StringType() | t.VariantType():
            return "VARCHAR"
        case t.UUIDType():
            return "UUID"
        case t.FixedType() | t.BinaryType() | t.GeometryType() | t.GeographyType():
            return "BLOB"
        case t.UnknownType():
            return '"NULL"'
        case t.StructType(fields):
            names = engine_names(each.name for each in fields)
            inner = ", ".join(
                f"{quoted(name)} {duckdb_type(each.type)}"
                for name, each in zip(names, fields, strict=True)
            )
            return f"STRUCT({inner})"
        case t.ListType():
            return f"{duckdb_type(node.element)}[]"
        case t.MapType():
            return f"MAP({duckdb_type(node.key)}, {duckdb_type(node.value)})"
        case _:
            raise AssertionError(f"unreachable type {node!r}")


def column_types(columns: Iterable[t.NestedField]) -> str:
    """``{'name': 'TYPE', …}`` for file readers: names and types are quoted literals."""
    pairs = [f"{literal(each.name)}: {literal(duckdb_type(each.type))}" for each in columns]
    return "{" + ", ".join(pairs) + "}"
