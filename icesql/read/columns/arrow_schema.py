"""Iceberg types as Arrow types: the schema that ``read/`` yields.

    boolean bool · int int32 · long int64 · float float32 · double float64
    decimal(p, s) decimal128(p, s) · date date32 · time time64[us]
    timestamp timestamp[us] · timestamptz timestamp[us, UTC] · *_ns the same in ns
    string string · uuid the extension arrow.uuid · fixed[n] fixed_size_binary[n] · binary binary
    geometry, geography binary (WKB) · variant string (JSON text, see ``variant``) · unknown null
    struct struct · list list · map map

Every field is nullable (a required child of a null struct has no value) and carries its field id
as ``PARQUET:field_id``.
"""

from __future__ import annotations

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema

FIELD_ID = b"PARQUET:field_id"
# A variant as files hold it.
VARIANT_BYTES = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


def arrow_type(node: t.IcebergType) -> pa.DataType:
    """The Arrow type of values of an Iceberg type."""
    match node:
        case t.BooleanType():
            return pa.bool_()
        case t.IntegerType():
            return pa.int32()
        case t.LongType():
            return pa.int64()
        case t.FloatType():
            return pa.float32()
        case t.DoubleType():
            return pa.float64()
        case t.DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case t.DateType():
            return pa.date32()
        case t.TimeType():
            return pa.time64("us")
        case t.TimestampType():
            return pa.timestamp("us")
        case t.TimestamptzType():
            return pa.timestamp("us", tz="UTC")
        case t.TimestampNanoType():
            return pa.timestamp("ns")
        case t.TimestamptzNanoType():
            return pa.timestamp("ns", tz="UTC")
        case t.VariantType(binary=True):
            return VARIANT_BYTES
        case t.StringType() | t.VariantType():
            return pa.string()
        case t.UUIDType():
            # DuckDB reads arrow.uuid as UUID and a bare fixed_size_binary(16) as BLOB.
            return pa.uuid()
        case t.FixedType(length):
            return pa.binary(length)
        case t.BinaryType() | t.GeometryType() | t.GeographyType():
            return pa.binary()
        case t.UnknownType():
            return pa.null()
        case t.StructType(fields):
            return pa.struct([arrow_field(child) for child in fields])
        case t.ListType():
            return pa.list_(arrow_field(node.element_field))
        case t.MapType():
            return pa.map_(
                arrow_field(node.key_field).with_nullable(False), arrow_field(node.value_field)
            )
        case _:
            raise TypeError(f"no Arrow type for {node!r}")


def arrow_field(column: t.NestedField) -> pa.Field:
    """The Arrow field of a column at any depth, with its id."""
    metadata = {FIELD_ID: str(column.field_id).encode()}
    return pa.field(column.name, arrow_type(column.type), nullable=True, metadata=metadata)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of record batches in the order of ``schema``."""
    return pa.schema([arrow_field(column) for column in schema.fields])
