"""The JSON text of variants.

What each becomes: null, true and false; numbers as JSON numbers (decimals with all their digits);
NaN and the infinities as the strings "NaN", "Infinity" and "-Infinity"; binary as base64; dates,
times, timestamps (ISO 8601, with "+00:00" where they are instants) and UUIDs as strings.
Source: Apache Parquet, "Variant Binary Encoding".
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from typing import Final

from icesql.iceberg import calendar
from icesql.iceberg.bounds import MICROS_PER_DAY, NANOS_PER_DAY
from icesql.iceberg.decimals import shortest_single
from icesql.iceberg.transforms import uuid_text
from icesql.iceberg.variant.nodes import BadVariant, Node

# Bytes of the kind and the length before a binary or a text.
_HEAD: Final = 5
_BINARY, _TEXT = 15, 16


def to_text(node: Node) -> str:
    """The JSON text of a variant, without spaces. Raises BadVariant."""
    if isinstance(node, bytes):
        return _primitive(node)
    if isinstance(node, list):
        return "[" + ",".join(map(to_text, node)) + "]"
    members = (f"{_string(name)}:{to_text(member)}" for name, member in node.items())
    return "{" + ",".join(members) + "}"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _primitive(raw: bytes) -> str:
    kind, is_short_text = raw[0] >> 2, raw[0] & 3 == 1
    if is_short_text:
        return _text(raw[1:])
    if kind in _LITERALS:
        return _LITERALS[kind]
    if kind == _BINARY:
        return f'"{base64.b64encode(raw[_HEAD:]).decode()}"'
    if kind == _TEXT:
        return _text(raw[_HEAD:])
    return _OF_KIND[kind](raw[1:])


def _text(raw: bytes) -> str:
    try:
        return _string(raw.decode())
    except UnicodeDecodeError as error:
        raise BadVariant("a string is not UTF-8") from error


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _integer(raw: bytes) -> str:
    return str(_signed(raw))


def _decimal(raw: bytes) -> str:
    unscaled, scale = _signed(raw[1:]), raw[0]
    if scale > 38:
        raise BadVariant("a decimal of more than 38 digits after the point")
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def _float(value: float) -> str:
    """A number; JSON has no NaN and no infinity, so these become strings."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def _date(raw: bytes) -> str:
    return f'"{calendar.date_text(_signed(raw))}"'


def _time(raw: bytes) -> str:
    return f'"{_clock(_signed(raw), 6)}"'


def _timestamp(raw: bytes, *, nanos: bool = False, instant: bool = False) -> str:
    days, rest = divmod(_signed(raw), NANOS_PER_DAY if nanos else MICROS_PER_DAY)
    clock = _clock(rest, 9 if nanos else 6)
    return f'"{calendar.date_text(days)}T{clock}{"+00:00" if instant else ""}"'


def _clock(units: int, digits: int) -> str:
    """A time of day with all its digits."""
    seconds, fraction = divmod(units, 10**digits)
    return f"{calendar.time_text(seconds, 0)}.{fraction:0{digits}}"


_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_OF_KIND: Final[dict[int, Callable[[bytes], str]]] = {
    3: _integer,
    4: _integer,
    5: _integer,
    6: _integer,
    7: lambda raw: _float(struct.unpack("<d", raw)[0]),
    8: _decimal,
    9: _decimal,
    10: _decimal,
    11: _date,
    12: lambda raw: _timestamp(raw, instant=True),
    13: _timestamp,
    14: lambda raw: _float(shortest_single(struct.unpack("<f", raw)[0])),
    17: _time,
    18: lambda raw: _timestamp(raw, nanos=True, instant=True),
    19: lambda raw: _timestamp(raw, nanos=True),
    20: lambda raw: f'"{uuid_text(raw)}"',
}
