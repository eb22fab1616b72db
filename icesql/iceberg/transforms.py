"""Partition transforms: how a column's value becomes the value of a partition field.

Values are in the internal form of ``iceberg.types``; NULL becomes NULL under every transform.
Source: Iceberg spec, "Partition Transforms" and Appendix B, "32-bit Hash Requirements".
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from icesql.iceberg.types import (
    DATE,
    INTEGER,
    UNKNOWN,
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

MICROS_PER_DAY: Final = 86_400_000_000
NANOS_PER_DAY: Final = 86_400_000_000_000

_TIMESTAMPS: Final = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)
_NANO_TIMESTAMPS: Final = (TimestampNanoType, TimestamptzNanoType)
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_UNORDERED: Final = (VariantType, GeometryType, GeographyType, UnknownType)


# ------------------------------------------------------------------ helpers on values


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal of ``scale`` stores; exact at any precision.

    Raises ValueError when ``value`` has more digits after the point than ``scale``.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite decimal")
    number = int("".join(map(str, digits)) or "0")
    rest: int
    shift = exponent + scale
    if shift >= 0:
        number *= int(10**shift)
    else:
        number, rest = divmod(number, 10**-shift)
        if rest:
            raise ValueError(f"{value} does not fit scale {scale}")
    return -number if sign else number


def scaled(number: int, scale: int) -> Decimal:
    """The decimal of ``scale`` that stores ``number``; exact at any precision."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


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


def murmur3_x86_32(data: bytes) -> int:
    """The signed 32-bit Murmur3 hash (x86 variant, seed 0) that bucket uses."""
    mask = 0xFFFFFFFF
    state = 0
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        block = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & mask
        block = ((block << 15 | block >> 17) & mask) * 0x1B873593 & mask
        state ^= block
        state = (state << 13 | state >> 19) & mask
        state = (state * 5 + 0xE6546B64) & mask
    if whole < len(data):
        block = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & mask
        state ^= ((block << 15 | block >> 17) & mask) * 0x1B873593 & mask
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state & 0x80000000 else state


def minimal_twos_complement(number: int) -> bytes:
    """Big-endian two's complement in the fewest bytes, as decimals are hashed and stored."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


# ------------------------------------------------------------------ transforms


@dataclass(frozen=True, slots=True)
class Transform:
    """Base of all transforms; ``str()`` is the spelling of table metadata."""

    @property
    def preserves_order(self) -> bool:
        """Whether a <= b implies apply(a) <= apply(b)."""
        return False

    def accepts(self, source_type: IcebergType) -> bool:
        """Whether the spec lets this transform take values of ``source_type``."""
        raise NotImplementedError

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The type of the partition value; UNKNOWN where a dropped source leaves it open."""
        raise NotImplementedError

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """The partition value of ``value``; NULL stays NULL.

        Raises ValueError when the transform cannot take ``source_type``.
        """
        raise NotImplementedError

    def human(self, value: Any, source_type: IcebergType) -> str:
        """A partition value as partition paths and metadata tables spell it; "null" for NULL."""
        return "null" if value is None else human_value(value, self.result_type(source_type))


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself."""

    def __str__(self) -> str:
        return "identity"

    @property
    def preserves_order(self) -> bool:
        """True: the value is unchanged."""
        return True

    def accepts(self, source_type: IcebergType) -> bool:
        """Any primitive that has an order."""
        return isinstance(source_type, PrimitiveType) and not isinstance(source_type, _UNORDERED)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source's type."""
        return source_type

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """``value`` unchanged."""
        return value


@dataclass(frozen=True, slots=True)
class Void(Transform):
    """Always NULL: what a partition field becomes that was dropped from a v1 spec."""

    def __str__(self) -> str:
        return "void"

    def accepts(self, source_type: IcebergType) -> bool:
        """Any type."""
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source's type, in which files of older specs stored values."""
        return source_type

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform this version does not know; it never prunes but takes part in tuple equality."""

    text: str

    def __str__(self) -> str:
        return self.text

    def accepts(self, source_type: IcebergType) -> bool:
        """Any type: nothing is computed."""
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """UNKNOWN: the manifest itself says how the value is stored."""
        return UNKNOWN

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """Raises ValueError: it cannot be computed."""
        raise ValueError(f"cannot apply unknown transform {self.text}")

    def human(self, value: Any, source_type: IcebergType) -> str:
        """The stored value as text."""
        return "null" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """``(murmur3(value) & 0x7fffffff) mod buckets``."""

    buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.buckets}]"

    def accepts(self, source_type: IcebergType) -> bool:
        """Every primitive that hashes: not boolean, float or double."""
        return isinstance(
            source_type,
            IntegerType
            | LongType
            | DecimalType
            | DateType
            | TimeType
            | TimestampType
            | TimestamptzType
            | TimestampNanoType
            | TimestamptzNanoType
            | StringType
            | UUIDType
            | FixedType
            | BinaryType,
        )

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """Int."""
        return INTEGER

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """The bucket number from 0."""
        if value is None:
            return None
        return (bucket_hash(value, source_type) & 0x7FFFFFFF) % self.buckets


def bucket_hash(value: Any, source_type: IcebergType) -> int:
    """The signed hash of a value that is not NULL. Raises ValueError for types without one."""
    match source_type:
        case StringType():
            return murmur3_x86_32(value.encode("utf-8", "surrogatepass"))
        case UUIDType() | FixedType() | BinaryType():
            return murmur3_x86_32(value)
        case DecimalType():
            return murmur3_x86_32(minimal_twos_complement(unscaled(value, source_type.scale)))
        case TimestampNanoType() | TimestamptzNanoType():
            # The bucket of a nanosecond column equals that of the same microsecond column.
            return murmur3_x86_32((value // 1000).to_bytes(8, "little", signed=True))
        case (
            IntegerType()
            | LongType()
            | DateType()
            | TimeType()
            | TimestampType()
            | TimestamptzType()
        ):
            # Int and date hash as longs, so that promotion keeps the bucket.
            return murmur3_x86_32(value.to_bytes(8, "little", signed=True))
        case _:
            raise ValueError(f"bucket cannot take {source_type}")


@dataclass(frozen=True, slots=True)
class Truncate(Transform):
    """Numbers rounded down to a multiple of ``width``; text and bytes cut to ``width``.

    Text is cut in code points. For decimals the width counts unscaled units.
    """

    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    @property
    def preserves_order(self) -> bool:
        """True for all its types."""
        return True

    def accepts(self, source_type: IcebergType) -> bool:
        """Int, long, decimal, string and binary."""
        return isinstance(
            source_type, IntegerType | LongType | DecimalType | StringType | BinaryType
        )

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source's type."""
        return source_type

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """The truncated value; below the type's minimum where Java would wrap around."""
        if value is None:
            return None
        match source_type:
            case IntegerType() | LongType():
                return value - value % self.width
            case DecimalType():
                number = unscaled(value, source_type.scale)
                return scaled(number - number % self.width, source_type.scale)
            case StringType() | BinaryType():
                return value[: self.width]
            case _:
                raise ValueError(f"truncate cannot take {source_type}")


@dataclass(frozen=True, slots=True)
class TimeTransform(Transform):
    """Whole years, months, days or hours since 1970-01-01 (UTC), rounded down."""

    unit: str  # "year", "month", "day" or "hour"

    def __str__(self) -> str:
        return self.unit

    @property
    def preserves_order(self) -> bool:
        """True: later instants never have an earlier unit."""
        return True

    def accepts(self, source_type: IcebergType) -> bool:
        """Timestamps of all kinds, and dates except for hour."""
        return isinstance(source_type, _TIMESTAMPS) or (
            isinstance(source_type, DateType) and self.unit != "hour"
        )

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """Date for day, else int."""
        return DATE if self.unit == "day" else INTEGER

    def apply(self, value: Any, source_type: IcebergType) -> Any:
        """The number of whole units since the epoch; negative before 1970."""
        if value is None:
            return None
        if not self.accepts(source_type):
            raise ValueError(f"{self.unit} cannot take {source_type}")
        if isinstance(source_type, DateType):
            days = value
        else:
            per_day = NANOS_PER_DAY if isinstance(source_type, _NANO_TIMESTAMPS) else MICROS_PER_DAY
            if self.unit == "hour":
                return value // (per_day // 24)
            days = value // per_day
        if self.unit == "day":
            return days
        year, month, _ = civil_from_days(days)
        return year - 1970 if self.unit == "year" else (year - 1970) * 12 + month - 1

    def human(self, value: Any, source_type: IcebergType) -> str:
        """ "2017", "2017-12", "2017-12-01" or "2017-12-01-10"; "null" for NULL."""
        if value is None:
            return "null"
        match self.unit:
            case "year":
                return _year(1970 + value)
            case "month":
                return f"{_year(1970 + value // 12)}-{value % 12 + 1:02}"
            case "day":
                return date_text(value)
            case _:
                return f"{date_text(value // 24)}-{value % 24:02}"


# ------------------------------------------------------------------ text


def human_value(value: Any, value_type: IcebergType) -> str:
    """A value that is not NULL as partition paths spell it; binary is base64."""
    match value_type:
        case DateType():
            return date_text(value)
        case TimeType():
            return time_text(value, 6)
        case TimestampType() | TimestamptzType() | TimestampNanoType() | TimestamptzNanoType():
            return timestamp_text(value, value_type, separator="T")
        case UUIDType():
            return uuid_text(value)
        case FixedType() | BinaryType():
            return base64.b64encode(value).decode("ascii")
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)


def _year(year: int) -> str:
    return f"{year:04}" if year >= 0 else f"-{-year:04}"


def date_text(days: int) -> str:
    """Days since 1970-01-01 as "YYYY-MM-DD", in any year."""
    year, month, day = civil_from_days(days)
    return f"{_year(year)}-{month:02}-{day:02}"


def time_text(units: int, digits: int) -> str:
    """A time of day in µs (6 digits) or ns (9 digits) as "HH:MM:SS[.fff…]", zeros trimmed."""
    seconds, fraction = divmod(units, 10**digits)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}".rstrip("0") if fraction else text


def timestamp_text(value: int, value_type: IcebergType, *, separator: str = " ") -> str:
    """A timestamp as ISO text, "+00:00" behind it when the type has a zone."""
    nanos = isinstance(value_type, _NANO_TIMESTAMPS)
    days, units = divmod(value, NANOS_PER_DAY if nanos else MICROS_PER_DAY)
    zone = "+00:00" if isinstance(value_type, _ZONED) else ""
    return f"{date_text(days)}{separator}{time_text(units, 9 if nanos else 6)}{zone}"


def uuid_text(value: bytes) -> str:
    """16 bytes as the usual lower-case text with dashes."""
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


# ------------------------------------------------------------------ parsing

_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[\s*(\d+)\s*\]")


@lru_cache(maxsize=1024)
def parse_transform(text: str) -> Transform:
    """The transform that metadata spells ``text``, in any case; never fails.

    An unknown name, or a width of zero, gives UnknownTransform.
    """
    lowered = text.strip().lower()
    match lowered:
        case "identity":
            return Identity()
        case "void":
            return Void()
        case "year" | "month" | "day" | "hour":
            return TimeTransform(lowered)
    found = _WITH_NUMBER.fullmatch(lowered)
    if found is None or int(found[2]) == 0:
        return UnknownTransform(text)
    width = int(found[2])
    return Bucket(width) if found[1] == "bucket" else Truncate(width)
