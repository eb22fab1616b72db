"""Parse the text of time and time zone literals."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from icesql.query.constants.constant import NotConstant

_TIME: Final = (
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"\s*(Z|z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z0-9_+\-/]*)?)?"
)
TIME_SHAPE: Final = "write it like '2026-01-31 12:00:00', '… Europe/Vienna' or '… +02:00'"


def read_time(text: str) -> datetime | date:
    """Parse a time: aware if the text names a zone, a date if it has no clock.

    Raises NotConstant.
    """
    found = re.fullmatch(_TIME, text.strip())
    if not found:
        if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text):
            raise NotConstant(
                f"ambiguous timestamp '{text}'; use to_timestamp({text}) for seconds or "
                f"epoch_ms({text}) for milliseconds"
            )
        raise NotConstant(f"'{text}' is not a time; {TIME_SHAPE}")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        if hour is None:
            return date(int(year), int(month), int(day))
        # Digits below a microsecond cannot select another snapshot: commit times are milliseconds.
        us = int(((fraction or "") + "000000")[:6])
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0), us
        )
    except ValueError as error:
        raise NotConstant(f"'{text}' is not a time: {error}") from None
    return in_zone(moment, zone_named(zone)) if zone else moment


def zone_named(text: str) -> tzinfo:
    """Parse a zone: Z, +02:00, UTC or Europe/Vienna. Raises NotConstant."""
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
