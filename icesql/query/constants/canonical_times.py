"""Texts that every engine reads as the same time: only the canonical forms of ISO 8601."""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.literals import NanoTimestamp
from icesql.query.constants.time_units import micros_of

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
