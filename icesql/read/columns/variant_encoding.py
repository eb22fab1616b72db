"""Decode the binary form of variants to JSON.

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
import uuid
from collections.abc import Callable
from typing import Final, TypeAlias

from icesql.iceberg.variant.nodes import (
    DEEPEST,
    BadVariant,
    items_of,
    members_of,
    part,
    unsigned,
)

# Finished JSON text, or an object whose members may still be merged.
Json: TypeAlias = "str | dict[str, Json]"

_MICROS_PER_DAY: Final = 86_400_000_000


def to_text(value: Json) -> str:
    """The JSON text of a decoded variant, without spaces."""
    if isinstance(value, str):
        return value
    members = (f"{json_string(name)}:{to_text(member)}" for name, member in value.items())
    return "{" + ",".join(members) + "}"


def json_string(text: str) -> str:
    """A string as JSON."""
    return json.dumps(text, ensure_ascii=False)


def decode(value: bytes, names: tuple[str, ...]) -> Json:
    """The variant in ``value``. Raises BadVariant."""
    return _decode(value, 0, names, 0)


def _decode(data: bytes, at: int, names: tuple[str, ...], depth: int) -> Json:
    if depth > DEEPEST:
        raise BadVariant("nested too deeply")
    head = unsigned(data, at, 1)
    kind, header = head & 3, head >> 2
    match kind:
        case 0:
            return _primitive(data, at + 1, header)
        case 1:
            return _text(part(data, at + 1, header))
        case 2:
            return _object(data, at + 1, header, names, depth)
        case _:
            return _array(data, at + 1, header, names, depth)


def _object(data: bytes, at: int, header: int, names: tuple[str, ...], depth: int) -> Json:
    members: dict[str, Json] = {}
    for number, begin in members_of(data, at, header):
        if number >= len(names):
            raise BadVariant("a field name is not in the dictionary")
        members[names[number]] = _decode(data, begin, names, depth + 1)
    return members


def _array(data: bytes, at: int, header: int, names: tuple[str, ...], depth: int) -> str:
    items = (_decode(data, begin, names, depth + 1) for begin in items_of(data, at, header))
    return "[" + ",".join(map(to_text, items)) + "]"


def _primitive(data: bytes, at: int, kind: int) -> str:
    if kind in _LITERALS:
        return _LITERALS[kind]
    if kind in _SIZES:
        size, read = _SIZES[kind]
        return read(part(data, at, size))
    if kind in (15, 16):
        raw = part(data, at + 4, unsigned(data, at, 4))
        return binary_text(raw) if kind == 15 else _text(raw)
    raise BadVariant(f"unknown primitive type {kind}")


def _integer(raw: bytes) -> str:
    return str(int.from_bytes(raw, "little", signed=True))


def _decimal(raw: bytes) -> str:
    return decimal_text(int.from_bytes(raw[1:], "little", signed=True), raw[0])


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def decimal_text(unscaled: int, scale: int) -> str:
    """A decimal as a JSON number with all its digits."""
    if scale > 38:
        raise BadVariant("a decimal of more than 38 digits after the point")
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def float_text(value: float) -> str:
    """A number; JSON has no NaN and no infinity, so these become strings."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def float32_text(value: float) -> str:
    """The shortest decimal that is this single-precision number."""
    if not math.isfinite(value):
        return float_text(value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.unpack("<f", struct.pack("<f", float(text)))[0] == value:
            return repr(float(text))
    return repr(value)


def binary_text(value: bytes) -> str:
    """Bytes as a base64 string."""
    return f'"{base64.b64encode(value).decode()}"'


def uuid_text(value: bytes) -> str:
    """16 bytes as a UUID string."""
    return f'"{uuid.UUID(bytes=value)}"'


def date_text(days: int) -> str:
    """Days since 1970 as "YYYY-MM-DD"."""
    return f'"{_date(days)}"'


def time_text(micros: int) -> str:
    """Microseconds of the day as "HH:MM:SS.ffffff"."""
    return f'"{_clock(micros, 6)}"'


def timestamp_text(value: int, *, nanos: bool, instant: bool) -> str:
    """Micro- or nanoseconds since 1970 as an ISO 8601 string."""
    scale = 1000 if nanos else 1
    days, rest = divmod(value, _MICROS_PER_DAY * scale)
    clock = _clock(rest, 9 if nanos else 6)
    return f'"{_date(days)}T{clock}{"+00:00" if instant else ""}"'


def _clock(fraction: int, digits: int) -> str:
    seconds, rest = divmod(fraction, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{rest:0{digits}}"


def _date(days: int) -> str:
    # Civil date from days (H. Hinnant), since Python's dates end at the years 1 and 9999.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04}-{month:02}-{day:02}"


def _text(raw: bytes) -> str:
    try:
        return json_string(raw.decode())
    except UnicodeDecodeError as error:
        raise BadVariant("a string is not UTF-8") from error


_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_SIZES: Final[dict[int, tuple[int, Callable[[bytes], str]]]] = {
    3: (1, _integer),
    4: (2, _integer),
    5: (4, _integer),
    6: (8, _integer),
    7: (8, lambda raw: float_text(struct.unpack("<d", raw)[0])),
    8: (5, _decimal),
    9: (9, _decimal),
    10: (17, _decimal),
    11: (4, lambda raw: date_text(_signed(raw))),
    12: (8, lambda raw: timestamp_text(_signed(raw), nanos=False, instant=True)),
    13: (8, lambda raw: timestamp_text(_signed(raw), nanos=False, instant=False)),
    14: (4, lambda raw: float32_text(struct.unpack("<f", raw)[0])),
    17: (8, lambda raw: time_text(_signed(raw))),
    18: (8, lambda raw: timestamp_text(_signed(raw), nanos=True, instant=True)),
    19: (8, lambda raw: timestamp_text(_signed(raw), nanos=True, instant=False)),
    20: (16, uuid_text),
}
