"""Single values in their binary form, as column bounds and decimals are stored.

Source: Iceberg spec, "Binary single-value serialization"; Java's UnicodeUtil and BinaryUtil.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from struct import Struct, unpack
from typing import Any, Final

from icesql.iceberg import types as t

# ------------------------------------------------------------------ decimals and floats


_SINGLE: Final = Struct("<f")
# Wide enough to be exact for every value that bounds may hold; never signals for those.
_EXACT: Final = Context(prec=400)


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal of ``scale`` stores; exact at any precision.

    Raises ValueError when ``value`` has more digits after the point than ``scale``.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite decimal")
    numerator, denominator = value.as_integer_ratio()
    number, rest = divmod(numerator * int(10**scale), denominator)
    if rest:
        raise ValueError(f"{value} does not fit scale {scale}")
    return number


def minimal_twos_complement(number: int) -> bytes:
    """Big-endian two's complement in the fewest bytes, as decimals are hashed and stored."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def scaled(number: int, scale: int) -> Decimal:
    """The decimal of ``scale`` that stores ``number``, whatever the context of the thread is."""
    return _EXACT.scaleb(Decimal(number), -scale)


def java_float(value: float, *, single: bool) -> str:
    """A number as Java writes it: the fewest digits, with an exponent from 1e7 and below 1e-3."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    decimal = Decimal(repr(shortest_single(value) if single else value))
    if decimal and not Decimal("0.001") <= abs(decimal) < 10_000_000:
        sign, digits, exponent = decimal.normalize().as_tuple()
        assert isinstance(exponent, int)
        rest = "".join(map(str, digits[1:])) or "0"
        return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
    plain = f"{decimal:f}"
    return plain if "." in plain else f"{plain}.0"


def shortest_single(value: float) -> float:
    """The number with the fewest digits that is ``value`` in single precision."""
    packed = _SINGLE.pack(value)
    for digits in range(1, 10):  # nine distinguish any two
        text = f"{value:.{digits}g}"
        try:
            if _SINGLE.pack(float(text)) == packed:
                return float(text)
        except OverflowError:
            continue  # rounded up beyond the largest number
    return value


# ------------------------------------------------------------------ bounds read


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


# ------------------------------------------------------------------ bounds written


_LAST_BEFORE_SURROGATES: Final = 0xD7FF
_FIRST_AFTER_SURROGATES: Final = 0xE000
_LAST: Final = 0x10FFFF


def encode_bound(type: t.IcebergType, value: Any) -> bytes:
    """The bytes of a value that is not NULL, in the internal form of ``iceberg.types``.

    Raises ValueError for a type without such a form.
    """
    match type:
        case t.BooleanType():
            return struct.pack("?", value)
        case t.IntegerType() | t.DateType():
            return struct.pack("<i", value)
        case t.LongType() | t.TimeType() | t.AnyTimestamp():
            return struct.pack("<q", value)
        case t.FloatType():
            return struct.pack("<f", value)
        case t.DoubleType():
            return struct.pack("<d", value)
        case t.DecimalType():
            return minimal_twos_complement(unscaled(value, type.scale))
        case t.StringType():
            return bytes(value.encode("utf-8"))
        case t.UUIDType() | t.FixedType() | t.BinaryType():
            return bytes(value)
        case _:
            raise ValueError(f"values of type {type} have no binary form")


def lower_text(text: str, length: int | None) -> str:
    """A lower bound of at most ``length`` code points: nothing that begins so is smaller."""
    return text[:length]


def upper_text(text: str, length: int) -> str | None:
    """An upper bound of at most ``length`` code points; None where there is none.

    >>> upper_text("abcdefghijklmnopqrstuvwxyz", 16)
    'abcdefghijklmnoq'
    """
    if len(text) <= length:
        return text
    cut = text[:length]
    while cut:
        last = ord(cut[-1])
        if last < _LAST:
            after = last + 1
            if _LAST_BEFORE_SURROGATES < after < _FIRST_AFTER_SURROGATES:
                after = _FIRST_AFTER_SURROGATES
            return cut[:-1] + chr(after)
        cut = cut[:-1]
    return None


def upper_bytes(data: bytes, length: int) -> bytes | None:
    """An upper bound of at most ``length`` bytes; None where all of them are FF."""
    if len(data) <= length:
        return data
    cut = data[:length].rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
