"""Partition transforms: how a column's value becomes the value of a partition field.

Values are in the internal form of ``iceberg.types``; NULL becomes NULL under every transform.
Source: Iceberg spec, "Partition Transforms" and Appendix B, "32-bit Hash Requirements".
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Any, ClassVar, Final
from uuid import UUID

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.bounds import java_float, minimal_twos_complement, scaled, unscaled
from icesql.iceberg.calendar import (
    civil_from_days,
    date_text,
    java_time,
    timestamp_text,
    units_per_day,
    year_text,
)

# The 32-bit hash behind bucket partitions. Source: Iceberg spec, Appendix B.


def bucket_hash(value: Any, source_type: t.IcebergType) -> int:
    """The signed hash of a value that is not NULL. Raises ValueError for types without one."""
    from mmh3 import hash as murmur3_x86_32

    match source_type:
        case t.StringType():
            return murmur3_x86_32(value.encode("utf-8", "surrogatepass"))
        case t.UUIDType() | t.FixedType() | t.BinaryType():
            return murmur3_x86_32(value)
        case t.DecimalType():
            return murmur3_x86_32(minimal_twos_complement(unscaled(value, source_type.scale)))
        case t.TimestampNanoType() | t.TimestamptzNanoType():
            # The bucket of a nanosecond column equals that of the same microsecond column.
            return murmur3_x86_32((value // 1000).to_bytes(8, "little", signed=True))
        case t.IntegerType() | t.LongType() | t.DateType() | t.TimeType() | t.AnyTimestamp():
            # Int and date hash as longs, so that promotion keeps the bucket.
            return murmur3_x86_32(value.to_bytes(8, "little", signed=True))
        case _:
            raise ValueError(f"bucket cannot take {source_type}")


_UNORDERED: Final = (t.VariantType, t.GeometryType, t.GeographyType, t.UnknownType)
_UNHASHED: Final = (*_UNORDERED, t.BooleanType, t.FloatType, t.DoubleType)


# ------------------------------------------------------------------ transforms


class Transform(Frozen):
    """Base of all transforms; ``str()`` is the spelling of table metadata.

    >>> bucket, truncate, month = map(parse_transform, ("bucket[16]", "truncate[10]", "month"))
    >>> bucket.apply(34, t.INTEGER), truncate.apply(-7, t.INTEGER), month.apply(19782, t.DATE)
    (3, -10, 649)
    >>> month.human(649, t.DATE)
    '2024-02'
    """

    # Whether a <= b implies apply(a) <= apply(b).
    preserves_order: ClassVar[bool] = False

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Whether the spec lets this transform take values of ``source_type``."""
        raise NotImplementedError

    def result_type(self, source_type: t.IcebergType) -> t.IcebergType:
        """The type of the partition value: the source's, unless a class says otherwise.

        UNKNOWN where a dropped source leaves it open. Void keeps the type in which files of older
        specs stored values.
        """
        return source_type

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """The partition value of ``value``; NULL stays NULL.

        Raises ValueError when the transform cannot take ``source_type``.
        """
        raise NotImplementedError

    def human(self, value: Any, source_type: t.IcebergType) -> str:
        """A partition value as partition paths and metadata tables spell it; "null" for NULL."""
        return "null" if value is None else human_value(value, self.result_type(source_type))


class Identity(Transform):
    """The value itself."""

    def __str__(self) -> str:
        return "identity"

    preserves_order: ClassVar[bool] = True

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Any primitive that has an order."""
        return isinstance(source_type, t.PrimitiveType) and not isinstance(source_type, _UNORDERED)

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """``value`` unchanged."""
        return value


class Void(Transform):
    """Always NULL: what a partition field becomes that was dropped from a v1 spec."""

    def __str__(self) -> str:
        return "void"

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Any type."""
        return True

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """None."""
        return None


class UnknownTransform(Transform):
    """A transform this version does not know; it never prunes but takes part in tuple equality."""

    text: str

    def __str__(self) -> str:
        return self.text

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Any type: nothing is computed."""
        return True

    def result_type(self, source_type: t.IcebergType) -> t.IcebergType:
        """UNKNOWN: the manifest itself says how the value is stored."""
        return t.UNKNOWN

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """Raises ValueError: it cannot be computed."""
        raise ValueError(f"cannot apply unknown transform {self.text}")

    def human(self, value: Any, source_type: t.IcebergType) -> str:
        """The stored value as text."""
        return "null" if value is None else str(value)


class Bucket(Transform):
    """``(murmur3(value) & 0x7fffffff) mod buckets``."""

    buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.buckets}]"

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Every primitive that hashes: not boolean, float or double."""
        return isinstance(source_type, t.PrimitiveType) and not isinstance(source_type, _UNHASHED)

    def result_type(self, source_type: t.IcebergType) -> t.IcebergType:
        """Int."""
        return t.INTEGER

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """The bucket number from 0."""
        if value is None:
            return None
        return (bucket_hash(value, source_type) & 0x7FFFFFFF) % self.buckets


class Truncate(Transform):
    """Numbers rounded down to a multiple of ``width``; text and bytes cut to ``width``.

    Text is cut in code points. For decimals the width counts unscaled units.
    """

    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    preserves_order: ClassVar[bool] = True

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Int, long, decimal, string and binary."""
        return isinstance(
            source_type, t.IntegerType | t.LongType | t.DecimalType | t.StringType | t.BinaryType
        )

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """The truncated value; below the type's minimum where Java would wrap around."""
        if value is None:
            return None
        match source_type:
            case t.IntegerType() | t.LongType():
                return value - value % self.width
            case t.DecimalType():
                number = unscaled(value, source_type.scale)
                return scaled(number - number % self.width, source_type.scale)
            case t.StringType() | t.BinaryType():
                return value[: self.width]
            case _:
                raise ValueError(f"truncate cannot take {source_type}")


class TimeTransform(Transform):
    """Whole years, months, days or hours since 1970-01-01 (UTC), rounded down."""

    unit: str  # "year", "month", "day" or "hour"

    def __str__(self) -> str:
        return self.unit

    preserves_order: ClassVar[bool] = True

    def accepts(self, source_type: t.IcebergType) -> bool:
        """Timestamps of all kinds, and dates except for hour."""
        return isinstance(source_type, t.AnyTimestamp) or (
            isinstance(source_type, t.DateType) and self.unit != "hour"
        )

    def result_type(self, source_type: t.IcebergType) -> t.IcebergType:
        """Date for day, else int."""
        return t.DATE if self.unit == "day" else t.INTEGER

    def apply(self, value: Any, source_type: t.IcebergType) -> Any:
        """The number of whole units since the epoch; negative before 1970."""
        if value is None:
            return None
        if not self.accepts(source_type):
            raise ValueError(f"{self.unit} cannot take {source_type}")
        per_day = units_per_day(source_type)
        if self.unit == "hour":
            return value // (per_day // 24)
        days = value // per_day
        if self.unit == "day":
            return days
        year, month, _ = civil_from_days(days)
        return year - 1970 if self.unit == "year" else (year - 1970) * 12 + month - 1

    def human(self, value: Any, source_type: t.IcebergType) -> str:
        """ "2017", "2017-12", "2017-12-01" or "2017-12-01-10"; "null" for NULL."""
        if value is None:
            return "null"
        match self.unit:
            case "year":
                return year_text(1970 + value)
            case "month":
                return f"{year_text(1970 + value // 12)}-{value % 12 + 1:02}"
            case "day":
                return date_text(value)
            case _:
                return f"{date_text(value // 24)}-{value % 24:02}"


# ------------------------------------------------------------------ text


def human_value(value: Any, value_type: t.IcebergType) -> str:
    """A value that is not NULL as partition paths spell it; binary is base64."""
    match value_type:
        case t.DateType():
            return date_text(value)
        case t.TimeType():
            return java_time(value)
        case t.FloatType() | t.DoubleType():
            return java_float(value, single=isinstance(value_type, t.FloatType))
        case t.AnyTimestamp():
            return timestamp_text(value, value_type, separator="T")
        case t.UUIDType():
            return uuid_text(value)
        case t.FixedType() | t.BinaryType():
            return base64.b64encode(value).decode("ascii")
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)


def uuid_text(value: bytes) -> str:
    """16 bytes as the usual lower-case text with dashes."""
    return str(UUID(bytes=value))


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
