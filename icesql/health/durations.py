"""Parse durations, sizes and time windows as written in policies and command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from icesql.config import parse_bytes
from icesql.frozen import Frozen

_UNITS: Final = {
    "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "d": 86_400, "day": 86_400, "w": 604_800, "week": 604_800,
}  # fmt: skip
_DURATION: Final = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+?)s?\s*")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = "(?:mon|tue|wed|thu|fri|sat|sun)"
_WINDOW: Final = re.compile(
    rf"\s*(?:({_DAY}(?:[-,]{_DAY})*)\s+)?(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)\s*"
)


def parse_seconds(text: str) -> float:
    """The seconds of "20min", "1.5 h" or "7 days".

    >>> parse_seconds("20min"), parse_seconds("7 days")
    (1200.0, 604800.0)

    Raises ValueError for anything else.
    """
    read = _DURATION.fullmatch(str(text).lower())
    if read is None or read[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a duration such as 20min or 7 days")
    return float(read[1]) * _UNITS[read[2]]


class Budget(Frozen):
    """Limits of seconds, and of bytes of rewritten data files, after which no action starts."""

    seconds: float | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, text: str) -> Budget:
        """Parse "20min", "500GB" or both with a comma between. Raises ValueError."""
        seconds: float | None = None
        size: int | None = None
        for part in text.split(","):
            try:
                seconds = parse_seconds(part)
            except ValueError:
                try:
                    size = parse_bytes(part)
                except ValueError:
                    raise ValueError(
                        f"{text!r} is not a budget such as 20min, 500GB or 20min,500GB"
                    ) from None
        return cls(seconds, size)


class Window(Frozen):
    """Minutes of the day in UTC, ``end`` excluded; it spans midnight if it ends before its start.

    ``days`` are the weekdays on which it starts; Monday is 0.
    """

    start: int
    end: int
    days: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Window:
        """Parse "22:00-06:00", "Sat,Sun 00:00-24:00" or "Mon-Fri 20:00-23:30". ValueError."""
        read = _WINDOW.fullmatch(text.lower())
        if read is None:
            raise ValueError(f"{text!r} is not a window such as 22:00-06:00 or Sat,Sun 00:00-24:00")
        start, end = (int(read[n]) * 60 + int(read[n + 1]) for n in (2, 4))
        if max(int(read[3]), int(read[5])) > 59 or start >= 1440 or end > 1440 or start == end:
            raise ValueError(f"{text!r} is not a window of a day")
        return cls(start, end, _days(read[1]))

    def holds(self, moment: datetime) -> bool:
        """True if a UTC time is in the window."""
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        before = (day - 1) % 7
        return (day in self.days and minute >= self.start) or (
            before in self.days and minute < self.end
        )


def is_open(windows: Sequence[Window], moment: datetime) -> bool:
    """True if a window contains the moment, or there are no windows."""
    return not windows or any(each.holds(moment) for each in windows)


def _days(text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        names = part.split("-")
        first, last = _DAYS.index(names[0]), _DAYS.index(names[-1])
        days |= {each % 7 for each in range(first, last + 1 + 7 * (last < first))}
    return frozenset(days)
