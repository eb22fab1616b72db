"""The value of an SQL interval that has months: Python's timedelta has no room for them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

_HOUR: Final = 3_600_000_000
_DAY: Final = 24 * _HOUR
_MONTH: Final = 30 * _DAY


def _comparison(compare: Callable[[int, int], bool]) -> Callable[[Interval, object], bool]:
    """A method that compares the lengths of an interval and of another one, or of a timedelta."""

    def compared(self: Interval, other: object) -> bool:
        length = _length(other)
        return NotImplemented if length is None else compare(self._length, length)

    return compared


class Interval(Struct, frozen=True, eq=False):
    """Months, days and microseconds, each with a sign of its own, as SQL keeps them.

    Without a date, a month is no fixed number of days, nor a day a fixed number of hours.
    Comparisons, also with a timedelta, are SQL's: they take 30 days for a month and 24 hours for a
    day. ``str`` is the engine's text: ``1 year 2 months 3 days 04:05:06.789``.
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @classmethod
    def of(cls, value: timedelta) -> Interval:
        """The days and the time of day of a timedelta, both with its sign."""
        total = value // timedelta(microseconds=1)
        days = _towards_zero(total, _DAY)
        return cls(0, days, total - days * _DAY)

    @property
    def _length(self) -> int:
        return self.months * _MONTH + self.days * _DAY + self.microseconds

    __eq__ = _comparison(operator.eq)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __hash__(self) -> int:
        try:
            return hash(timedelta(microseconds=self._length))
        except OverflowError:
            return hash(self._length)

    def __str__(self) -> str:
        years = _towards_zero(self.months, 12)
        parts = [
            f"{count} {unit}{'' if abs(count) == 1 else 's'}"
            for count, unit in (
                (years, "year"),
                (self.months - 12 * years, "month"),
                (self.days, "day"),
            )
            if count
        ]
        if self.microseconds or not parts:
            hours, rest = divmod(abs(self.microseconds), _HOUR)
            seconds, fraction = divmod(rest, 1_000_000)
            text = f"{hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}"
            text += f".{fraction:06d}".rstrip("0") if fraction else ""
            parts.append(f"-{text}" if self.microseconds < 0 else text)
        return " ".join(parts)


def _length(value: object) -> int | None:
    if isinstance(value, Interval):
        return value._length
    return value // timedelta(microseconds=1) if isinstance(value, timedelta) else None


def _towards_zero(number: int, by: int) -> int:
    return abs(number) // by * (1 if number >= 0 else -1)
