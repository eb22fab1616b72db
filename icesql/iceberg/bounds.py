"""Column bounds: single values to and from their binary form, with promotion by length.

Source: Iceberg spec, "Binary single-value serialization" and "Schema Evolution".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from struct import Struct, unpack
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.decimals import scaled

MICROS_PER_DAY: Final = 86_400_000_000
NANOS_PER_DAY: Final = 1000 * MICROS_PER_DAY

_FLOAT = Struct("<f")
_DOUBLE = Struct("<d")
# 38 digits need 16 bytes; sign-extended writers may use more, but not hundreds of them.
_LONGEST_DECIMAL = 64

Decode = Callable[[bytes], Any]


def decode_bound(type: t.IcebergType, data: bytes) -> Any:
    """The value of a bound in internal form, None when it cannot be used.

    The bytes may have been written before the column was promoted: their length decides. NaN, a
    length that no promotion explains, and types without bounds give None.
    """
    return bound_decoder(type)(data)


def bound_decoder(type: t.IcebergType) -> Decode:
    """``decode_bound`` of one type, for use on many bounds."""
    match type:
        case t.DecimalType():
            return lambda data: decode_decimal(data, type.scale)
        case _:
            return _DECODERS.get(type.__class__, _unusable)


def decode_bounds(decode: Decode, bounds: Sequence[bytes | None]) -> Sequence[Any]:
    """Decode many bounds as ``bound_decoder`` does, None for None; numbers of one size at once."""
    code = _NUMBERS.get(decode)
    if code is not None and bounds and None not in bounds:
        size = 4 if code == "i" else 8
        given: Sequence[bytes] = bounds  # type: ignore[assignment]
        if set(map(len, given)) == {size}:
            return unpack(f"<{len(given)}{code}", b"".join(given))
    return [None if each is None else decode(each) for each in bounds]


def _unusable(data: bytes) -> None:
    return None


def _boolean(data: bytes) -> bool | None:
    return data != b"\x00" if len(data) == 1 else None


def _whole(*sizes: int, day: int = 1) -> Decode:
    """A decoder of integers of some sizes.

    With ``day`` 4 bytes are days: the column was a date when the file was written.
    """

    def decode(data: bytes) -> int | None:
        if len(data) not in sizes:
            return None
        value = int.from_bytes(data, "little", signed=True)
        return value * day if len(data) == 4 else value

    return decode


_int, _long_only, _long = _whole(4), _whole(8), _whole(8, 4)
_timestamp, _timestamp_ns = _whole(8, 4, day=MICROS_PER_DAY), _whole(8, 4, day=NANOS_PER_DAY)


def _float(data: bytes) -> float | None:
    if len(data) != 4:
        return None
    value: float = _FLOAT.unpack(data)[0]
    return None if math.isnan(value) else value


def _double(data: bytes) -> float | None:
    if len(data) == 4:
        return _float(data)
    if len(data) != 8:
        return None
    value: float = _DOUBLE.unpack(data)[0]
    return None if math.isnan(value) else value


def _string(data: bytes) -> str | None:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return None


def _uuid(data: bytes) -> bytes | None:
    return bytes(data) if len(data) == 16 else None


def decode_decimal(data: bytes, scale: int) -> Decimal | None:
    """The decimal of a big-endian two's complement unscaled value of any sensible length."""
    if not 0 < len(data) <= _LONGEST_DECIMAL:
        return None
    return scaled(int.from_bytes(data, "big", signed=True), scale)


_DECODERS: Final[dict[type[t.IcebergType], Decode]] = {
    t.BooleanType: _boolean,
    t.IntegerType: _int,
    t.DateType: _int,
    t.LongType: _long,
    t.TimeType: _long_only,
    t.TimestampType: _timestamp,
    t.TimestamptzType: _long_only,
    t.TimestampNanoType: _timestamp_ns,
    t.TimestamptzNanoType: _long_only,
    t.FloatType: _float,
    t.DoubleType: _double,
    t.StringType: _string,
    t.UUIDType: _uuid,
    # Some writers truncate fixed like binary, so any length is taken; bytes compare as prefixes.
    t.FixedType: bytes,
    t.BinaryType: bytes,
}
# Of the usual size, the code of ``struct``.
_NUMBERS: Final[dict[Decode, str]] = {
    _int: "i",
    _long: "q",
    _long_only: "q",
    _timestamp: "q",
    _timestamp_ns: "q",
}
