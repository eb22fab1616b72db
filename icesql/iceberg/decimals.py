"""Decimals as the integers that files store and hash, exact at any precision; floats as text."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from struct import Struct
from typing import Final

_SINGLE: Final = Struct("<f")
# Wide enough to be exact for every value that bounds may hold; never signals for those.
_EXACT: Final = Context(prec=400)


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal of ``scale`` stores; exact at any precision.

    Raises ValueError when ``value`` has more digits after the point than ``scale``.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite decimal")
    numerator, denominator = value.as_integer_ratio()
    number, rest = divmod(numerator * int(10**scale), denominator)
    if rest:
        raise ValueError(f"{value} does not fit scale {scale}")
    return number


def minimal_twos_complement(number: int) -> bytes:
    """Big-endian two's complement in the fewest bytes, as decimals are hashed and stored."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def scaled(number: int, scale: int) -> Decimal:
    """The decimal of ``scale`` that stores ``number``, whatever the context of the thread is."""
    return _EXACT.scaleb(Decimal(number), -scale)


def java_float(value: float, *, single: bool) -> str:
    """A number as Java writes it: the fewest digits, with an exponent from 1e7 and below 1e-3."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    decimal = Decimal(repr(shortest_single(value) if single else value))
    if decimal and not Decimal("0.001") <= abs(decimal) < 10_000_000:
        sign, digits, exponent = decimal.normalize().as_tuple()
        assert isinstance(exponent, int)
        rest = "".join(map(str, digits[1:])) or "0"
        return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
    plain = f"{decimal:f}"
    return plain if "." in plain else f"{plain}.0"


def shortest_single(value: float) -> float:
    """The number with the fewest digits that is ``value`` in single precision."""
    packed = _SINGLE.pack(value)
    for digits in range(1, 10):  # nine distinguish any two
        text = f"{value:.{digits}g}"
        try:
            if _SINGLE.pack(float(text)) == packed:
                return float(text)
        except OverflowError:
            continue  # rounded up beyond the largest number
    return value
