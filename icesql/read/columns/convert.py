"""Leaf values as a file stores them, turned into the table's type.

Widening follows the spec (int → long, float → double, decimal precision, date → timestamp,
unknown → anything); and the encodings of other writers: milliseconds, INT96, unsigned
and small integers, char, enum and JSON strings, raw integers without an annotation. The table type
decides between timestamp and timestamptz, whatever the file's flag says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icesql.iceberg import types as t
from icesql.read.columns.arrow_schema import arrow_type, stored

ArrayReader: TypeAlias = Callable[[pa.Array], pa.Array]

_SMALL_INTEGERS = frozenset({pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.int32()})
_INTEGERS = _SMALL_INTEGERS | {pa.uint32(), pa.int64()}
_FLOATS = frozenset({pa.float16(), pa.float32()})
_CAST_FROM: Final[dict[type[t.IcebergType], Collection[pa.DataType]]] = {
    t.BooleanType: {pa.bool_()},
    t.IntegerType: _SMALL_INTEGERS,
    t.LongType: _INTEGERS,
    t.FloatType: _FLOATS,
    t.DoubleType: _FLOATS | {pa.float64()},
}
_TEXTS = frozenset({pa.string(), pa.large_string(), pa.string_view()})
_BYTES = frozenset({pa.binary(), pa.large_binary(), pa.binary_view()})


def leaf_reader(source: pa.DataType, target: t.IcebergType) -> ArrayReader | None:
    """How arrays of ``source`` become ``arrow_type(target)``; None when they cannot.

    The reader raises pa.ArrowInvalid for a value that the target cannot hold. Nanoseconds under a
    type of microseconds are the microsecond below, as in Java's ORC reader and in PyIceberg.
    """
    for kind, inside, unwrap in _WRAPPERS:
        if isinstance(source, kind):
            inner = leaf_reader(getattr(source, inside), target)
            return None if inner is None else _after(unwrap, inner)
    if pa.types.is_null(source) or isinstance(target, t.UnknownType):
        return lambda array: pa.nulls(len(array), arrow_type(target))
    return _plain_reader(source, target)


def _plain_reader(source: pa.DataType, target: t.IcebergType) -> ArrayReader | None:
    wanted = arrow_type(target)
    if source in _CAST_FROM.get(target.__class__, ()):
        return _caster(source, wanted)
    match target:
        case t.DecimalType(_, scale) if pa.types.is_decimal(source) and source.scale == scale:
            return _caster(source, wanted)
        case t.DateType():
            return _date_reader(source)
        case t.TimeType():
            return _time_reader(source)
        case t.TimestampType() | t.TimestampNanoType():
            return _timestamp_reader(source, wanted, dates=True)
        case t.TimestamptzType() | t.TimestamptzNanoType():
            return _timestamp_reader(source, wanted, dates=False)
        case t.StringType():
            return _text_reader(source)
        case t.UUIDType():
            return _uuid_reader(source)
        case t.FixedType(length):
            return _fixed_reader(source, length)
        case t.BinaryType() | t.GeometryType() | t.GeographyType():
            return _binary_reader(source)
        case _:
            return None


def _after(first: ArrayReader, then: ArrayReader) -> ArrayReader:
    return lambda array: then(first(array))


def _same(array: pa.Array) -> pa.Array:
    return array


_WRAPPERS: Final = (
    (pa.BaseExtensionType, "storage_type", stored),
    (pa.DictionaryType, "value_type", pa.DictionaryArray.dictionary_decode),
    (pa.RunEndEncodedType, "value_type", pc.run_end_decode),
)


def _caster(source: pa.DataType, wanted: pa.DataType) -> ArrayReader:
    return _same if source == wanted else lambda array: array.cast(wanted)


def _date_reader(source: pa.DataType) -> ArrayReader | None:
    if source == pa.int32():
        return lambda array: array.view(pa.date32())
    return _caster(source, pa.date32()) if pa.types.is_date(source) else None


def _time_reader(source: pa.DataType) -> ArrayReader | None:
    wanted = pa.time64("us")
    if source == pa.int64():
        return lambda array: array.view(wanted)
    if source == pa.time64("ns"):
        return lambda array: _thousandths(array).view(wanted)
    return _caster(source, wanted) if pa.types.is_time(source) else None


def _timestamp_reader(
    source: pa.DataType, wanted: pa.DataType, *, dates: bool
) -> ArrayReader | None:
    if source == pa.int64():
        return lambda array: array.view(wanted)
    if pa.types.is_date32(source) and dates:
        # Iceberg widens date to timestamp, never to timestamptz: it has no zone to choose.
        return lambda array: array.cast(pa.timestamp(wanted.unit))
    if not pa.types.is_timestamp(source):
        return None

    def read(array: pa.Array) -> pa.Array:
        # The stored number is kept and the file's zone dropped: the table type decides. The unit is
        # the array's own: INT96 comes in the unit that the reader requested.
        counted = array.view(pa.timestamp(array.type.unit))
        if counted.type.unit == "ns" and wanted.unit == "us":
            return _thousandths(counted).view(wanted)
        return counted.cast(pa.timestamp(wanted.unit)).view(wanted)

    return read


def _thousandths(array: pa.Array) -> pa.Array:
    numbers = array.view(pa.int64())
    quotient = pc.divide(numbers, 1000)
    negative_rest = pc.less(pc.subtract(numbers, pc.multiply(quotient, 1000)), 0)
    return pc.subtract(quotient, negative_rest.cast(pa.int64()))


def _text_reader(source: pa.DataType) -> ArrayReader | None:
    if source == pa.string():
        # Arrow does not check UTF-8 when it reads Parquet; a bad byte would surface far away.
        return lambda array: array.view(pa.binary()).cast(pa.string())
    if source in _TEXTS:
        return lambda array: array.cast(pa.binary()).cast(pa.string())
    if source in _BYTES:
        return lambda array: array.cast(pa.string())
    return None


def _binary_reader(source: pa.DataType) -> ArrayReader | None:
    if source in _BYTES or source in _TEXTS or pa.types.is_fixed_size_binary(source):
        return _caster(source, pa.binary())
    return None


def _fixed_reader(source: pa.DataType, length: int) -> ArrayReader | None:
    if pa.types.is_fixed_size_binary(source):
        return _same if source.byte_width == length else None
    if source in _BYTES:
        return lambda array: array.cast(pa.binary()).cast(pa.binary(length))
    return None


def _uuid_reader(source: pa.DataType) -> ArrayReader | None:
    inner = _fixed_reader(source, 16)
    if inner is None:
        return None
    return lambda array: pa.ExtensionArray.from_storage(pa.uuid(), inner(array))
