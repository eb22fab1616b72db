"""Times on the calendar: their units, the session's time zone, and texts that are canonical."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.config import time_zone
from icesql.iceberg import types as t
from icesql.iceberg.expressions.literals import NanoTimestamp
from icesql.query.constants.constant import DAY, HOUR, SECOND, Constant, Interval, Kind, NotConstant

if TYPE_CHECKING:
    from icesql.context import QueryContext


# Times written in digits only: 20260131120000000, milliseconds since 1970.

_CLOCK: Final = r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})?"
# Milliseconds since 1970 for the years 2001 to 2286, or minus milliseconds before now.
_MILLISECONDS: Final = r"\d{13}|-\d{4,12}"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(instant: datetime) -> int:
    """Microseconds since the epoch of an aware datetime."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def clock_of_digits(text: str) -> datetime | None:
    """The wall clock of ``yyyyMMddHHmmss[SSS]``; None for all other texts."""
    found = re.fullmatch(_CLOCK, text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each) for each in found.groups()[:6])
    try:
        return datetime(year, month, day, hour, minute, second, int(found[7] or 0) * 1000)
    except ValueError:
        return None


def time_of_digits(text: str, query: QueryContext) -> int | None:
    """Microseconds since the epoch, from a clock in the session's zone or from milliseconds.

    Negative milliseconds are relative to now. None for all other texts.
    """
    clock = clock_of_digits(text)
    if clock is not None:
        instant = clock.replace(tzinfo=time_zone(query.settings.timezone), fold=0)
    elif re.fullmatch(_MILLISECONDS, text):
        start = query.now if text.startswith("-") else _EPOCH
        instant = start + timedelta(milliseconds=int(text))
    else:
        return None
    return micros_of(instant)


_EPOCH_DATE: Final = date(1970, 1, 1)
# unit → (months, days, microseconds)
_UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "microsecond": (0, 0, 1),
    "millisecond": (0, 0, 1000),
    "second": (0, 0, SECOND),
    "minute": (0, 0, 60 * SECOND),
    "hour": (0, 0, HOUR),
    "day": (0, 1, 0),
    "week": (0, 7, 0),
    "month": (1, 0, 0),
    "quarter": (3, 0, 0),
    "year": (12, 0, 0),
    "decade": (120, 0, 0),
    "century": (1200, 0, 0),
}
FINER_THAN_DAY: Final = frozenset(name for name, (_, _, micros) in _UNITS.items() if micros)
_SHORT_UNITS: Final = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
    "mon": "month",
    "q": "quarter",
    "y": "year",
    "yr": "year",
    "centurie": "century",
}
_INTERVAL_PART: Final = re.compile(
    r"\s*(?:([+-]?\d+(?:\.\d+)?)\s*([A-Za-zµ]+)|([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?)\s*,?",
    re.ASCII,
)


def unit_name(text: str) -> str:
    """The full name of a unit of time; other texts in lower case.

    >>> unit_name("DAYS"), unit_name("min"), unit_name("Parsec")
    ('day', 'minute', 'parsec')
    """
    lower = text.lower().replace("µ", "u").replace("μ", "u")
    for name in (lower, lower.removesuffix("s")):
        name = _SHORT_UNITS.get(name, name)
        if name in _UNITS:
            return name
    return lower


def interval_of(amount: int | Decimal, unit: str) -> Interval:
    """``amount`` units as an interval; a fraction of a day becomes microseconds.

    Raises NotConstant for unknown units, and for fractions of a month.

    >>> interval_of(Decimal("1.5"), "days")
    Interval(months=0, days=1, micros=43200000000)
    """
    parts = _UNITS.get(unit_name(unit))
    if parts is None:
        raise NotConstant(f"{unit} is not a unit of time")
    months, days, micros = (amount * part for part in parts)
    if months != int(months):
        raise NotConstant(f"{amount} {unit} is not a whole number of months")
    whole = int(days)
    return Interval(int(months), whole, int((days - whole) * DAY + micros))


def interval_of_text(text: str) -> Interval:
    """Parse the text of an interval. Raises NotConstant.

    >>> interval_of_text("1 year 2 days 00:00:01")
    Interval(months=12, days=2, micros=1000000)
    """
    total, position, found = Interval(), 0, False
    while position < len(text.rstrip()):
        part = _INTERVAL_PART.match(text, position)
        if not part:
            raise NotConstant(f"'{text}' is not an interval such as '1 day 2 hours'")
        if part[1]:
            step = interval_of(Decimal(part[1]), part[2])
        else:
            step = Interval(micros=_clock(part[4], part[5], part[6]))
            step = -step if part[3] == "-" else step
        total, position, found = total + step, part.end(), True
    if not found:
        raise NotConstant("an empty text is not an interval")
    return total


def interval_of_span(text: str, first: str, last: str) -> Interval:
    """Parse '1-2' YEAR TO MONTH or '1 02:00:00' DAY TO SECOND. Raises NotConstant."""
    found = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text, re.ASCII)
    if found and (unit_name(first), unit_name(last)) == ("year", "month"):
        span = Interval(int(found[2]) * 12 + int(found[3]))
        return -span if found[1] == "-" else span
    found = re.fullmatch(r"\s*([+-]?)(\d+)\s+(\d+):(\d+)(?::(\d+(?:\.\d+)?))?\s*", text, re.ASCII)
    if found and unit_name(first) == "day":
        span = Interval(0, int(found[2]), _clock(found[3], found[4], found[5]))
        return -span if found[1] == "-" else span
    raise NotConstant(f"'{text}' is not an interval of {first} TO {last}")


def _clock(hours: str, minutes: str, seconds: str | None) -> int:
    """Hours, minutes and seconds in µs."""
    whole = int(hours) * 60 + int(minutes)
    return int((Decimal(whole) * 60 + Decimal(seconds or 0)) * SECOND)


def bucket_start(micros: int, unit: str) -> int | None:
    """The start of the ``unit`` that contains a wall clock, in µs; None for unknown units.

    Raises OverflowError outside the years 1 to 9999.
    """
    if unit in FINER_THAN_DAY:
        return micros - micros % _UNITS[unit][2]
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
    return shift(start, interval_of(1, unit))


def shift(micros: int, step: Interval) -> int:
    """Add an interval to a wall clock in µs; days past the end of a month become its last day."""
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


# ------------------------------------------------------------------ the session's zone
# Clocks become instants and the reverse, as ranges where they are ambiguous.


_EPOCH_CLOCK: Final = datetime(1970, 1, 1)
# Daylight saving rules are extrapolated after these years, reconstructed before them.
_SURE_FROM: Final = 0
_SURE_TO: Final = 68 * 365 * DAY


def _is_utc(query: QueryContext) -> bool:
    return query.settings.timezone in ("UTC", "Etc/UTC")


def zone_slack(query: QueryContext, slack: int) -> int:
    """``slack`` unless the session's zone is UTC, where clock and instant are equal."""
    return 0 if _is_utc(query) else slack


def _offset(clock: int, query: QueryContext, fold: int) -> int:
    moment = (_EPOCH_CLOCK + timedelta(microseconds=clock)).replace(fold=fold)
    return _micros(moment.replace(tzinfo=time_zone(query.settings.timezone)))


def to_instant(local: Constant, query: QueryContext) -> Constant:
    """The instants that a TIMESTAMP may be in the session's zone. Raises OverflowError."""
    if _is_utc(query):
        return replace(local, kind=Kind.TIMESTAMPTZ)
    low = min(local.value - _offset(local.value, query, fold) for fold in (0, 1))
    high = max(local.greatest - _offset(local.greatest, query, fold) for fold in (0, 1))
    if not (low > _SURE_FROM and high < _SURE_TO and local.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMPTZ, low, None if low == high else high)


def to_local(instant: Constant, query: QueryContext) -> Constant:
    """The wall clock of the session's zone at an instant. Raises OverflowError."""
    if _is_utc(query):
        return replace(instant, kind=Kind.TIMESTAMP)
    low, high = (each + _offset_at(each, query) for each in (instant.value, instant.greatest))
    sure = instant.value > _SURE_FROM and instant.greatest < _SURE_TO
    if not (sure and instant.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMP, min(low, high), None if low == high else max(low, high))


def _offset_at(instant: int, query: QueryContext) -> int:
    moment = (_EPOCH_CLOCK + timedelta(microseconds=instant)).replace(tzinfo=UTC)
    return _micros(moment.astimezone(time_zone(query.settings.timezone)))


def _micros(moment: datetime) -> int:
    """The offset of an aware time from UTC in µs."""
    offset = moment.utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def offset_is_steady(instant: Constant, query: QueryContext) -> bool:
    """True if the zone keeps one offset for two days around an instant."""
    if _is_utc(query):
        return True
    low, high = instant.value - 2 * DAY, instant.greatest + 2 * DAY
    if not (low > _SURE_FROM and high < _SURE_TO) or high - low > 5 * DAY:
        return False
    steps = range(low, high + 3 * HOUR, 3 * HOUR)
    return len({_offset_at(each, query) for each in steps}) == 1


# ------------------------------------------------------------------ canonical texts
# Every engine reads the canonical forms of ISO 8601 as the same time.


_TIME_OF_DAY: Final = r"(?a)\d\d:\d\d:\d\d(\.\d{1,6})?"
_TIMESTAMP: Final = (
    r"(?a)(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)\.(\d{1,9}))?"
    r"(Z|[+-]\d\d(?::\d\d){0,2})?)?"
)
_NANOS: Final = (t.TimestampNanoType, t.TimestamptzNanoType)


def time_of_day(text: str) -> time | None:
    """The time of ``HH:MM:SS[.ffffff]``, None for anything else.

    >>> time_of_day("10:00:00.5"), time_of_day("25:00:00")
    (datetime.time(10, 0, 0, 500000), None)
    """
    if re.fullmatch(_TIME_OF_DAY, text) is None:
        return None
    try:
        return time.fromisoformat(text)
    except ValueError:
        return None


def read_for(column_type: t.IcebergType, value: Any) -> Any:
    """A text compared with a date, time or timestamp column as a value; other values unchanged.

    A text stays a text, which compares with no such column, if it is not canonical or has more
    digits than the unit of the column: engines truncate or round it.

    >>> read_for(t.DATE, "2020-01-01"), read_for(t.DATE, "2020-01-01 12:00:00")
    (NanoTimestamp(epoch_ns=1577836800000000000, zoned=False), '2020-01-01 12:00:00')
    """
    if not isinstance(value, str):
        return value
    match column_type:
        case t.TimeType():
            found: Any = time_of_day(value)
        case t.DateType() | t.AnyTimestamp():
            found = timestamp_of(value, column_type)
        case _:
            return value
    return value if found is None else found


def timestamp_of(text: str, column_type: t.IcebergType) -> NanoTimestamp | None:
    """The time of a canonical text, a date as its midnight; None as for ``read_for``."""
    found = re.fullmatch(_TIMESTAMP, text)
    if found is None or (found[2] and isinstance(column_type, t.DateType)):
        return None
    clock, fraction, zone = found[2] or "00:00", found[3] or "", found[4] or ""
    if len(fraction) > 6 and not isinstance(column_type, _NANOS):
        return None
    try:
        micros = micros_of(datetime.fromisoformat(f"{found[1]} {clock}{zone or 'Z'}"))
    except ValueError:
        return None
    return NanoTimestamp(micros * 1000 + int(fraction.ljust(9, "0")), zoned=bool(zone))
