"""Partition transforms by the specification, on plain Python values."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

from tests.writer.types import decimal_from, decimal_of, fixed_of, unscaled_of

EPOCH = datetime(1970, 1, 1)
MASK = 0xFFFFFFFF
MOMENTS = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
HASHED = ("int", "long", "date", "time", "string", "uuid", "binary", *MOMENTS)
CUT = ("int", "long", "string", "binary")


def integer_form(type_, value):
    """Dates, times and moments as the integers that Iceberg stores; other values as they are."""
    match value:
        case datetime():
            plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            delta = plain - EPOCH
            return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        case date():
            return (value - EPOCH.date()).days
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + (
                value.microsecond
            )
        case _:
            return value


def transforms_of(type_):
    """The transforms that a source of this type may have."""
    found = ["identity", "void"]
    if type_ in HASHED or decimal_of(type_) or fixed_of(type_):
        found += ["bucket[3]", "bucket[16]"]
    if type_ in CUT or decimal_of(type_):
        found += ["truncate[2]", "truncate[10]"]
    if type_ in ("date", *MOMENTS):
        found += ["year", "month", "day"]
    if type_ in MOMENTS:
        found.append("hour")
    return found


def apply(transform, type_, value):
    """The partition value, in integer form; NULL gives NULL."""
    if value is None or transform == "void":
        return None
    value = integer_form(type_, value)
    name, _, width = transform.rstrip("]").partition("[")
    match name:
        case "identity":
            return value
        case "bucket":
            return (murmur3(_hashed_bytes(type_, value)) & 0x7FFFFFFF) % int(width)
        case "truncate":
            return _truncate(type_, value, int(width))
    days, hours = _days_and_hours(type_, value)
    if name == "day":
        return days
    if name == "hour":
        return hours
    day = date.fromordinal(days + EPOCH.toordinal())
    months = (day.year - 1970) * 12 + day.month - 1
    return months if name == "month" else day.year - 1970


def _days_and_hours(type_, value):
    if type_ == "date":
        return value, value * 24
    hour = 3_600 * (1_000_000_000 if type_.endswith("_ns") else 1_000_000)
    return value // (24 * hour), value // hour


def _truncate(type_, value, width):
    if isinstance(value, (str, bytes)):
        return value[:width]
    if isinstance(value, Decimal):
        scale = decimal_of(type_)[1]
        unscaled = unscaled_of(value, scale)
        return decimal_from(unscaled - unscaled % width, scale)
    return value - value % width


def _hashed_bytes(type_, value):
    if isinstance(value, Decimal):
        unscaled = unscaled_of(value, decimal_of(type_)[1])
        length = 1
        while not -(1 << (8 * length - 1)) <= unscaled < 1 << (8 * length - 1):
            length += 1
        return unscaled.to_bytes(length, "big", signed=True)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if type_.endswith("_ns"):
        value //= 1000
    return struct.pack("<q", value)


def murmur3(data):
    """MurmurHash3 x86 32-bit with seed 0."""

    def rotate(x, by):
        return ((x << by) | (x >> (32 - by))) & MASK

    def mix(k):
        return (rotate((k * 0xCC9E2D51) & MASK, 15) * 0x1B873593) & MASK

    state, whole = 0, len(data) // 4 * 4
    for at in range(0, whole, 4):
        state ^= mix(int.from_bytes(data[at : at + 4], "little"))
        state = (rotate(state, 13) * 5 + 0xE6546B64) & MASK
    if len(data) > whole:
        state ^= mix(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = ((state ^ (state >> shift)) * factor) & MASK
    return state ^ (state >> 16)
