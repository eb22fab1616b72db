"""Casts of store assignment for values without children, and checks that a column can hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import DataError, TypeMismatchError
from icesql.iceberg import types as t

_ZONED = (t.TimestamptzType, t.TimestamptzNanoType)


def plain_array(values: pa.Array) -> pa.Array:
    """``values`` without dictionary, run-length encoding, views and extension types."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # Arrow cannot combine some types
            values = pa.concat_arrays(values.chunks)
    kind = values.type
    if pa.types.is_dictionary(kind):
        return plain_array(values.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain_array(pc.run_end_decode(values))
    if isinstance(kind, pa.ExtensionType | pa.BaseExtensionType) and kind != pa.uuid():
        return plain_array(values.storage)
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return values.cast(pa.string())
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return values.cast(pa.binary())
    return values


def list_elements(values: pa.Array) -> pa.Array:
    """The elements of the lists that are not NULL, one after the other.

    Arrow cannot flatten lists without elements that contain nested extension types.
    """
    if not pc.any(pc.greater(pc.list_value_length(values), 0)).as_py():
        return values.values[:0]
    return values.flatten()


def list_lengths(values: pa.Array) -> pa.Array:
    """The number of elements of each list, 0 for NULL."""
    return pc.fill_null(pc.list_value_length(values), 0)


def map_pairs(values: pa.Array) -> pa.Array:
    """Maps as lists of structs of a key and a value."""
    return values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))


def cast_values(type: t.IcebergType, target: pa.DataType, values: pa.Array, zone: str) -> pa.Array:
    """``values`` of another type as ``target``, the Arrow type of ``type``.

    Raises TypeMismatchError if no value of the given type can be stored, else pyarrow's errors
    or DataError for a value that cannot be.
    """
    kind = values.type
    match type:
        case t.IntegerType() | t.LongType() if _is_number(kind):
            return values.cast(target)
        case t.FloatType() | t.DoubleType() if _is_number(kind):
            return _floats(target, values)
        case t.DecimalType() if _is_number(kind):
            return _decimals(target, values)
        case t.StringType() if kind == pa.uuid():
            return _uuid_texts(values)
        case t.BinaryType() if _is_bytes(kind):
            return values.cast(target)
        case t.FixedType() if _is_bytes(kind):
            return values.cast(pa.binary()).cast(target)
        case t.UUIDType() if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
            return values.cast(target)
        case t.UUIDType() if pa.types.is_string(kind):
            return _uuids(values)
        case t.DateType() if pa.types.is_date(kind) or pa.types.is_string(kind):
            return values.cast(target)
        case t.DateType() if pa.types.is_timestamp(kind) and kind.tz is None:
            return _dates(values)
        case t.TimeType() if pa.types.is_string(kind):
            instants = pc.binary_join_element_wise("1970-01-01", values, " ")
            return instants.cast(pa.timestamp(target.unit)).cast(target)
        case t.TimeType() if pa.types.is_time(kind):
            return values.cast(target)
        case t.AnyTimestamp():
            return _timestamps(type, target, values, zone)
        case _:
            raise _no_cast(kind)


def _no_cast(kind: pa.DataType) -> TypeMismatchError:
    return TypeMismatchError(f"a value of type {kind} cannot be stored in it; CAST it")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _dates(values: pa.Array) -> pa.Array:
    made = values.cast(pa.date32(), safe=False)
    if not pc.all(
        pc.fill_null(pc.equal(made.cast(values.type), values), True), min_count=0
    ).as_py():
        raise DataError("a time of day")
    return made


def _floats(target: pa.DataType, values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_floating(kind):
        made = values.cast(target, safe=False)
        if pc.any(pc.and_(pc.is_inf(made), pc.invert(pc.is_inf(values)))).as_py():
            raise DataError("a number is too large")
        return made
    # Integers and decimals become the nearest float.
    return values.cast(pa.float64(), safe=False).cast(target, safe=False)


def _decimals(target: pa.DataType, values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        if pa.types.is_integer(values.type):
            # Arrow requires digits for every number of the integer type, not just for these.
            return values.cast(pa.decimal256(76, target.scale)).cast(target)
        return values.cast(target)
    return float_decimals(target, values)


def _uuids(values: pa.Array) -> pa.Array:
    import uuid

    try:
        made = [None if each is None else uuid.UUID(each).bytes for each in values.to_pylist()]
    except ValueError as error:
        raise DataError(str(error)) from error
    return pa.array(made, pa.binary(16)).cast(pa.uuid())


def _uuid_texts(values: pa.Array) -> pa.Array:
    return pa.array([None if each is None else str(each) for each in values.to_pylist()])


def _timestamps(type: t.IcebergType, target: pa.DataType, values: pa.Array, zone: str) -> pa.Array:
    kind = values.type
    zoned = isinstance(type, _ZONED)
    if pa.types.is_string(kind):
        try:
            # Each text may have its own offset.
            return values.cast(target)
        except pa.ArrowInvalid:
            if not zoned:
                raise
            values = values.cast(pa.timestamp(target.unit))
    elif pa.types.is_date(kind):
        values = values.cast(pa.timestamp(target.unit))
    elif not pa.types.is_timestamp(kind):
        raise _no_cast(kind)
    if values.type.tz is None and zoned:
        return _in_zone(values, zone).cast(target)
    if values.type.tz is not None and not zoned:
        return pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, zone))).cast(target)
    return values.cast(target)


def _in_zone(values: pa.Array, zone: str) -> pa.Array:
    """Wall clock times as instants: the earlier one if ambiguous, the next one if nonexistent."""
    return pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")


# Floats as decimals: a float counts as the shortest decimal that reads as it. 0.7 fits
# decimal(10, 2) though no float is exactly 0.7; 0.123 does not.

# No two decimals with at most so many digits read as the same float.
_SURE_DIGITS: Final = {8: 15, 4: 6}
# More digits than a float has before and behind the point of a decimal.
_EXACT: Final = Context(prec=800, traps=[Inexact])


def float_decimals(target: pa.DataType, values: pa.Array) -> pa.Array:
    """``values``, floats or doubles, as the decimal type ``target``.

    Raises DataError or pyarrow's errors for a value with more digits than the type has.
    """
    made = values.cast(target)
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    unscaled, short = _unscaled(made)
    short &= np.abs(unscaled) < 10 ** _SURE_DIGITS.get(numbers.dtype.itemsize, 0)
    # Divided as doubles: both operands are exact, so the quotient is the nearest double.
    back = (unscaled / np.float64(10) ** target.scale).astype(numbers.dtype)
    sure = missing | (short & (back == numbers) & (target.scale <= 22))
    if sure.all():
        return made
    found = made.to_pylist()
    for row in np.flatnonzero(~sure).tolist():
        found[row] = _by_text(numbers[row], target.scale)
    return pa.array(found, target)


def _unscaled(made: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The unscaled integers of decimals, and a mask of those that fit 64 bits."""
    buffer = made.buffers()[1]
    words = np.frombuffer(buffer, np.int64)[: 2 * (made.offset + len(made))].reshape(-1, 2)
    words = words[made.offset :]
    low, high = words[:, 0], words[:, 1]
    return low, high == (low >> 63)


def _by_text(number: Any, scale: int) -> Decimal:
    text = np.format_float_positional(number, unique=True, trim="0")
    try:
        return _EXACT.quantize(Decimal(text), Decimal(1).scaleb(-scale))
    except Inexact as error:
        raise DataError("a number has more digits than the column") from error


# ------------------------------------------------------------------ values that do not fit


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
