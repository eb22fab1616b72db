"""Times, zones and intervals as text: what the text of a literal means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SECOND: Final = 1_000_000
_DAY: Final = 86_400 * SECOND

# unit → (months, days, microseconds)
_UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "MICROSECOND": (0, 0, 1),
    "MILLISECOND": (0, 0, 1000),
    "SECOND": (0, 0, SECOND),
    "MINUTE": (0, 0, 60 * SECOND),
    "HOUR": (0, 0, 3600 * SECOND),
    "DAY": (0, 1, 0),
    "WEEK": (0, 7, 0),
    "MONTH": (1, 0, 0),
    "QUARTER": (3, 0, 0),
    "YEAR": (12, 0, 0),
    "DECADE": (120, 0, 0),
    "CENTURY": (1200, 0, 0),
}
_SHORT_UNITS: Final = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "M": "MINUTE",
    "MIN": "MINUTE",
    "H": "HOUR",
    "HR": "HOUR",
    "D": "DAY",
    "W": "WEEK",
    "MON": "MONTH",
    "Q": "QUARTER",
    "Y": "YEAR",
    "YR": "YEAR",
    "CENTURIE": "CENTURY",
}
_TIME: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"\s*(Z|z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z0-9_+\-/]*)?)?"
)
TIME_SHAPE: Final = "write it like '2026-01-31 12:00:00', '… Europe/Vienna' or '… +02:00'"


class NotConstant(Exception):
    """Why an expression cannot be folded; ``fold`` turns it into a SqlSyntaxError."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Calendar months and days, and microseconds."""

    months: int = 0
    days: int = 0
    us: int = 0

    def times(self, factor: int) -> Interval:
        """``factor`` of it."""
        return Interval(self.months * factor, self.days * factor, self.us * factor)

    def plus(self, other: Interval) -> Interval:
        """Both together."""
        return Interval(self.months + other.months, self.days + other.days, self.us + other.us)


def read_time(text: str) -> datetime | date:
    """The time a text writes down: aware if it names a zone, a date if it has no clock.

    Raises NotConstant.
    """
    found = _TIME.fullmatch(text.strip())
    if not found:
        if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text):
            raise NotConstant(
                f"is '{text}' seconds or milliseconds? Write to_timestamp({text}) for seconds, "
                f"epoch_ms({text}) for milliseconds, or TIMESTAMP '…'"
            )
        raise NotConstant(f"'{text}' is not a time; {TIME_SHAPE}")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        if hour is None:
            return date(int(year), int(month), int(day))
        # Digits below a microsecond cannot choose another snapshot: commits are milliseconds.
        us = int(((fraction or "") + "000000")[:6])
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0), us
        )
    except ValueError as error:
        raise NotConstant(f"'{text}' is not a time: {error}") from None
    return in_zone(moment, zone_named(zone)) if zone else moment


def read_interval(text: str) -> Interval:
    """The interval a text like '1 day 02:00:00' writes down. Raises NotConstant."""
    total, position, found = Interval(), 0, False
    pattern = re.compile(
        r"\s*(?:([+-]?\d+(?:\.\d+)?)\s*([A-Za-zµ]+)|([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?)\s*,?"
    )
    while position < len(text.rstrip()):
        part = pattern.match(text, position)
        if not part:
            raise NotConstant(f"'{text}' is not an interval such as '1 day 2 hours'")
        if part[1]:
            step = interval_of(Decimal(part[1]), part[2], f"'{text}'")
        else:
            minutes = int(part[4]) * 60 + int(part[5])
            us = int((Decimal(minutes) * 60 + Decimal(part[6] or 0)) * SECOND)
            step = Interval(us=-us if part[3] == "-" else us)
        total, position, found = total.plus(step), part.end(), True
    if not found:
        raise NotConstant("an empty text is not an interval")
    return total


def read_span(text: str, first: str, last: str) -> Interval:
    """The interval of '1-2' YEAR TO MONTH or '1 02:00:00' DAY TO SECOND. Raises NotConstant."""
    found = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text)
    if found and (unit_named(first), unit_named(last)) == ("YEAR", "MONTH"):
        return Interval(int(found[2]) * 12 + int(found[3])).times(-1 if found[1] == "-" else 1)
    found = re.fullmatch(r"\s*([+-]?)(\d+)\s+(\d+):(\d+)(?::(\d+(?:\.\d+)?))?\s*", text)
    if found and unit_named(first) == "DAY":
        minutes = int(found[3]) * 60 + int(found[4])
        us = int((Decimal(minutes) * 60 + Decimal(found[5] or 0)) * SECOND)
        return Interval(0, int(found[2]), us).times(-1 if found[1] == "-" else 1)
    raise NotConstant(f"'{text}' is not an interval of {first} TO {last}")


def interval_of(amount: Decimal, unit: str, shown: str) -> Interval:
    """``amount`` units of time; ``shown`` is how errors call it. Raises NotConstant."""
    name = unit_named(unit)
    if not name:
        raise NotConstant(f"{unit} is not a unit of time in {shown}")
    months, days, us = (amount * part for part in _UNITS[name])
    if months != int(months):
        raise NotConstant(f"{shown} is not a whole number of months")
    whole = int(days)
    return Interval(int(months), whole, int((days - whole) * _DAY + us))


def unit_named(text: str) -> str:
    """The full name of a unit in upper case, "" for no unit."""
    name = text.upper().replace("Μ", "U")
    for candidate in (name, name.removesuffix("S")):
        candidate = _SHORT_UNITS.get(candidate, candidate)
        if candidate in _UNITS:
            return candidate
    return ""


def zone_named(text: str) -> tzinfo:
    """The zone of Z, +02:00, UTC or Europe/Vienna. Raises NotConstant."""
    if text in ("Z", "z"):
        return UTC
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?:?(\d{2})?", text)
    if found:
        shift = timedelta(
            hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0)
        )
        if shift >= timedelta(hours=24):
            raise NotConstant(f"'{text}' is not an offset from UTC")
        return timezone(-shift if found[1] == "-" else shift)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError):
        if text.upper() in ("UTC", "GMT"):
            return UTC
        raise NotConstant(f"'{text}' is not a time zone such as Europe/Vienna or +02:00") from None


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The instant of a wall clock in a zone."""
    # fold=0 is Java's rule for gaps and overlaps.
    return moment.replace(tzinfo=zone, fold=0).astimezone(UTC)
