"""Values of every type for generated tables: few, so that keys meet, and from all the edges."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

from tests.writer.types import decimal_from, decimal_of, fixed_of

NAN, INFINITY = float("nan"), float("inf")
PREFIX = "a common prefix longer than sixteen "
MOMENTS = [
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 22, 30),
    datetime(1960, 2, 29, 12, 0, 0, 5),
    datetime(2024, 3, 10, 2, 30),
    datetime(2024, 12, 31, 23, 59, 59, 1),
]
# The lowest numbers can be cut by truncate without leaving their type.
POOLS = {
    "boolean": [True, False],
    "int": [0, 1, -1, 2, 3, 17, -17, 2**31 - 1, -(2**31) + 8],
    "long": [0, 1, -1, 2, 3, 17, -17, 2**31, -(2**40), 2**63 - 1, -(2**63) + 8],
    "float": [
        0.0,
        -0.0,
        NAN,
        1.5,
        -1.5,
        INFINITY,
        -INFINITY,
        struct.unpack("f", b"\x33\x33\xd3?")[0],
    ],
    "double": [0.0, -0.0, NAN, 1.5, -1.5, INFINITY, -INFINITY, 1e300, 0.1, -5e-324],
    "date": [
        date(1970, 1, 1),
        date(1969, 12, 31),
        date(1950, 6, 1),
        date(2024, 2, 29),
        date(1, 1, 1),
    ],
    "time": [time(0), time(23, 59, 59, 999999), time(12, 0, 0, 1), time(1, 2, 3)],
    "timestamp": [*MOMENTS, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "timestamp_ns": [0, -1, 1, -999, 1_000, 1_710_037_800_000_000_001, -310_000_000_000_000_123],
    "string": [
        "",
        "a",
        "b",
        "B",
        "ab",
        PREFIX + "a",
        PREFIX + "b",
        PREFIX[:16],
        "\U0001f600" * 20,
        "\uffff" * 20,
        "\U0010ffff" * 17,
        "é",
        "%_'\"",
    ],
    "binary": [b"", b"\0", b"a", b"\xff" * 20, b"\xff" * 3, b"a" * 16 + b"\xff\xff", b"\x80"],
    "uuid": [bytes(16), b"\xff" * 16, bytes(15) + b"\1", b"\x80" + bytes(15)],
}
POOLS["timestamptz"] = [each.replace(tzinfo=UTC) for each in POOLS["timestamp"][:-2]]
POOLS["timestamptz_ns"] = POOLS["timestamp_ns"]
SIMPLE_TYPES = [name for name in POOLS if not name.endswith("_ns")]


def pool(type_):
    """The values of a primitive type."""
    if decimal_of(type_):
        precision, scale = decimal_of(type_)
        unscaled = [0, 1, -1, 100, -250, 10**precision - 1, 10 - 10**precision]
        return [decimal_from(each, scale) for each in unscaled if abs(each) < 10**precision]
    if fixed_of(type_):
        length = fixed_of(type_)
        return [bytes(length), b"\xff" * length, b"ab".ljust(length, b"c")[:length]]
    return POOLS[type_]


def random_value(chance, field):
    """A value of a JSON field, children by id; NULL now and then where it may be."""
    if field["type"] == "unknown" or (not field.get("required") and chance.random() < 0.2):
        return None
    type_ = field["type"]
    if isinstance(type_, str):
        return chance.choice(pool(type_))
    match type_["type"]:
        case "struct":
            return {each["id"]: random_value(chance, each) for each in type_["fields"]}
        case "list":
            return [
                random_value(chance, {"type": type_["element"]}) for _ in range(chance.randrange(3))
            ]
        case _:
            keys = chance.sample(pool(type_["key"]), chance.randrange(3))
            return [(key, random_value(chance, {"type": type_["value"]})) for key in keys]


def to_json(type_, value):
    """The JSON single-value form of a primitive."""
    match value:
        case bool() | str():
            return value
        case int() if type_.endswith("_ns"):
            whole, nanos = divmod(value, 1_000_000_000)
            text = datetime.fromtimestamp(whole, UTC).replace(tzinfo=None).isoformat()
            return f"{text}.{nanos:09d}" + ("+00:00" if type_.startswith("timestamptz") else "")
        case int() | float():
            return value
        case Decimal():
            return str(value) if "E" not in str(value) else f"{value:f}"
        case bytes() if type_ == "uuid":
            text = value.hex()
            return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat(timespec="microseconds")
        case time():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
    raise AssertionError(value)


def from_json(type_, value):
    """The value of the JSON single-value form of a primitive."""
    if value is None or not isinstance(value, str) or type_ == "string":
        return value
    if decimal_of(type_):
        return Decimal(value)
    if fixed_of(type_) or type_ in ("binary", "uuid"):
        return bytes.fromhex(value.replace("-", ""))
    if type_ == "date":
        return date.fromisoformat(value)
    if type_ == "time":
        return time.fromisoformat(value)
    moment = datetime.fromisoformat(value)
    if not type_.endswith("_ns"):
        return moment
    whole = int(moment.replace(microsecond=0, tzinfo=UTC).timestamp())
    return whole * 1_000_000_000 + int(value.partition(".")[2].partition("+")[0].ljust(9, "0") or 0)
