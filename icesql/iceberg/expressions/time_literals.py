"""Compare date, time and timestamp columns with literals on one line of nanoseconds."""

from __future__ import annotations

from datetime import date, datetime, time
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct

from icesql.iceberg import types as t
from icesql.iceberg.bounds import MICROS_PER_DAY
from icesql.iceberg.calendar import days_from_civil
from icesql.iceberg.expressions.number_literals import INTS, LONGS, on_grid
from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, Term

# Zones lie within 18 hours of UTC (the limit of java.time); all are covered where one matters.
_WIDEST_ZONE: Final = 18 * 3_600_000_000


class EpochMicros(Struct, frozen=True):
    """A timestamp in µs since 1970-01-01, for values that ``datetime`` cannot hold.

    ``zoned``: ``value`` is an instant (UTC); else it counts on a clock without zone.
    """

    value: int
    zoned: bool


class NanoTimestamp(Struct, frozen=True):
    """A timestamp in ns since 1970-01-01; ``zoned`` as for EpochMicros."""

    epoch_ns: int
    zoned: bool


def temporal(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """A comparison of a date or timestamp column: both sides are placed on one line of ns."""
    unit = _NANOS_PER_UNIT[type(column_type)]
    instant = _instant(value)
    if instant is None:
        return Leaf(Operation.NOT_NULL, term)
    nanos, zoned = instant
    needs_zone = zoned != isinstance(column_type, t.TimestamptzType | t.TimestamptzNanoType)
    spread = _WIDEST_ZONE * 1000 if needs_zone else 0
    return on_grid(
        operation,
        term,
        Fraction(nanos - spread, unit),
        Fraction(nanos + spread, unit),
        INTS if isinstance(column_type, t.DateType) else LONGS,
        int,
    )


_NANOS_PER_UNIT: Final[dict[type[t.IcebergType], int]] = {
    t.DateType: MICROS_PER_DAY * 1000,
    t.TimestampType: 1000,
    t.TimestamptzType: 1000,
    t.TimestampNanoType: 1,
    t.TimestamptzNanoType: 1,
}


def _instant(value: Any) -> tuple[int, bool] | None:
    """A date or timestamp as ns since 1970-01-01 and whether it has a zone."""
    match value:
        case NanoTimestamp(epoch_ns, zoned):
            return epoch_ns, zoned
        case EpochMicros(micros, zoned):
            return micros * 1000, zoned
        case datetime():
            zoned = value.tzinfo is not None and value.utcoffset() is not None
            # Counted from the fields: astimezone fails near the ends of datetime's range.
            offset = value.utcoffset() if zoned else None
            micros = _clock_micros(value)
            if offset is not None:
                micros -= (offset.days * 86_400 + offset.seconds) * 1_000_000 + offset.microseconds
            # Subclasses may carry the nanoseconds within the microsecond or within the second.
            nanosecond = getattr(value, "nanosecond", 0)
            extra = nanosecond % 1000 if isinstance(nanosecond, int) else 0
            return micros * 1000 + extra, zoned
        case date():
            days = days_from_civil(value.year, value.month, value.day)
            return days * MICROS_PER_DAY * 1000, False
        case _:
            return None


def _clock_micros(value: datetime) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    days = days_from_civil(value.year, value.month, value.day)
    return (days * 86_400 + seconds) * 1_000_000 + value.microsecond


def time_micros(value: Any) -> int | None:
    """A time of day in µs; None for anything else."""
    if not isinstance(value, time) or value.tzinfo is not None:
        return None
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1_000_000 + value.microsecond
