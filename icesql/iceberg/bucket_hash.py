"""The 32-bit hash behind bucket partitions. Source: Iceberg spec, Appendix B."""

from __future__ import annotations

from typing import Any

from icesql.iceberg.decimals import unscaled
from icesql.iceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)


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
