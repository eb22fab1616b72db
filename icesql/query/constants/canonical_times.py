"""Texts that every engine reads as the same time: only the canonical forms of ISO 8601."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.literals import NanoTimestamp
from icesql.query.constants.constant import DAY, SECOND
from icesql.query.constants.time_units import epoch_days

_CLOCK: Final = r"(\d\d):(\d\d):(\d\d)"
_TIME_OF_DAY: Final = rf"(?a){_CLOCK}(?:\.(\d{{1,6}}))?"
_TIMESTAMP: Final = (
    rf"(?a)(\d{{4}}-\d\d-\d\d)(?:[ T]{_CLOCK}(?:\.(\d{{1,9}}))?(Z|[+-]\d\d(?::\d\d)?)?)?"
)
_NANOS: Final = (t.TimestampNanoType, t.TimestamptzNanoType)


def time_of_day(text: str) -> time | None:
    """The time of ``HH:MM:SS[.ffffff]``, None for anything else.

    >>> time_of_day("10:00:00.5"), time_of_day("25:00:00")
    (datetime.time(10, 0, 0, 500000), None)
    """
    found = re.fullmatch(_TIME_OF_DAY, text)
    if found is None:
        return None
    try:
        micros = int((found[4] or "").ljust(6, "0"))
        return time(int(found[1]), int(found[2]), int(found[3]), micros)
    except ValueError:
        return None


def read_for(column_type: t.IcebergType, value: Any) -> Any:
    """A text compared with a date, time or timestamp column as a value; other values unchanged.

    A text stays a text, which compares with no such column, if it is not canonical or has more
    digits than the unit of the column: engines truncate or round it.

    >>> read_for(t.DATE, "2020-01-01"), read_for(t.DATE, "2020-01-01 12:00:00")
    (datetime.date(2020, 1, 1), '2020-01-01 12:00:00')
    """
    if not isinstance(value, str):
        return value
    match column_type:
        case t.TimeType():
            found: Any = time_of_day(value)
        case t.DateType() | t.TimestampType() | t.TimestamptzType():
            found = _timestamp(value, column_type)
        case t.TimestampNanoType() | t.TimestamptzNanoType():
            found = _timestamp(value, column_type)
        case _:
            return value
    return value if found is None else found


def _timestamp(text: str, column_type: t.IcebergType) -> date | NanoTimestamp | None:
    found = re.fullmatch(_TIMESTAMP, text)
    if found is None or (found[2] and isinstance(column_type, t.DateType)):
        return None
    fraction, zone = found[5] or "", found[6] or ""
    if len(fraction) > 6 and not isinstance(column_type, _NANOS):
        return None
    try:
        day = date.fromisoformat(found[1])
        if found[2] is None:
            return day
        clock = time(int(found[2]), int(found[3]), int(found[4]))
        offset = _offset(zone)
    except ValueError:
        return None
    seconds = (clock.hour * 60 + clock.minute) * 60 + clock.second
    micros = epoch_days(day) * DAY + seconds * SECOND - offset
    return NanoTimestamp(micros * 1000 + int(fraction.ljust(9, "0")), zoned=bool(zone))


def _offset(zone: str) -> int:
    """Offset from UTC in µs, positive to the east. Raises ValueError for an invalid zone."""
    if zone in ("", "Z"):
        return 0
    zone = zone if ":" in zone else f"{zone}:00"
    found = datetime.fromisoformat(f"2000-01-01 00:00:00{zone}").utcoffset()
    assert found is not None
    return found.days * DAY + found.seconds * SECOND
