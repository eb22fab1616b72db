"""The DuckDB types for Iceberg types, for the columns that a scan exposes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icesql.engine.struct_names import engine_names
from icesql.iceberg import types as t
from icesql.quoting import literal, quoted

_TYPES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimeType: "TIME",
    t.TimestampType: "TIMESTAMP",
    t.TimestamptzType: "TIMESTAMPTZ",
    t.TimestampNanoType: "TIMESTAMP_NS",
    t.TimestamptzNanoType: "TIMESTAMPTZ_NS",
    t.UUIDType: "UUID",
    t.UnknownType: '"NULL"',
    **dict.fromkeys((t.StringType, t.VariantType), "VARCHAR"),
    **dict.fromkeys((t.FixedType, t.BinaryType, t.GeometryType, t.GeographyType), "BLOB"),
}


def duckdb_type(node: t.IcebergType) -> str:
    """The DuckDB type that holds every value of an Iceberg type.

    fixed, binary and geo (WKB) are BLOB; variant is its JSON text; unknown is DuckDB's NULL type.
    """
    match node:
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
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
            return _TYPES[type(node)]


def column_types(columns: Iterable[t.NestedField]) -> str:
    """``{'name': 'TYPE', …}`` for file readers: names and types are quoted literals."""
    pairs = [f"{literal(each.name)}: {literal(duckdb_type(each.type))}" for each in columns]
    return "{" + ", ".join(pairs) + "}"
