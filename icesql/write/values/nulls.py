"""NULL structs with required fields: what is below has values, or no file can be written."""

from __future__ import annotations

import pyarrow as pa


def null_array(count: int, type: pa.DataType) -> pa.Array:
    """``count`` times NULL."""
    if not pa.types.is_struct(type) or not type.num_fields or not count:
        return pa.nulls(count, type)
    children = []
    for field in type:
        made = null_array(count, field.type)
        children.append(made if field.nullable else without_nulls(made))
    mask = pa.repeat(pa.scalar(True), count)
    return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)


def without_nulls(array: pa.Array) -> pa.Array:
    """The array with some value in each place: those of fields of a struct that is NULL there."""
    if not array.null_count:
        return array
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, without_nulls(array.storage))
    if pa.types.is_struct(array.type):
        children = [array.field(place) for place in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    if pa.types.is_map(array.type):
        offsets = array.offsets.fill_null(0)
        return pa.MapArray.from_arrays(offsets, array.keys, array.items, type=array.type)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, array.values, type=array.type)
    _, *buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers], 0, array.offset)
