"""Typed SQL constants; a time that is not known exactly is a range.

The session's zone converts times without zone to instants. Where that is ambiguous (daylight
saving) or where time zone data differ between programs (before 1970, after 2037) the value is a
range, so that predicates made from it are still implied by the condition.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context
from enum import Enum, auto
from typing import Any, Final

from msgspec.structs import replace

from icesql.frozen import Frozen

SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR

# DECIMAL has 38 digits; the arithmetic of Python's own context rounds to 28.
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class NotConstant(Exception):
    """Raised for an expression without a constant value; the engine evaluates the condition."""


class Kind(Enum):
    """The SQL type of a constant. TEXT is a quoted literal that adapts to the other operand."""

    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    DECIMAL = auto()
    FLOAT = auto()
    DOUBLE = auto()
    TEXT = auto()
    STRING = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    TIMESTAMPTZ = auto()
    INTERVAL = auto()
    BLOB = auto()
    UUID = auto()


class Interval(Frozen):
    """A length of time in the three parts that do not convert into each other."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros)

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            self.months + other.months, self.days + other.days, self.micros + other.micros
        )


class Constant(Frozen):
    """A value of ``kind``: DATE int days, TIMESTAMP and TIMESTAMPTZ int µs since 1970.

    For these three kinds the true value is between ``value`` and ``high``, both included, if
    ``high`` is not None.
    """

    kind: Kind
    value: Any
    high: int | None = None

    @property
    def greatest(self) -> Any:
        """The upper end of the range."""
        return self.value if self.high is None else self.high

    @property
    def is_exact(self) -> bool:
        """True if the constant is one value, not a range."""
        return self.high is None or self.high == self.value

    def converted(self, kind: Kind, change: Callable[[int], int]) -> Constant:
        """The constant of another kind, with both ends of its range changed."""
        return Constant(kind, change(self.value), None if self.high is None else change(self.high))

    def widened(self, slack: int) -> Constant:
        """The same constant with ``slack`` added to the range on both sides."""
        if not slack:
            return self
        return replace(self, value=self.value - slack, high=self.greatest + slack)
