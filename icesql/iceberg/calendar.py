"""Days, times and timestamps as calendar fields and ISO text, in any year.

Python's ``datetime`` ends at the years 1 and 9999; Iceberg's values do not.
"""

from __future__ import annotations

from typing import Final

from icesql.iceberg import types as t
from icesql.iceberg.bounds import MICROS_PER_DAY, NANOS_PER_DAY

NANO_TIMESTAMPS: Final = (t.TimestampNanoType, t.TimestamptzNanoType)
ZONED: Final = (t.TimestamptzType, t.TimestamptzNanoType)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number since 1970-01-01, for any year (proleptic Gregorian)."""
    shifted = days + 719_468  # days since 0000-03-01, so that leap days end a year
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day number since 1970-01-01 of a date in any year (proleptic Gregorian)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def year_text(year: int) -> str:
    """A year with at least four digits, and a sign before year 0."""
    return f"{year:04}" if year >= 0 else f"-{-year:04}"


def date_text(days: int) -> str:
    """Days since 1970-01-01 as "YYYY-MM-DD", in any year."""
    year, month, day = civil_from_days(days)
    return f"{year_text(year)}-{month:02}-{day:02}"


def time_text(units: int, digits: int) -> str:
    """A time of day in µs (6 digits) or ns (9 digits) as "HH:MM:SS[.fff…]", zeros trimmed."""
    seconds, fraction = divmod(units, 10**digits)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}".rstrip("0") if fraction else text


def units_per_day(value_type: t.IcebergType) -> int:
    """How many units of a date or timestamp type a day has."""
    if isinstance(value_type, t.DateType):
        return 1
    return NANOS_PER_DAY if isinstance(value_type, NANO_TIMESTAMPS) else MICROS_PER_DAY


def timestamp_text(value: int, value_type: t.IcebergType, *, separator: str = " ") -> str:
    """A timestamp as ISO text, "+00:00" behind it when the type has a zone."""
    days, units = divmod(value, units_per_day(value_type))
    digits = 9 if isinstance(value_type, NANO_TIMESTAMPS) else 6
    zone = "+00:00" if isinstance(value_type, ZONED) else ""
    return f"{date_text(days)}{separator}{time_text(units, digits)}{zone}"


def java_time(micros: int) -> str:
    """A time of day as Java writes it: without seconds if there are none, 3 or 6 digits below."""
    text = time_text(micros, 6)
    whole, _, fraction = text.partition(".")
    if fraction:
        return f"{whole}.{fraction.ljust(3 if len(fraction) <= 3 else 6, '0')}"
    return whole.removesuffix(":00") if whole.endswith(":00") else whole
