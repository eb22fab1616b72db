"""Iceberg types in DuckDB's spelling, for the columns that a scan exposes."""

from __future__ import annotations

from icesql.engine.struct_names import engine_names
from icesql.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def duckdb_type(node: IcebergType) -> str:
    """The DuckDB type that holds every value of an Iceberg type.

    fixed, binary and geo (WKB) are BLOB; variant is its JSON text; unknown is DuckDB's NULL type.
    """
    match node:
        case BooleanType():
            return "BOOLEAN"
        case IntegerType():
            return "INTEGER"
        case LongType():
            return "BIGINT"
        case FloatType():
            return "FLOAT"
        case DoubleType():
            return "DOUBLE"
        case DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case DateType():
            return "DATE"
        case TimeType():
            return "TIME"
        case TimestampType():
            return "TIMESTAMP"
        case TimestamptzType():
            return "TIMESTAMPTZ"
        case TimestampNanoType():
            return "TIMESTAMP_NS"
        case TimestamptzNanoType():
            return "TIMESTAMPTZ_NS"
        case StringType() | VariantType():
            return "VARCHAR"
        case UUIDType():
            return "UUID"
        case FixedType() | BinaryType() | GeometryType() | GeographyType():
            return "BLOB"
        case UnknownType():
            return '"NULL"'
        case StructType(fields):
            names = engine_names(each.name for each in fields)
            inner = ", ".join(
                f"{quoted(name)} {duckdb_type(each.type)}"
                for name, each in zip(names, fields, strict=True)
            )
            return f"STRUCT({inner})"
        case ListType():
            return f"{duckdb_type(node.element)}[]"
        case MapType():
            return f"MAP({duckdb_type(node.key)}, {duckdb_type(node.value)})"
        case _:
            raise AssertionError(f"unreachable type {node!r}")
