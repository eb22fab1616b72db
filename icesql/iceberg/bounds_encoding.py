"""Single values in their binary form, as bounds and partition summaries hold them.

Source: Iceberg spec, "Binary single-value serialization".
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Any, Final

from icesql.errors import DataError
from icesql.iceberg import types as t
from icesql.iceberg.decimals import unscaled

_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")


def encode_bound(type: t.IcebergType, value: Any) -> bytes:
    """The bytes of a value in the internal form of ``iceberg.types``.

    What ``decode_bound`` gives for them is the value again. Raises DataError for a value outside
    of its type, and for types without a binary form.
    """
    try:
        return _encoded(type, value)
    except (StructError, OverflowError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{value!r} is not a value of type {type}") from error


def _encoded(type: t.IcebergType, value: Any) -> bytes:
    match type:
        case t.BooleanType():
            return b"\x01" if value else b"\x00"
        case t.IntegerType() | t.DateType():
            return _INT.pack(value)
        case (
            t.LongType()
            | t.TimeType()
            | t.TimestampType()
            | t.TimestamptzType()
            | t.TimestampNanoType()
            | t.TimestamptzNanoType()
        ):
            return _LONG.pack(value)
        case t.FloatType():
            return _FLOAT.pack(value)
        case t.DoubleType():
            return _DOUBLE.pack(value)
        case t.DecimalType(scale=scale):
            return twos_complement(unscaled(value, scale))
        case t.StringType():
            return bytes(value, "utf-8")
        case t.UUIDType():
            if len(value) != 16:
                raise ValueError("a uuid has 16 bytes")
            return bytes(value)
        case t.FixedType(length):
            if len(value) != length:
                raise ValueError("another length")
            return bytes(value)
        case t.BinaryType():
            return bytes(value)
        case _:
            raise DataError(f"values of type {type} have no binary form")


def twos_complement(value: int) -> bytes:
    """The shortest big-endian two's complement of an integer: 127 is 7F, 128 is 0080."""
    magnitude = value if value >= 0 else ~value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
