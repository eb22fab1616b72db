"""Compare columns of numbers, and of whole units of anything, with exact literals."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.decimals import scaled
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term

INTS: Final = (-(2**31), 2**31 - 1)
LONGS: Final = (-(2**63), 2**63 - 1)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")


def exact_number(
    operation: Operation, term: Term, column_type: t.IcebergType, value: Any
) -> Predicate:
    """A comparison of an int, long or decimal column."""
    match column_type:
        case t.DecimalType(precision, scale):
            limit = 10**precision - 1
            limits, unit = (-limit, limit), 10**scale
            literal: Callable[[int], Any] = partial(scaled, scale=scale)
        case _:
            limits = INTS if isinstance(column_type, t.IntegerType) else LONGS
            unit = 1
            literal = int
    match value:
        case bool():
            return Leaf(Operation.NOT_NULL, term)
        case int():
            low = high = Fraction(value)
        case Decimal() if value.is_finite():
            # A literal like 1E+999999999 has no useful exact form; its size alone decides.
            if value and value.adjusted() > 400:
                return _beyond(operation, term, above=value > 0)
            if value and value.adjusted() < -400:
                value = Decimal((int(value < 0), (1,), -400))
            low = high = Fraction(value)
            if _digits(value) > 38:
                # Beyond DECIMAL's digits, engines read the literal as DOUBLE.
                least, greatest = _readings(float(value), whole=unit == 1)
                low, high = min(low, least), max(high, greatest)
        case str() if unit == 1 and _WHOLE.fullmatch(value):
            low = high = Fraction(int(value))
        case float() | Decimal():
            number = float(value)
            if math.isnan(number):
                return _nan_literal(operation, term, floating=False)
            if math.isinf(number):
                return _beyond(operation, term, above=number > 0)
            low, high = _readings(number, whole=unit == 1)
        case _:
            return Leaf(Operation.NOT_NULL, term)
    return on_grid(operation, term, low * unit, high * unit, limits, literal)


def _readings(value: float, *, whole: bool) -> tuple[Fraction, Fraction]:
    """The range of exact numbers that an engine may take for equal to a float literal.

    Engines convert the column to DOUBLE or, for a FLOAT literal, to FLOAT; conversion is
    monotone, so only numbers within its rounding error can compare otherwise than exactly.
    """
    exact = Fraction(value)
    single = _nearest_float32(value) == value
    if whole and abs(value) < (2**24 if single else 2**53):
        return exact, exact
    # Twice the spacing of the narrower format: conversions may round more than once.
    error = abs(exact) / (2**22 if single else 2**51)
    return exact - error, exact + error


def on_grid(
    operation: Operation,
    term: Term,
    low: Fraction | int,
    high: Fraction | int,
    limits: tuple[int, int],
    literal: Callable[[int], Any],
) -> Predicate:
    """Compare a column of whole units with a literal known to lie in ``low`` to ``high`` units.

    With ``low`` == ``high`` the predicate is exactly the comparison. ``limits`` are the least and
    greatest units that the column holds; ``literal`` gives the value of a number of units.
    """
    least, greatest = limits
    exact = low == high
    floor, ceiling = math.floor(high), math.ceil(low)
    on_grid = exact and floor == low
    not_null = Leaf(Operation.NOT_NULL, term)
    match operation:
        case Operation.LT | Operation.LT_EQ:
            strictly = operation is Operation.LT and on_grid
            if floor > greatest or (floor == greatest and not strictly):
                return not_null
            if floor < least or (floor == least and strictly):
                return ALWAYS_FALSE
            return Leaf(Operation.LT if strictly else Operation.LT_EQ, term, literal(floor))
        case Operation.GT | Operation.GT_EQ:
            strictly = operation is Operation.GT and on_grid
            if ceiling < least or (ceiling == least and not strictly):
                return not_null
            if ceiling > greatest or (ceiling == greatest and strictly):
                return ALWAYS_FALSE
            return Leaf(Operation.GT if strictly else Operation.GT_EQ, term, literal(ceiling))
        case Operation.EQ:
            first, last = max(ceiling, least), min(floor, greatest)
            if first > last:
                return ALWAYS_FALSE
            if first == last:
                return Leaf(Operation.EQ, term, literal(first))
            return Leaf(Operation.GT_EQ, term, literal(first)) & Leaf(
                Operation.LT_EQ, term, literal(last)
            )
        case _:
            if on_grid and least <= floor <= greatest:
                return Leaf(Operation.NOT_EQ, term, literal(floor))
            return not_null


def _beyond(operation: Operation, term: Term, *, above: bool) -> Predicate:
    """A comparison with a literal beyond every value of the column."""
    match operation:
        case Operation.EQ:
            holds = False
        case Operation.NOT_EQ:
            holds = True
        case Operation.LT | Operation.LT_EQ:
            holds = above
        case _:
            holds = not above
    return Leaf(Operation.NOT_NULL, term) if holds else ALWAYS_FALSE


def _nan_literal(operation: Operation, term: Term, *, floating: bool) -> Predicate:
    """A comparison with NaN, which equals itself and exceeds all other numbers."""
    if not floating:
        return _beyond(operation, term, above=True)
    match operation:
        case Operation.LT | Operation.NOT_EQ:
            return Leaf(Operation.NOT_NAN, term)
        case Operation.LT_EQ:
            return Leaf(Operation.NOT_NULL, term)
        case Operation.EQ | Operation.GT_EQ:
            return Leaf(Operation.IS_NAN, term)
        case _:
            return ALWAYS_FALSE


def floating(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """A comparison of a float or double column."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return Leaf(Operation.NOT_NULL, term)
    if value != value:
        return _nan_literal(operation, term, floating=True)
    single = isinstance(column_type, t.FloatType)
    nearest = _nearest_double(value)
    if single:
        nearest = _nearest_float32(nearest)
    if _converts_roughly(value, single):
        return _around(operation, term, nearest, single)
    if nearest == value or not single:
        # DuckDB and Spark both convert an inexact literal to DOUBLE for a DOUBLE column.
        return Leaf(operation, term, nearest)
    # The literal lies between two values of the column's type. Read exactly, it equals neither;
    # rounded, it equals the nearest. Each branch is what either reading allows.
    below = nearest if nearest < value else _step(nearest, single, up=False)
    above = nearest if nearest > value else _step(nearest, single, up=True)
    match operation:
        case Operation.LT:
            return Leaf(Operation.LT_EQ, term, below)
        case Operation.LT_EQ:
            return Leaf(Operation.LT_EQ, term, nearest if nearest > value else below)
        case Operation.GT:
            return Leaf(Operation.GT_EQ, term, above)
        case Operation.GT_EQ:
            return Leaf(Operation.GT_EQ, term, nearest if nearest < value else above)
        case Operation.EQ:
            return Leaf(Operation.EQ, term, nearest)
        case _:
            return Leaf(Operation.NOT_NULL, term)


def _converts_roughly(value: int | float | Decimal, single: bool) -> bool:
    """Whether an engine's conversion of the literal may miss the nearest value of the type.

    Up to 15 digits divided by a power of ten that DOUBLE holds are converted correctly.
    """
    match value:
        case Decimal():
            exponent = value.as_tuple().exponent
            return isinstance(exponent, int) and (_digits(value) > 15 or exponent < -22)
        case int():
            return abs(value) > (2**53 if single else 2**63)
        case _:
            return False


def _around(operation: Operation, term: Term, nearest: float, single: bool) -> Predicate:
    """A comparison with a literal known only to a few values of the type around ``nearest``."""
    low = high = nearest
    for _ in range(3):
        low, high = _step(low, single, up=False), _step(high, single, up=True)
    match operation:
        case Operation.LT | Operation.LT_EQ:
            return Leaf(Operation.LT_EQ, term, high)
        case Operation.GT | Operation.GT_EQ:
            return Leaf(Operation.GT_EQ, term, low)
        case Operation.EQ:
            return Leaf(Operation.GT_EQ, term, low) & Leaf(Operation.LT_EQ, term, high)
        case _:
            return Leaf(Operation.NOT_NULL, term)


def _digits(value: Decimal) -> int:
    """The digits of a decimal literal before and after its point, as DECIMAL(p, s) counts p."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    return max(len(digits), -exponent if isinstance(exponent, int) else 0, value.adjusted() + 1)


def _nearest_double(value: int | float | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _nearest_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return rounded


def _step(value: float, single: bool, *, up: bool) -> float:
    """The next value of the type above or below."""
    toward = math.inf if up else -math.inf
    if not single:
        return math.nextafter(value, toward)
    if value == 0:
        return 2.0**-149 if up else -(2.0**-149)
    if math.isinf(value) and up == (value > 0):
        return value
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    # The bits of one sign count away from zero.
    bits += 1 if up == (value > 0) else -1
    stepped: float = struct.unpack("<f", struct.pack("<i", bits))[0]
    return stepped
