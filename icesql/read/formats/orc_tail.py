"""Where the stripes of an ORC file begin, read from its file tail (protocol buffers).

Source: ORC v1 specification, "File Tail".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icesql.frozen import Frozen
from icesql.read.formats.thrift import varint

_TAIL_FOOTER: Final = 2
_FOOTER_STRIPES: Final = 3
_STRIPE_OFFSET: Final = 1
_STRIPE_ROWS: Final = 5


class Stripe(Frozen):
    """A stripe: its first byte in the file and how many rows it has."""

    offset: int
    rows: int


def read_stripes(tail: bytes) -> tuple[Stripe, ...]:
    """The stripes of a serialized FileTail, in file order.

    Raises ValueError or IndexError when it is not one.
    """
    stripes = []
    for number, footer in _fields(tail):
        if number != _TAIL_FOOTER or not isinstance(footer, bytes):
            continue
        for inner, stripe in _fields(footer):
            if inner == _FOOTER_STRIPES and isinstance(stripe, bytes):
                facts = {key: value for key, value in _fields(stripe) if isinstance(value, int)}
                stripes.append(Stripe(facts.get(_STRIPE_OFFSET, 0), facts.get(_STRIPE_ROWS, 0)))
    return tuple(stripes)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message; unknown fields are just more of them."""
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        match tag & 7:
            case 0:
                value, position = varint(data, position)
                yield tag >> 3, value
            case 1:
                position += 8
            case 2:
                size, position = varint(data, position)
                if position + size > len(data):
                    raise ValueError("a field of the ORC footer does not fit")
                yield tag >> 3, data[position : position + size]
                position += size
            case 5:
                position += 4
            case other:
                raise ValueError(f"wire type {other} in the ORC footer")
