"""Values in icesql's internal form as Arrow arrays: defaults, partition constants, literals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icesql.iceberg import types as t
from icesql.read.columns.arrow_schema import arrow_field, arrow_type

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
