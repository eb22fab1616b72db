"""Values of type variant in their binary form: taken apart without loss, and put together again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Any, Final, TypeAlias

from icesql.iceberg.bounds import unscaled

Node: TypeAlias = "bytes | list[Node] | dict[str, Node]"

DEEPEST: Final = 200
NULL: Final = b"\0"
_EMPTY_METADATA: Final = b"\x01\x00\x00"
# Bytes of the primitives that have a fixed length, by their kind, behind the byte of the kind.
_LENGTHS: Final = {
    0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4,
    17: 8, 18: 8, 19: 8, 20: 16,
}  # fmt: skip
_BINARY, _TEXT = 15, 16


class BadVariant(ValueError):
    """Bytes that are not a variant."""


def read_dictionary(metadata: bytes) -> tuple[str, ...]:
    """The field names of a variant's metadata. Raises BadVariant."""
    if not metadata or metadata[0] & 0x0F != 1:
        raise BadVariant("unknown version of the metadata")
    size = (metadata[0] >> 6) + 1
    count = unsigned(metadata, 1, size)
    begin = 1 + size * (count + 2)
    if begin > len(metadata):
        raise BadVariant("the dictionary ends early")
    offsets = [unsigned(metadata, 1 + size * (index + 1), size) for index in range(count + 1)]
    try:
        return tuple(
            part(metadata, begin + first, last - first).decode()
            for first, last in pairwise(offsets)
        )
    except UnicodeDecodeError as error:
        raise BadVariant("a field name is not UTF-8") from error


def decode_node(value: bytes, names: Sequence[str]) -> Node:
    """The variant in ``value``, whose names are by their numbers. Raises BadVariant."""
    return _decode(value, 0, names, 0)


def _decode(data: bytes, at: int, names: Sequence[str], depth: int) -> Node:
    if depth > DEEPEST:
        raise BadVariant("nested too deeply")
    head = unsigned(data, at, 1)
    kind, header = head & 3, head >> 2
    match kind:
        case 0 if header in _LENGTHS:
            return part(data, at, 1 + _LENGTHS[header])
        case 0 if header in (_BINARY, _TEXT):
            return part(data, at, 5 + unsigned(data, at + 1, 4))
        case 0:
            raise BadVariant(f"unknown primitive type {header}")
        case 1:
            return part(data, at, 1 + header)
        case 2:
            members: dict[str, Node] = {}
            for number, begin in _places_of(data, at + 1, header, named=True):
                if number >= len(names):
                    raise BadVariant("a field name is not in the dictionary")
                members[names[number]] = _decode(data, begin, names, depth + 1)
            return members
        case _:
            return [
                _decode(data, begin, names, depth + 1)
                for _, begin in _places_of(data, at + 1, header, named=False)
            ]


def _places_of(data: bytes, at: int, header: int, *, named: bool) -> Iterator[tuple[int, int]]:
    """Where each item of an array, or value of an object, begins, behind the number of its name."""
    offset_size, id_size = (header & 3) + 1, (header >> 2 & 3) + 1 if named else 0
    count_size = 4 if header & (16 if named else 4) else 1
    count = unsigned(data, at, count_size)
    ids = at + count_size
    offsets = ids + count * id_size
    values = offsets + (count + 1) * offset_size
    if values > len(data):
        raise BadVariant(f"an {'object' if named else 'array'} ends early")
    for index in range(count):
        begin = values + unsigned(data, offsets + index * offset_size, offset_size)
        yield unsigned(data, ids + index * id_size, id_size), begin


def encode_node(node: Node) -> tuple[bytes, bytes]:
    """The metadata and the value of a variant."""
    if isinstance(node, bytes):
        return _EMPTY_METADATA, node
    # The order of code points is that of their UTF-8.
    names = sorted(set(_names(node)))
    numbers = {name: number for number, name in enumerate(names)}
    return _metadata(names), _encode(node, numbers)


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
        for each in node.values():
            yield from _names(each)
    elif isinstance(node, list):
        for each in node:
            yield from _names(each)


def _metadata(names: Sequence[str]) -> bytes:
    if not names:
        return _EMPTY_METADATA
    texts = [each.encode() for each in names]
    ends = [0, *accumulate(map(len, texts))]
    size = _size(max(ends[-1], len(names)))
    head = 1 | 0x10 | (size - 1) << 6  # version 1, and the names are sorted
    numbers = (len(names), *ends)
    return bytes([head]) + _numbers(numbers, size) + b"".join(texts)


def _encode(node: Node, numbers: dict[str, int]) -> bytes:
    if isinstance(node, bytes):
        return node
    if isinstance(node, list):
        items = [_encode(each, numbers) for each in node]
        ends = [0, *accumulate(map(len, items))]
        size, large = _size(ends[-1]), len(items) > 255
        head = 3 | (large << 2 | size - 1) << 2
        count = len(items).to_bytes(4 if large else 1, "little")
        return bytes([head]) + count + _numbers(ends, size) + b"".join(items)
    names = sorted(node)
    items = [_encode(node[name], numbers) for name in names]
    ends = [0, *accumulate(map(len, items))]
    ids = [numbers[name] for name in names]
    size, id_size, large = _size(ends[-1]), _size(ids[-1] if ids else 0), len(items) > 255
    head = 2 | (large << 4 | id_size - 1 << 2 | size - 1) << 2
    count = len(items).to_bytes(4 if large else 1, "little")
    return b"".join((bytes([head]), count, _numbers(ids, id_size), _numbers(ends, size), *items))


def _size(number: int) -> int:
    """How many bytes a number takes, 4 at most."""
    return max((number.bit_length() + 7) // 8, 1)


def _numbers(numbers: Sequence[int], size: int) -> bytes:
    return b"".join(each.to_bytes(size, "little") for each in numbers)


def unsigned(data: bytes, at: int, size: int) -> int:
    """A number in little-endian order. Raises BadVariant."""
    return int.from_bytes(part(data, at, size), "little")


def part(data: bytes, at: int, size: int) -> bytes:
    """Bytes of ``data``. Raises BadVariant where it ends early."""
    if size < 0 or at < 0 or at + size > len(data):
        raise BadVariant("the value ends early")
    return data[at : at + size]


# ------------------------------------------------------------------ primitives


_SHORTEST_TEXT: Final = 63


@cache
def _number(kind: int, layout: str) -> Callable[[Any], bytes]:
    """Makes primitives of a kind out of numbers; ``layout`` is their letter of ``struct``."""
    return partial(struct.Struct(f"<B{layout}").pack, kind << 2)


of_double, of_float = _number(7, "d"), _number(14, "f")
# Days since 1970, and microseconds of the day.
of_date, of_time = _number(11, "i"), _number(17, "q")


def of_bool(value: bool) -> bytes:
    """True or false."""
    return b"\x04" if value else b"\x08"


def of_int(value: int, size: int = 1) -> bytes:
    """A number of at least ``size`` bytes (1, 2, 4, 8); beyond 64 bits a decimal."""
    for kind, width in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if width >= size and -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1:
            return bytes([kind << 2]) + value.to_bytes(width, "little", signed=True)
    return of_decimal(Decimal(value))


def of_decimal(value: Decimal, precision: int | None = None) -> bytes:
    """A decimal with all its digits; ``precision`` is that of its type.

    Raises ValueError for more than 38 digits.
    """
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    if scale > 38:
        raise ValueError("a decimal of more than 38 digits")
    number = unscaled(value, scale)
    digits_needed = max(len(str(abs(number))), scale, precision or 0)
    if digits_needed > 38:
        raise ValueError("a decimal of more than 38 digits")
    kind, width = (8, 4) if digits_needed <= 9 else (9, 8) if digits_needed <= 18 else (10, 16)
    return bytes([kind << 2, scale]) + number.to_bytes(width, "little", signed=True)


def of_text(value: str) -> bytes:
    """A text."""
    raw = value.encode()
    if len(raw) <= _SHORTEST_TEXT:
        return bytes([len(raw) << 2 | 1]) + raw
    return b"\x40" + len(raw).to_bytes(4, "little") + raw


def of_binary(value: bytes) -> bytes:
    """Bytes."""
    return b"\x3c" + len(value).to_bytes(4, "little") + value


def of_timestamp(value: int, *, nanos: bool, instant: bool) -> bytes:
    """Micro- or nanoseconds since 1970."""
    kind = (18 if instant else 19) if nanos else (12 if instant else 13)
    return _number(kind, "q")(value)


def of_uuid(value: bytes) -> bytes:
    """A UUID of 16 bytes."""
    return b"\x50" + value
