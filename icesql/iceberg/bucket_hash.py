"""The 32-bit hash behind bucket partitions. Source: Iceberg spec, Appendix B."""

from __future__ import annotations

from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.decimals import unscaled


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
        case (
            t.IntegerType()
            | t.LongType()
            | t.DateType()
            | t.TimeType()
            | t.TimestampType()
            | t.TimestamptzType()
        ):
            # Int and date hash as longs, so that promotion keeps the bucket.
            return murmur3_x86_32(value.to_bytes(8, "little", signed=True))
        case _:
            raise ValueError(f"bucket cannot take {source_type}")


def minimal_twos_complement(number: int) -> bytes:
    """Big-endian two's complement in the fewest bytes, as decimals are hashed and stored."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)
