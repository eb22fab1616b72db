"""Invert functions of time: a comparison becomes a predicate, wider where clocks change.

>>> implied("date(ts) = DATE '2024-02-29' AND ts + INTERVAL 1 HOUR < TIMESTAMP '2024-03-01'")
ts >= 2024-02-29 00:00:00 AND ts < 2024-03-01 00:00:00 AND ts < 2024-02-29 23:00:00
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Operation, Predicate
from icesql.query.constants.casts import (
    INTEGERS,
    cast,
    moved,
    to_date,
    to_timestamp,
    to_timestamptz,
)
from icesql.query.constants.constant import DAY, HOUR, Constant, Interval, Kind
from icesql.query.constants.session_zone import to_local, zone_slack
from icesql.query.constants.time_units import (
    FINER_THAN_DAY,
    bucket_start,
    epoch_days,
    next_bucket,
    unit_name,
)
from icesql.query.pushdown.comparison import ZONED, all_of, any_of
from icesql.query.pushdown.computed.expression import Expression

if TYPE_CHECKING:
    from icesql.query.pushdown.predicate import Translator

_TIME_TYPES: Final = (t.DateType, t.TimestampType, t.TimestampNanoType, *ZONED)
_WHOLE, _EXACT = (t.IntegerType, t.LongType), (Kind.INTEGER, Kind.DECIMAL)
# By the type of a cast: columns whose order it keeps, and constants compared with them.
_CASTS: Final[dict[str, Any]] = {
    **dict.fromkeys(INTEGERS, (_WHOLE, _EXACT)),
    "DOUBLE": ((*_WHOLE, t.DecimalType, t.FloatType), (Kind.DOUBLE,)),
    "TIMESTAMP": ((t.DateType, *ZONED), (Kind.DATE, Kind.TIMESTAMP)),
    "TIMESTAMPTZ": ((t.DateType, t.TimestampType), (Kind.TIMESTAMPTZ,)),
    "VARCHAR": ((t.StringType,), (Kind.TEXT, Kind.STRING)),
}


def inverted(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    """The predicate implied by ``each operation constant``, if it is not NULL; None without one."""
    try:
        return _INVERSES[each.name](to, operation, each, constant)
    except (OverflowError, ValueError, ArithmeticError, LookupError):
        return None


def _cast(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    inner, name = each.arguments[0], each.value or "TIMESTAMPTZ"
    if name == "DATE":
        return _day(to, operation, inner, constant)
    types, kinds = _CASTS.get(name, ((), ()))
    if constant.kind is Kind.TEXT or name in ("DOUBLE", "TIMESTAMPTZ"):
        constant = cast(constant, name, to.query) or constant
    fits = inner.is_column(*types) and constant.kind in kinds
    return to.compare(operation, inner, constant) if fits else None


def _day(to: Translator, operation: Operation, inner: Expression, constant: Constant) -> Any:
    if constant.kind is Kind.TEXT:
        constant = to_date(constant, to.query) or constant
    if inner.is_column(t.DateType):
        return to.compare(operation, inner, constant)
    zoned = constant.kind is Kind.TIMESTAMPTZ
    clock = to_timestamp(constant, to.query)
    if clock is None or constant.kind is Kind.TEXT or not inner.is_column(*_TIME_TYPES):
        return None
    clock = clock.widened(zone_slack(to.query, DAY) if zoned else 0)
    # A day is compared as its midnight.
    start, end = clock.value // DAY * DAY, (clock.greatest // DAY + 1) * DAY
    has = clock.value == start if clock.is_exact else None
    return _buckets(to, operation, inner, start, end, has)


def _year(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    *unit, inner = each.arguments
    if unit and unit_name(unit[0].text or "") != "year":
        return None
    is_whole = constant.kind in _EXACT and constant.value == int(constant.value)
    if not is_whole or not 1 <= constant.value <= 9998 or not inner.is_column(*_TIME_TYPES):
        return None
    start = epoch_days(date(int(constant.value), 1, 1)) * DAY
    return _buckets(to, operation, inner, start, next_bucket(start, "year"), True)


def _truncated(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    unit, inner = unit_name(each.arguments[0].text or ""), each.arguments[1]
    zoned = inner.name == "first_instant" or inner.value == "TIMESTAMPTZ"
    inner = inner.arguments[0] if zoned else inner
    # DuckDB compares only the day of a date.
    is_fine = unit in FINER_THAN_DAY
    if not inner.is_column(*_TIME_TYPES) or (inner.is_column(t.DateType) and is_fine):
        return None
    zoned = zoned or inner.is_column(*ZONED)
    moment = _beside(to, constant, zoned)
    if moment is None:
        return None
    clock = to_local(moment, to.query) if zoned else moment
    # Truncation uses the session's clock, the comparison instants.
    slack = zone_slack(to.query, 3 * HOUR if clock.is_exact else DAY) if zoned else 0
    start = bucket_start(clock.value - slack, unit)
    last = bucket_start(clock.greatest + slack, unit)
    if start is None or last is None:
        return None
    has, end = None if slack else clock.value == start, next_bucket(last, unit)
    return _buckets(to, operation, inner, start - slack, end + slack, has)


def _beside(to: Translator, constant: Constant, zoned: bool) -> Constant | None:
    """The constant as the kind of time of a column; None where the zone would decide."""
    if constant.kind is Kind.TIMESTAMPTZ and not zoned:
        return None
    return (to_timestamptz if zoned else to_timestamp)(constant, to.query)


def _buckets(
    to: Translator, op: Operation, inner: Expression, start: int, end: int, has: bool | None
) -> Predicate | None:
    """``has``: the constant is the bucket from start to end; None if it may be another one."""
    ends = Constant(Kind.TIMESTAMP, start), Constant(Kind.TIMESTAMP, end)
    below = [to.compare(Operation.LT, inner, each) for each in ends]
    above = [to.compare(Operation.GT_EQ, inner, each) for each in ends]
    if op is Operation.EQ:
        return ALWAYS_FALSE if has is False else all_of([above[0], below[1]])
    if op is Operation.NOT_EQ:
        return None if has is None else any_of([below[not has], above[has]])
    if op in (Operation.LT, Operation.LT_EQ):
        return below[op is Operation.LT_EQ or not has]
    return above[has is not None if op is Operation.GT else has is False]


def _moved(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    inner, known = each.arguments[0], to.constant(each.arguments[1])
    if known is None and each.name == "+":
        inner, known = each.arguments[1], to.constant(inner)
    if known is None or known.kind is not Kind.INTERVAL or not inner.is_column(*_TIME_TYPES):
        return None
    step: Interval = known.value if each.name.startswith(("-", "instant_moved_b")) else -known.value
    zoned = inner.is_column(*ZONED)
    target = _beside(to, constant, zoned)
    if target is None:
        return None
    # The last days of a month all move to the last day of a shorter month.
    slack = 4 * DAY if step.months else 0
    slack += zone_slack(to.query, DAY) if zoned and (step.months or step.days) else 0
    target = moved(target, Interval(0, 0, step.micros), to.query)
    target = moved(target, Interval(step.months, step.days), to.query)
    return to.compare(operation, inner, target.widened(slack))


_INVERSES: Final = {
    **dict.fromkeys(("cast", "try_cast", "first_instant"), _cast),
    **dict.fromkeys(("year", "date_part", "datepart"), _year),
    **dict.fromkeys(("date_trunc", "datetrunc", "instant_truncated"), _truncated),
    **dict.fromkeys(("+", "-", "instant_moved", "instant_moved_back"), _moved),
}
