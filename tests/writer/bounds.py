"""Bounds of columns as a writer stores them: the single-value bytes of internal values."""

from __future__ import annotations

import decimal
from struct import Struct
from typing import Any

from icesql.iceberg import types as t

_INT = Struct("<i")
_LONG = Struct("<q")
_FLOAT = Struct("<f")
_DOUBLE = Struct("<d")
_EXACT = decimal.Context(prec=400)


def encode_bound(type: t.IcebergType, value: Any) -> bytes:
    """The single-value bytes of an internal value.

    Raises ValueError for a value outside the type, TypeError for a type without binary form.
    """
    match type:
        case t.BooleanType():
            return b"\x01" if value else b"\x00"
        case t.IntegerType() | t.DateType():
            return _packed(_INT, value, type)
        case (
            t.LongType()
            | t.TimeType()
            | t.TimestampType()
            | t.TimestamptzType()
            | t.TimestampNanoType()
            | t.TimestamptzNanoType()
        ):
            return _packed(_LONG, value, type)
        case t.FloatType():
            return _packed(_FLOAT, value, type)
        case t.DoubleType():
            return _packed(_DOUBLE, value, type)
        case t.DecimalType(scale=scale):
            unscaled = _EXACT.scaleb(value, scale)
            if unscaled != int(unscaled):
                raise ValueError(f"{value} has more than {scale} decimal places")
            return _minimal_bytes(int(unscaled))
        case t.StringType():
            return bytes(value, "utf-8")
        case t.UUIDType() | t.FixedType() | t.BinaryType():
            return bytes(value)
        case _:
            raise TypeError(f"values of {type} have no binary form")


def _packed(layout: Struct, value: Any, type: t.IcebergType) -> bytes:
    from struct import error as StructError

    try:
        return layout.pack(value)
    except (StructError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a value of {type}") from error


def _minimal_bytes(value: int) -> bytes:
    # One bit more than the magnitude, for the sign; -128 fits one byte, hence the complement.
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)
