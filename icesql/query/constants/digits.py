"""Times that are written in digits alone: 20260131120000000, milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from icesql.config import time_zone

if TYPE_CHECKING:
    from icesql.context import QueryContext

_CLOCK: Final = r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})?"
# Milliseconds since 1970 of the years 2001 to 2286, and how many have passed.
_MILLISECONDS: Final = r"\d{13}|-\d{4,12}"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(instant: datetime) -> int:
    """Microseconds since the epoch of an aware time."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def clock_of_digits(text: str) -> datetime | None:
    """The wall clock of ``yyyyMMddHHmmss[SSS]``; None for all others."""
    found = re.fullmatch(_CLOCK, text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each) for each in found.groups()[:6])
    try:
        return datetime(year, month, day, hour, minute, second, int(found[7] or 0) * 1000)
    except ValueError:
        return None


def time_of_digits(text: str, query: QueryContext) -> int | None:
    """Microseconds since the epoch: of a clock in the session's zone, or of milliseconds.

    Negative ones count from now. None for all others.
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
