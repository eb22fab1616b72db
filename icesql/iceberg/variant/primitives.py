"""Primitives of variants as bytes. Source: Apache Parquet, "Variant Binary Encoding"."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final

from icesql.iceberg.decimals import unscaled

_SHORTEST_TEXT: Final = 63


@cache
def _number(kind: int, layout: str) -> Callable[[Any], bytes]:
    """Makes primitives of a kind out of numbers; ``layout`` is their letter of ``struct``."""
    return partial(struct.Struct(f"<B{layout}").pack, kind << 2)


of_double, of_float = _number(7, "d"), _number(14, "f")
# Days since 1970, and microseconds of the day.
of_date, of_time = _number(11, "i"), _number(17, "q")


def of_bool(value: bool) -> bytes:
    """True or false."""
    return b"\x04" if value else b"\x08"


def of_int(value: int, size: int = 1) -> bytes:
    """A number of at least ``size`` bytes (1, 2, 4, 8); beyond 64 bits a decimal."""
    for kind, width in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if width >= size and -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1:
            return bytes([kind << 2]) + value.to_bytes(width, "little", signed=True)
    return of_decimal(Decimal(value))


def of_decimal(value: Decimal, precision: int | None = None) -> bytes:
    """A decimal with all its digits; ``precision`` is that of its type.

    Raises ValueError for more than 38 digits.
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    if scale > 38:
        raise ValueError("a decimal of more than 38 digits")
    number = unscaled(value, scale)
    digits_needed = max(len(str(abs(number))), scale, precision or 0)
    if digits_needed > 38:
        raise ValueError("a decimal of more than 38 digits")
    kind, width = (8, 4) if digits_needed <= 9 else (9, 8) if digits_needed <= 18 else (10, 16)
    return bytes([kind << 2, scale]) + number.to_bytes(width, "little", signed=True)


def of_text(value: str) -> bytes:
    """A text."""
    raw = value.encode()
    if len(raw) <= _SHORTEST_TEXT:
        return bytes([len(raw) << 2 | 1]) + raw
    return b"\x40" + len(raw).to_bytes(4, "little") + raw


def of_binary(value: bytes) -> bytes:
    """Bytes."""
    return b"\x3c" + len(value).to_bytes(4, "little") + value


def of_timestamp(value: int, *, nanos: bool, instant: bool) -> bytes:
    """Micro- or nanoseconds since 1970."""
    kind = (18 if instant else 19) if nanos else (12 if instant else 13)
    return _number(kind, "q")(value)


def of_uuid(value: bytes) -> bytes:
    """A UUID of 16 bytes."""
    return b"\x50" + value
