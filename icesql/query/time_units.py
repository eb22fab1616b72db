"""Units of time: their names, their lengths, and the buckets they cut time into."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from typing import Final

from sqlglot import exp

from icesql.query.constants import DAY, HOUR, SECOND, Constant, Interval, Kind

_EPOCH_DATE: Final = date(1970, 1, 1)
_INTERVAL_PART = re.compile(r"\s*([+-]?\d+)\s*([A-Za-z]+)\s*", re.ASCII)
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_DAYS: Final = {"day": 1, "week": 7}
MICROS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": HOUR,
}


def unit_name(text: str) -> str:
    """ "DAYS" → "day"; the text itself in lower case for what is no unit of time."""
    lower = text.lower()
    for name in (lower, lower.removesuffix("s")):
        if name in _MONTHS or name in _DAYS or name in MICROS:
            return name
    return lower


def unit_of(node: exp.Expr) -> str:
    """The unit of a truncation or extraction, "" when it is not a plain word."""
    unit = node.args.get("unit")
    return unit_name(unit.name) if isinstance(unit, exp.Var | exp.Literal) else ""


def interval_of_text(text: str) -> Constant | None:
    """INTERVAL '1 month 2 days', None for other spellings."""
    total, position = Interval(), 0
    while position < len(text):
        part = _INTERVAL_PART.match(text, position)
        step = interval_of(int(part[1]), part[2]) if part else None
        if part is None or step is None:
            return None
        total, position = total + step, part.end()
    return Constant(Kind.INTERVAL, total) if position else None


def interval_of(amount: int, unit: str) -> Interval | None:
    """``amount`` units as an interval, None for what is no unit of time."""
    name = unit_name(unit)
    if name in _MONTHS:
        return Interval(months=amount * _MONTHS[name])
    if name in _DAYS:
        return Interval(days=amount * _DAYS[name])
    if name in MICROS:
        return Interval(micros=amount * MICROS[name])
    return None


def bucket_start(micros: int, unit: str) -> int | None:
    """The start of the ``unit`` that holds a time on a clock, in µs; None for other units.

    Raises OverflowError outside the years 1 to 9999.
    """
    if unit in ("hour", "minute", "second", "millisecond", "microsecond"):
        return micros - micros % MICROS[unit]
    days = micros // DAY
    day = _EPOCH_DATE + timedelta(days=days)
    match unit:
        case "day":
            start = day
        case "week":
            start = day - timedelta(days=day.weekday())
        case "month":
            start = day.replace(day=1)
        case "quarter":
            start = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            start = day.replace(month=1, day=1)
        case _:
            return None
    return epoch_days(start) * DAY


def next_bucket(start: int, unit: str) -> int:
    """The start of the ``unit`` after the one that starts at ``start``."""
    step = interval_of(1, unit)
    assert step is not None
    return shift(start, step)


def shift(micros: int, step: Interval) -> int:
    """A time on a clock in µs, moved; months end on the last day of shorter ones."""
    days, clock = divmod(micros, DAY)
    if step.months:
        day = _EPOCH_DATE + timedelta(days=days)
        year, month = divmod(day.year * 12 + day.month - 1 + step.months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        days = epoch_days(date(year, month + 1, min(day.day, last)))
    return (days + step.days) * DAY + clock + step.micros


def epoch_days(day: date) -> int:
    """Days since 1970-01-01."""
    return (day - _EPOCH_DATE).days
