"""Turn a comparison of a column with a Python value into a predicate on the column's type.

The predicate holds for every row for which SQL says true. It is exactly SQL's comparison wherever
one reading exists; where engines differ (they round one side or the other, or convert by the
session's time zone) it is the union of the readings. A value of a type that cannot be compared
safely leaves ``IS NOT NULL``, which every comparison implies.

How the sides meet, by column type:

* int, long: with int and Decimal exactly. With float exactly below the integers that a FLOAT
  (2^24) or DOUBLE (2^53) holds, above them in a range around the literal, as engines convert the
  column.
* decimal: with int and Decimal exactly; with float in a range of a few units in the last place.
* double: the literal is the nearest DOUBLE; literals of more than 15 digits are a range around it.
* float: the literal is read exactly and as the nearest FLOAT: DuckDB rounds a decimal literal to
  the column's type, but widens the column for a DOUBLE literal, as Spark always does.
* date, timestamps: a date is its midnight. Where one side has a zone and the other has none the
  session's zone decides, so the range covers every zone; callers that know the zone convert first.
* uuid: equality only; engines and writers order UUIDs differently.
* string literals for uuid and whole-number columns are read only in their canonical form; callers
  read those for date, time and timestamp columns first.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from operator import and_, or_
from typing import Any, Final
from uuid import UUID

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.bounds import MICROS_PER_DAY, NANOS_PER_DAY, scaled
from icesql.iceberg.calendar import ZONED, days_from_civil, units_per_day
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    UNARY,
    Leaf,
    Operation,
    Predicate,
    Term,
)

# Compare date, time and timestamp columns with literals on one line of nanoseconds.

# Zones lie within 18 hours of UTC (the limit of java.time); all are covered where one matters.
_WIDEST_ZONE: Final = 18 * 3_600_000_000


class NanoTimestamp(Frozen):
    """A timestamp in ns since 1970-01-01, for values that ``datetime`` cannot hold.

    ``zoned``: it is an instant (UTC); else it counts on a clock without zone.
    """

    epoch_ns: int
    zoned: bool


def temporal(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """A comparison of a date or timestamp column: both sides are placed on one line of ns."""
    unit = NANOS_PER_DAY // units_per_day(column_type)
    instant = _instant(value)
    if instant is None:
        return Leaf(Operation.NOT_NULL, term)
    nanos, zoned = instant
    needs_zone = zoned != isinstance(column_type, ZONED)
    spread = _WIDEST_ZONE * 1000 if needs_zone else 0
    return on_grid(
        operation,
        term,
        Fraction(nanos - spread, unit),
        Fraction(nanos + spread, unit),
        INTS if isinstance(column_type, t.DateType) else LONGS,
        int,
    )


def _instant(value: Any) -> tuple[int, bool] | None:
    """A date or timestamp as ns since 1970-01-01 and whether it has a zone."""
    match value:
        case NanoTimestamp(epoch_ns, zoned):
            return epoch_ns, zoned
        case datetime():
            zoned = value.tzinfo is not None and value.utcoffset() is not None
            # Counted from the fields: astimezone fails near the ends of datetime's range.
            offset = value.utcoffset() if zoned else None
            days = days_from_civil(value.year, value.month, value.day)
            micros = days * MICROS_PER_DAY + _micros_of_day(value)
            if offset is not None:
                micros -= offset // timedelta(microseconds=1)
            # Subclasses may carry the nanoseconds within the microsecond or within the second.
            nanosecond = getattr(value, "nanosecond", 0)
            extra = nanosecond % 1000 if isinstance(nanosecond, int) else 0
            return micros * 1000 + extra, zoned
        case date():
            days = days_from_civil(value.year, value.month, value.day)
            return days * MICROS_PER_DAY * 1000, False
        case _:
            return None


def _micros_of_day(value: datetime | time) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


# Compare columns of numbers, and of whole units of anything, with exact literals.

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

    def beyond(above: bool) -> Predicate:
        edge = limits[1] + 1 if above else limits[0] - 1
        return on_grid(operation, term, edge, edge, limits, literal)

    match value:
        case bool():
            return Leaf(Operation.NOT_NULL, term)
        case int():
            low = high = Fraction(value)
        case Decimal() if value.is_finite():
            # A literal like 1E+999999999 has no useful exact form; its size alone decides.
            if value and value.adjusted() > 400:
                return beyond(value > 0)
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
            if not math.isfinite(number):  # NaN exceeds all other numbers
                return beyond(not number < 0)
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


def _nan_literal(operation: Operation, term: Term) -> Predicate:
    """A comparison with NaN, which equals itself and exceeds all other numbers."""
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
        return _nan_literal(operation, term)
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
    match operation:
        case Operation.LT:
            below = nearest if nearest < value else _step(nearest, single, up=False)
            return Leaf(Operation.LT_EQ, term, below)
        case Operation.GT:
            above = nearest if nearest > value else _step(nearest, single, up=True)
            return Leaf(Operation.GT_EQ, term, above)
        case Operation.NOT_EQ:
            return Leaf(Operation.NOT_NULL, term)
        case _:
            return Leaf(operation, term, nearest)


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


def compare(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """The predicate of ``term operation value``; ``column_type`` is the type of the term.

    ``value`` is None (never true in a comparison), bool, int, float, Decimal, str, bytes, date,
    datetime, time, UUID or NanoTimestamp; an iterable of them for IN and NOT_IN. It is ignored for
    the four unary operations. NaN literals follow engines in which NaN equals itself and is the
    greatest; that a NaN *row* satisfies ``> 1`` there is the caller's to add.
    """
    match operation:
        case _ if operation in UNARY:
            return _unary(operation, term, column_type)
        case _ if isinstance(column_type, t.UnknownType):
            return ALWAYS_FALSE  # the column is always NULL
        case Operation.IN:
            equals = (compare(Operation.EQ, term, column_type, each) for each in value)
            return _gather(Operation.IN, Operation.EQ, term, equals)
        case Operation.NOT_IN:
            values = list(value)
            if not values:
                return ALWAYS_TRUE
            different = (compare(Operation.NOT_EQ, term, column_type, each) for each in values)
            return _gather(Operation.NOT_IN, Operation.NOT_EQ, term, different)
        case _ if value is None:
            return ALWAYS_FALSE
        case Operation.STARTS_WITH | Operation.NOT_STARTS_WITH:
            return _prefix(operation, term, column_type, value)
        case _:
            return _ordered(operation, term, column_type, value)


def _unary(operation: Operation, term: Term, column_type: t.IcebergType) -> Predicate:
    if isinstance(column_type, t.UnknownType):
        return ALWAYS_TRUE if operation is Operation.IS_NULL else ALWAYS_FALSE
    if not t.is_floating(column_type):
        if operation is Operation.IS_NAN:
            return ALWAYS_FALSE
        if operation is Operation.NOT_NAN:
            return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term)


def _gather(
    set_operation: Operation, single: Operation, term: Term, parts: Iterable[Predicate]
) -> Predicate:
    """Join the comparisons of a list: those of ``single`` in one set, the others beside it."""
    literals: set[Any] = set()
    others: list[Predicate] = []
    for part in parts:
        if isinstance(part, Leaf) and part.operation is single:
            literals.add(part.literal)
        elif part not in others:
            others.append(part)
    if len(literals) == 1:
        others.insert(0, Leaf(single, term, *literals))
    elif literals:
        others.insert(0, Leaf(set_operation, term, frozenset(literals)))
    if set_operation is Operation.IN:
        return reduce(or_, others, ALWAYS_FALSE)
    not_null = Leaf(Operation.NOT_NULL, term)
    if len(others) > 1 and not_null in others:
        # NOT_IN alone is false for NULL; the weaker conjunct adds nothing.
        others.remove(not_null)
    return reduce(and_, others, ALWAYS_TRUE)


def _prefix(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    if not (isinstance(column_type, t.StringType) and _is_text(value)):
        return Leaf(Operation.NOT_NULL, term)
    if value:
        return Leaf(operation, term, value)
    return Leaf(Operation.NOT_NULL, term) if operation is Operation.STARTS_WITH else ALWAYS_FALSE


def _ordered(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """LT, LT_EQ, GT, GT_EQ, EQ or NOT_EQ with a value that is not None."""
    leaf = Leaf(operation, term, value)
    match column_type:
        case t.IntegerType() | t.LongType() | t.DecimalType():
            return exact_number(operation, term, column_type, value)
        case t.FloatType() | t.DoubleType():
            return floating(operation, term, column_type, value)
        case t.DateType() | t.AnyTimestamp():
            return temporal(operation, term, column_type, value)
        case t.TimeType() if isinstance(value, time) and value.tzinfo is None:
            return Leaf(operation, term, _micros_of_day(value))
        case t.BooleanType() if isinstance(value, bool):
            return leaf
        case t.StringType() if _is_text(value):
            return leaf
        case t.BinaryType() if isinstance(value, bytes | bytearray | memoryview):
            return Leaf(operation, term, bytes(value))
        case t.FixedType() if isinstance(value, bytes | bytearray | memoryview):
            return _fixed(operation, term, column_type.length, bytes(value))
        case t.UUIDType():
            return _uuid(operation, term, value)
    return Leaf(Operation.NOT_NULL, term)


def _is_text(value: Any) -> bool:
    """Whether ``value`` is text that UTF-8 can hold (no lone surrogates)."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fixed(operation: Operation, term: Term, length: int, value: bytes) -> Predicate:
    if len(value) != length:
        if operation is Operation.EQ:
            return ALWAYS_FALSE
        if operation is Operation.NOT_EQ:
            return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term, value)


def _uuid(operation: Operation, term: Term, value: Any) -> Predicate:
    literal = _uuid_bytes(value)
    if literal is None or operation not in (Operation.EQ, Operation.NOT_EQ):
        # Java orders UUIDs as signed numbers, DuckDB and Parquet as unsigned: ranges prove nothing.
        return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term, literal)


def _uuid_bytes(value: Any) -> bytes | None:
    match value:
        case UUID():
            return value.bytes
        case bytes() if len(value) == 16:
            return value
        case str() if re.fullmatch(_UUID, value):
            return UUID(value).bytes
        case _:
            return None


_UUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
