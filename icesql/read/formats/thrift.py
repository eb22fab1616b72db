"""The part of Thrift's compact protocol that reading Parquet's own structures needs.

Functions over bytes and positions, integers read in place: a footer has tens of values for each
column chunk, and a call for each of them takes five times as long. IndexError means that the bytes
end too early. Source: Thrift, "Thrift compact protocol encoding".
"""

from __future__ import annotations

from typing import Final

# Kinds of values; 1 and 2 are booleans, which are their own kind.
BYTE, I16, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 3, 4, 6, 7, 8, 9, 10, 12
_DEEPEST: Final = 20


class BadThrift(ValueError):
    """Invalid bytes; the caller adds the path of the file."""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned integer and the position after it."""
    value = data[position]
    position += 1
    if value > 127:
        value &= 127
        shift = 7
        while True:
            part = data[position]
            position += 1
            value |= (part & 127) << shift
            if part < 128:
                break
            shift += 7
            if shift > 63:
                raise BadThrift("an integer longer than 64 bits")
    return value, position


def zigzag(data: bytes, position: int) -> tuple[int, int]:
    """A signed integer and the position after it."""
    value, position = varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """How many elements a list has, their kind, and the position of the first."""
    header = data[position]
    position += 1
    count = header >> 4
    if count == 15:
        count, position = varint(data, position)
    # An element takes a byte at least.
    if count > len(data) - position:
        raise BadThrift(f"a list of {count} elements")
    return count, header & 15, position


def end_of(data: bytes, position: int, kind: int, depth: int = 0) -> int:
    """The position after a value of this kind."""
    if I16 <= kind <= I64:
        while data[position] > 127:
            position += 1
        return position + 1
    if kind == BINARY:
        length, position = varint(data, position)
        return position + length
    if kind == STRUCT:
        return end_of_struct(data, position, depth + 1)
    if kind in (LIST, SET):
        count, kind, position = list_header(data, position)
        if kind <= BYTE:
            return position + count
        for _ in range(count):
            position = end_of(data, position, kind, depth + 1)
        return position
    if kind == DOUBLE:
        return position + 8
    if kind > BYTE:
        raise BadThrift(f"a value of kind {kind}")
    return position + (kind == BYTE)


def end_of_struct(data: bytes, position: int, depth: int = 0) -> int:
    """The position after a struct."""
    if depth > _DEEPEST:
        raise BadThrift("nested too deeply")
    while header := data[position]:
        position += 1
        kind = header & 15
        if header < 16:  # the field id in full
            while data[position] > 127:
                position += 1
            position += 1
        if I16 <= kind <= I64:
            while data[position] > 127:
                position += 1
            position += 1
        else:
            position = end_of(data, position, kind, depth)
    return position + 1


def integers(data: bytes, position: int, inner: int = 0) -> tuple[dict[int, int], int]:
    """The integers of a struct by field id, and the position after it.

    Integers of the struct in field ``inner`` come as its id times 100 plus their own.
    """
    found: dict[int, int] = {}
    field_id = 0
    while header := data[position]:
        position += 1
        kind = header & 15
        if header < 16:
            field_id, position = zigzag(data, position)
        else:
            field_id += header >> 4
        if I16 <= kind <= I64:
            found[field_id], position = zigzag(data, position)
        elif kind == STRUCT and 0 < inner == field_id:
            below, position = integers(data, position)
            found.update({inner * 100 + key: value for key, value in below.items()})
        else:
            position = end_of(data, position, kind)
    return found, position + 1
