"""Decimals as the integers that files store and hash, exact at any precision."""

from __future__ import annotations

from decimal import Decimal


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal of ``scale`` stores; exact at any precision.

    Raises ValueError when ``value`` has more digits after the point than ``scale``.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite decimal")
    number = int("".join(map(str, digits)) or "0")
    rest: int
    shift = exponent + scale
    if shift >= 0:
        number *= int(10**shift)
    else:
        number, rest = divmod(number, 10**-shift)
        if rest:
            raise ValueError(f"{value} does not fit scale {scale}")
    return -number if sign else number


def scaled(number: int, scale: int) -> Decimal:
    """The decimal of ``scale`` that stores ``number``; exact at any precision."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
