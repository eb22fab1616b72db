"""Values that a column cannot hold: infinite times, and NULL structs with required fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icesql.write.casts import list_elements, list_lengths, map_pairs, plain_array

# NULL structs with required fields: fields inside need values, or the file cannot be written.


def null_array(count: int, type: pa.DataType) -> pa.Array:
    """An array of ``count`` NULLs."""
    if not pa.types.is_struct(type) or not type.num_fields or not count:
        return pa.nulls(count, type)
    children = []
    for field in type:
        made = null_array(count, field.type)
        children.append(made if field.nullable else without_nulls(made))
    mask = pa.repeat(pa.scalar(True), count)
    return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)


def without_nulls(array: pa.Array) -> pa.Array:
    """The array without NULLs: fields of a NULL struct get arbitrary values."""
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


# Infinite dates and times, which engines have and Iceberg does not.

# Arrow has no infinity: DuckDB returns the largest number and its negative.
_MOST: Final = {32: (1 << 31) - 1, 64: (1 << 63) - 1}


def refuse_infinity(values: pa.Array) -> None:
    """Raise Misfit for an infinite date or time at any depth of ``values``."""
    values = plain_array(values)
    kind = values.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            refuse_infinity(pc.struct_field(values, [index]))
    elif pa.types.is_map(kind):
        refuse_infinity(map_pairs(values))
    elif pa.types.is_nested(kind) and kind.num_fields == 1 and not pa.types.is_union(kind):
        with of_rows(list_lengths(values)):
            refuse_infinity(list_elements(values))
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        most = _MOST[kind.bit_width]
        numbers = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        # In one pass, and without Python scalars, for which pyarrow imports pandas.
        least, greatest = (each.as_py() for each in pc.min_max(numbers).values())
        if least is None or -most < least <= greatest < most:
            return
        for number, text in ((most, "infinity"), (-most, "-infinity")):
            row = pc.index(numbers, pa.scalar(number, numbers.type)).as_py()
            if row >= 0:
                raise Misfit(row, f"{text} does not fit: Iceberg has no infinite dates and times")


class Misfit(Exception):
    """A value that a column cannot store: its row in the array, and the reason.

    The row is negative if the type of all values is the reason.
    """

    def __init__(self, row: int, reason: str, *, null: bool = False) -> None:
        super().__init__(reason)
        self.row, self.reason, self.null = row, reason, null


@contextmanager
def of_rows(lengths: pa.Array) -> Iterator[None]:
    """Convert the misfit of an element to one of the row whose list or map contains it."""
    try:
        yield
    except Misfit as misfit:
        if misfit.row < 0:
            raise
        ends = pc.cumulative_sum(lengths.cast(pa.int64()))
        row = pc.index(pc.greater(ends, misfit.row), True).as_py()
        raise Misfit(row, misfit.reason, null=misfit.null) from misfit
