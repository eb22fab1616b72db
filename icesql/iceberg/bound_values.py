"""Single values in their binary form, and bounds cut short without losing a row.

Source: Iceberg spec, "Binary single-value serialization"; Java's UnicodeUtil and BinaryUtil.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.decimals import minimal_twos_complement, unscaled

_LAST_BEFORE_SURROGATES: Final = 0xD7FF
_FIRST_AFTER_SURROGATES: Final = 0xE000
_LAST: Final = 0x10FFFF


def encode_bound(type: t.IcebergType, value: Any) -> bytes:
    """The bytes of a value that is not NULL, in the internal form of ``iceberg.types``.

    Raises ValueError for a type without such a form.
    """
    match type:
        case t.BooleanType():
            return struct.pack("?", value)
        case t.IntegerType() | t.DateType():
            return struct.pack("<i", value)
        case t.LongType() | t.TimeType() | t.AnyTimestamp():
            return struct.pack("<q", value)
        case t.FloatType():
            return struct.pack("<f", value)
        case t.DoubleType():
            return struct.pack("<d", value)
        case t.DecimalType():
            return minimal_twos_complement(unscaled(value, type.scale))
        case t.StringType():
            return bytes(value.encode("utf-8"))
        case t.UUIDType() | t.FixedType() | t.BinaryType():
            return bytes(value)
        case _:
            raise ValueError(f"values of type {type} have no binary form")


def lower_text(text: str, length: int | None) -> str:
    """A lower bound of at most ``length`` code points: nothing that begins so is smaller."""
    return text[:length]


def upper_text(text: str, length: int) -> str | None:
    """An upper bound of at most ``length`` code points; None where there is none.

    >>> upper_text("abcdefghijklmnopqrstuvwxyz", 16)
    'abcdefghijklmnoq'
    """
    if len(text) <= length:
        return text
    cut = text[:length]
    while cut:
        last = ord(cut[-1])
        if last < _LAST:
            after = last + 1
            if _LAST_BEFORE_SURROGATES < after < _FIRST_AFTER_SURROGATES:
                after = _FIRST_AFTER_SURROGATES
            return cut[:-1] + chr(after)
        cut = cut[:-1]
    return None


def upper_bytes(data: bytes, length: int) -> bytes | None:
    """An upper bound of at most ``length`` bytes; None where all of them are FF."""
    if len(data) <= length:
        return data
    cut = data[:length].rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
