"""xxHash64 with seed 0, by which Parquet's bloom filters know a value.

A query hashes its literals, no more. Source: xxHash fast digest algorithm, "XXH64 algorithm".
"""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxhash64(data: bytes) -> int:
    """The hash as an unsigned integer."""
    length, position = len(data), 0
    if length >= 32:
        lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
        while position + 32 <= length:
            for lane in range(4):
                word = int.from_bytes(data[position : position + 8], "little")
                lanes[lane] = _round(lanes[lane], word)
                position += 8
        first, second, third, fourth = lanes
        found = _left(first, 1) + _left(second, 7) + _left(third, 12) + _left(fourth, 18)
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = _P5
    found = found + length & _MASK
    while position + 8 <= length:
        word = int.from_bytes(data[position : position + 8], "little")
        found = _left(found ^ _round(0, word), 27) * _P1 + _P4 & _MASK
        position += 8
    if position + 4 <= length:
        word = int.from_bytes(data[position : position + 4], "little")
        found = _left(found ^ word * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        position += 4
    for byte in data[position:]:
        found = _left(found ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _left(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _left(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 64 - bits) & _MASK
