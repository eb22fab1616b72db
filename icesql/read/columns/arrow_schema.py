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
_SIMPLE = {
    t.BooleanType: pa.bool_(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.DateType: pa.date32(),
    t.TimeType: pa.time64("us"),
    t.TimestampType: pa.timestamp("us"),
    t.TimestamptzType: pa.timestamp("us", tz="UTC"),
    t.TimestampNanoType: pa.timestamp("ns"),
    t.TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    t.StringType: pa.string(),
    t.VariantType: pa.string(),
    # DuckDB reads arrow.uuid as UUID and a bare fixed_size_binary(16) as BLOB.
    t.UUIDType: pa.uuid(),
    t.BinaryType: pa.binary(),
    t.GeometryType: pa.binary(),
    t.GeographyType: pa.binary(),
    t.UnknownType: pa.null(),
}


def arrow_type(node: t.IcebergType) -> pa.DataType:
    """The Arrow type of values of an Iceberg type."""
    match node:
        case t.DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case t.VariantType(binary=True):
            return VARIANT_BYTES
        case t.FixedType(length):
            return pa.binary(length)
        case t.StructType(fields):
            return pa.struct([arrow_field(child) for child in fields])
        case t.ListType():
            return pa.list_(arrow_field(node.element_field))
        case t.MapType():
            return pa.map_(
                arrow_field(node.key_field).with_nullable(False), arrow_field(node.value_field)
            )
        case _ if node.__class__ in _SIMPLE:
            return _SIMPLE[node.__class__]
        case _:
            raise TypeError(f"no Arrow type for {node!r}")


def stored(array: pa.Array) -> pa.Array:
    """The values that an array of an extension type stores; any other array itself."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def arrow_field(column: t.NestedField) -> pa.Field:
    """The Arrow field of a column at any depth, with its id."""
    metadata = {FIELD_ID: str(column.field_id).encode()}
    return pa.field(column.name, arrow_type(column.type), nullable=True, metadata=metadata)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of record batches in the order of ``schema``."""
    return pa.schema([arrow_field(column) for column in schema.fields])
