"""Times relative to now: ``2 days ago``, ``yesterday 12:00``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from icesql.query.constants.constant import Interval, NotConstant
from icesql.query.constants.time_units import interval_of_text, shift

_DAY: Final = r"(?i)\s*(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?)?\s*"
# '2 days ago', and '-48h' as in CockroachDB.
_AGO: Final = r"(?i)(?:(?P<span>.*\S)\s+ago|-\s*+(?P<back>\d++\s*+[a-z]++))"
EPOCH: Final = datetime(1970, 1, 1)


def relative_time(text: str, now: datetime, zone: tzinfo) -> datetime | date | None:
    """A time relative to ``now`` (aware), on the clock of ``zone``; None for other texts.

    A date is its midnight. Raises NotConstant for an invalid interval or clock.
    """
    if text.strip().lower() == "now":
        return now
    local = now.astimezone(zone).replace(tzinfo=None)
    if found := re.fullmatch(_DAY, text):
        day = local.date() - timedelta(days=found[1].lower() == "yesterday")
        if found[2] is None:
            return day
        try:
            return datetime(
                day.year, day.month, day.day, int(found[2]), int(found[3]), int(found[4] or 0)
            )
        except ValueError as error:
            raise NotConstant(f"'{text}' is not a time: {error}") from None
    if found := re.fullmatch(_AGO, text.strip()):
        span = interval_of_text(found["span"] or found["back"])
        back = Interval(-span.months, -span.days, 0)
        # Hours and smaller units are elapsed time, whatever clocks did; days follow the calendar.
        earlier = (now - timedelta(microseconds=span.micros)).astimezone(zone).replace(tzinfo=None)
        if not (span.months or span.days):
            return now.astimezone(UTC) - timedelta(microseconds=span.micros)
        micros = shift((earlier - EPOCH) // timedelta(microseconds=1), back)
        return EPOCH + timedelta(microseconds=micros)
    return None
