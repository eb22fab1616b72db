"""Iceberg types and values as Arrow types and arrays: the schema that ``read/`` yields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import CorruptFileError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.schema import Schema
from icesql.scan.tasks import ScanContext

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


# ------------------------------------------------------------------ values


_COUNTED = (
    t.TimeType,
    t.AnyTimestamp,
)


def one_value(value: Any, type: t.IcebergType) -> pa.Array:
    """An array of this one value (internal form, None for NULL) in ``arrow_type(type)``."""
    return column_of([value], type)


def column_of(values: Sequence[Any], type: t.IcebergType) -> pa.Array:
    """An array of values in internal form, None for NULL, in ``arrow_type(type)``.

    Structs are dicts by field id; a child that is left out takes its initial default. Maps are
    dicts or pairs.
    """
    match type:
        case t.StructType(()):
            return pa.array([None if value is None else {} for value in values], pa.struct([]))
        case t.StructType(fields):
            missing = pa.array([value is None for value in values], pa.bool_())
            children = [
                column_of([_child(value, child) for value in values], child.type)
                for child in fields
            ]
            kinds = [arrow_field(child) for child in fields]
            return pa.StructArray.from_arrays(children, fields=kinds, mask=missing)
        case t.ListType():
            items = [item for value in values for item in value or ()]
            return pa.ListArray.from_arrays(
                offsets(values), column_of(items, type.element), type=arrow_type(type)
            )
        case t.MapType():
            pairs = [pair for value in values for pair in _pairs(value)]
            return pa.MapArray.from_arrays(
                offsets(values),
                column_of([key for key, _ in pairs], type.key),
                column_of([item for _, item in pairs], type.value),
                type=arrow_type(type),
            )
        case t.DateType():
            return pa.array(values, pa.int32()).view(pa.date32())
        case t.UUIDType():
            return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))
        case _ if isinstance(type, _COUNTED):
            return pa.array(values, pa.int64()).view(arrow_type(type))
        case _:
            return pa.array(values, arrow_type(type))


def _child(value: Any, child: t.NestedField) -> Any:
    default = None if child.initial_default is t.MISSING else child.initial_default
    return None if value is None else value.get(child.field_id, default)


def _pairs(value: Any) -> Iterable[Any]:
    return value.items() if isinstance(value, Mapping) else value or ()


def offsets(values: Sequence[Any]) -> pa.Array:
    """Offsets of lists, with NULL where a list is NULL."""
    *begins, end = accumulate((len(value or ()) for value in values), initial=0)
    known = [None if value is None else at for value, at in zip(values, begins, strict=True)]
    return pa.array([*known, end], pa.int32())


def repeated(value: pa.Array, count: int) -> pa.Array:
    """The single value of an array, ``count`` times."""
    if value.null_count:
        return pa.nulls(count, value.type)
    if isinstance(value, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(value.type, repeated(value.storage, count))
    return pc.take(value, pa.array(np.zeros(count, np.int32)))


# ------------------------------------------------------------------ partition values of a file


def partition_constants(file: DataFile, context: ScanContext, location: str) -> Mapping[int, Any]:
    """Source field id → value (internal form) for the identity fields of the file's spec.

    A value that the manifest does not have is left out: the file itself may have the column.
    Raises CorruptFileError for a spec that the table does not have.
    """
    spec = context.specs.get(file.spec_id)
    if spec is None:
        raise CorruptFileError(location, f"unknown partition spec {file.spec_id}")
    return {
        each.source_id: value
        for each, value in zip(spec.fields, file.partition, strict=False)
        if each.transform.lower() == "identity" and value is not UNSTORED
    }
