"""Partition values of whole Arrow columns: the transforms of ``iceberg.transforms``, vectorised.

Values are in the internal form of ``iceberg.types`` as Arrow arrays: dates as int32, times and
timestamps as int64, UUIDs as bytes, all other types unchanged.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import DataError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.calendar import NANO_TIMESTAMPS, units_per_day
from icesql.iceberg.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    Void,
)
from icesql.read.columns.numbers import from_numbers, to_numbers
from icesql.write.partition.hashing import buckets, hash_bytes, hash_longs

Numbers = npt.NDArray[Any]

_EIGHT_BYTES: Final = (
    t.IntegerType,
    t.LongType,
    t.DateType,
    t.TimeType,
    t.AnyTimestamp,
)


def internal_array(array: pa.Array, type: t.IcebergType) -> pa.Array:
    """Convert a column of the table's Arrow type to internal form."""
    match type:
        case t.DateType():
            return array.cast(pa.int32())
        case t.TimeType() | t.AnyTimestamp():
            return array.cast(pa.int64())
        case t.UUIDType() if isinstance(array, pa.ExtensionArray):
            return array.storage
        case _:
            return array


def partition_array(transform: Transform, type: t.IcebergType, values: pa.Array) -> pa.Array:
    """The partition value of each of ``values``, which are in internal form; NULL stays NULL.

    Raises DataError for a number whose truncated value is below the type's range, and for
    a time whose hour exceeds an int, UnsupportedTableError for an unknown transform.
    """
    if not transform.accepts(type):
        raise UnsupportedTableError(f"partitioning by {transform} of a column of type {type}")
    match transform:
        case Identity():
            return values
        case Void():
            return pa.nulls(len(values), values.type)
        case TimeTransform():
            return _time_units(transform.unit, type, values)
        case Bucket():
            return _buckets(transform, type, values)
        case Truncate():
            return _truncated(transform, type, values)
        case _:
            raise UnsupportedTableError(f"writing to a table partitioned by {transform}")


def _numbers(values: pa.Array) -> Numbers:
    """The numbers of an array, 0 for NULL."""
    return to_numbers(pc.fill_null(values, 0) if values.null_count else values)


def _with_nulls(numbers: Numbers, type: pa.DataType, values: pa.Array) -> pa.Array:
    if not values.null_count:
        return from_numbers(numbers).cast(type)
    return pa.array(numbers, type, mask=np.asarray(values.is_null().to_numpy(zero_copy_only=False)))


def _time_units(unit: str, type: t.IcebergType, values: pa.Array) -> pa.Array:
    numbers = _numbers(values).astype(np.int64)
    if not isinstance(type, t.DateType):
        per_day = units_per_day(type)
        numbers = np.floor_divide(numbers, per_day // 24 if unit == "hour" else per_day)
    if unit in ("month", "year"):
        numbers = _months_or_years(unit, numbers)
    units = numbers.astype(np.int32)
    if (units != numbers).any():
        raise DataError(
            f"a time has no value under the partition transform {unit}: it is more than "
            f"2,147,483,647 {unit}s from 1970"
        )
    return _with_nulls(units, pa.int32(), values)


def _months_or_years(unit: str, days: Numbers) -> Numbers:
    """The month or year of each day, counted from 1970.

    numpy takes 30 ns per value, a table lookup 2: rows of neighbouring days use a table.
    """
    coarse = "datetime64[M]" if unit == "month" else "datetime64[Y]"
    least = int(days.min()) if len(days) else 0
    span = int(days.max()) - least + 1 if len(days) else 0
    if span > len(days):
        return days.astype("datetime64[D]").astype(coarse).astype(np.int64)
    table = np.arange(least, least + span).astype("datetime64[D]").astype(coarse)
    return np.asarray(table.astype(np.int64)[days - least])


def _buckets(transform: Bucket, type: t.IcebergType, values: pa.Array) -> pa.Array:
    if isinstance(type, _EIGHT_BYTES):
        numbers = _numbers(values).astype(np.int64)
        if isinstance(type, NANO_TIMESTAMPS):
            numbers = np.floor_divide(numbers, 1000)
        return buckets(hash_longs(numbers), transform.buckets, values.is_null())
    if isinstance(type, t.DecimalType):
        return _of_each(transform, type, values, pa.int32())
    if isinstance(type, t.UUIDType | t.FixedType):
        values = values.cast(pa.binary())
    return buckets(hash_bytes(values), transform.buckets, values.is_null())


def _truncated(transform: Truncate, type: t.IcebergType, values: pa.Array) -> pa.Array:
    match type:
        case t.IntegerType() | t.LongType():
            numbers = _numbers(values)
            rest = np.mod(numbers.astype(np.int64), transform.width)
            least = np.iinfo(numbers.dtype).min
            small = numbers < least + rest
            if small.any():
                value = int(numbers[small][0])
                raise DataError(
                    f"{value} has no value under the partition transform {transform}: it would be "
                    f"smaller than any {type}"
                )
            return _with_nulls((numbers - rest).astype(numbers.dtype), values.type, values)
        case t.DecimalType():
            return _of_each(transform, type, values, values.type)
        case t.StringType():
            return pc.utf8_slice_codeunits(values, 0, transform.width)
        case _:
            return pc.binary_slice(values, 0, transform.width)


def _of_each(
    transform: Transform, type: t.IcebergType, values: pa.Array, result: pa.DataType
) -> pa.Array:
    """Apply the transform itself, once for each distinct value."""
    encoded = values.dictionary_encode()
    try:
        made = [transform.apply(each, type) for each in encoded.dictionary.to_pylist()]
        return pa.array(made, result).take(encoded.indices)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a value has none under the partition transform {transform}: it would have more "
            f"digits than {type}"
        ) from error
