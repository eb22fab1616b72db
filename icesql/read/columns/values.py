"""Values in icesql's internal form as Arrow arrays: defaults, partition constants, literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icesql.iceberg import types as t
from icesql.read.columns.arrow_schema import arrow_field, arrow_type

_COUNTED = (
    t.TimeType,
    t.TimestampType,
    t.TimestamptzType,
    t.TimestampNanoType,
    t.TimestamptzNanoType,
)


def one_value(value: Any, type: t.IcebergType) -> pa.Array:
    """An array of this one value (internal form, None for NULL) in ``arrow_type(type)``.

    Struct children that a default leaves out take their own initial default.
    """
    if value is None:
        return pa.nulls(1, arrow_type(type))
    match type:
        case t.StructType(fields):
            return _one_struct(value, fields)
        case t.ListType():
            items = [one_value(item, type.element) for item in value]
            return pa.ListArray.from_arrays(
                pa.array([0, len(items)], pa.int32()),
                _concatenate(items, type.element),
                type=arrow_type(type),
            )
        case t.MapType():
            pairs = list(value.items() if isinstance(value, dict) else value)
            return pa.MapArray.from_arrays(
                pa.array([0, len(pairs)], pa.int32()),
                _concatenate([one_value(key, type.key) for key, _ in pairs], type.key),
                _concatenate([one_value(item, type.value) for _, item in pairs], type.value),
                type=arrow_type(type),
            )
        case t.DateType():
            return pa.array([value], pa.int32()).view(pa.date32())
        case t.UUIDType():
            return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value], pa.binary(16)))
        case _ if isinstance(type, _COUNTED):
            return pa.array([value], pa.int64()).view(arrow_type(type))
        case _:
            return pa.array([value], arrow_type(type))


def column_of(values: Sequence[Any], type: t.IcebergType) -> pa.Array:
    """An array of values in internal form, None for NULL, in ``arrow_type(type)``.

    Structs are dicts by field id; a child that is left out is NULL.
    """
    match type:
        case t.StructType(fields):
            missing = pa.array([value is None for value in values], pa.bool_())
            children = [
                column_of(
                    [None if value is None else value.get(child.field_id) for value in values],
                    child.type,
                )
                for child in fields
            ]
            kinds = [arrow_field(child) for child in fields]
            return pa.StructArray.from_arrays(children, fields=kinds, mask=missing)
        case t.ListType():
            items = [item for value in values for item in value or ()]
            return pa.ListArray.from_arrays(
                _offsets(values), column_of(items, type.element), type=arrow_type(type)
            )
        case t.MapType():
            pairs = [pair for value in values for pair in (value or {}).items()]
            return pa.MapArray.from_arrays(
                _offsets(values),
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


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Offsets of lists, with NULL where a list is NULL."""
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)])
    missing = np.array([*(value is None for value in values), False])
    return pa.array(ends.astype(np.int32), mask=missing)


def repeated(value: pa.Array, count: int) -> pa.Array:
    """The single value of an array, ``count`` times."""
    if value.null_count:
        return pa.nulls(count, value.type)
    if isinstance(value, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(value.type, repeated(value.storage, count))
    return pc.take(value, pa.array(np.zeros(count, np.int32)))


def _one_struct(value: Any, fields: tuple[t.NestedField, ...]) -> pa.Array:
    if not fields:
        return pa.array([{}], pa.struct([]))
    children = []
    for child in fields:
        default = None if child.initial_default is t.MISSING else child.initial_default
        children.append(one_value(value.get(child.field_id, default), child.type))
    return pa.StructArray.from_arrays(children, fields=[arrow_field(child) for child in fields])


def _concatenate(items: list[pa.Array], type: t.IcebergType) -> pa.Array:
    return pa.concat_arrays(items) if items else pa.nulls(0, arrow_type(type))
