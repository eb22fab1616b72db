"""Single-value serialization: the vectors of the Iceberg spec and the rules of promotion."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.iceberg.bounds import decode_bound, scaled_decimal
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
)
from tests.writer.bounds import encode_bound

VECTORS: list[tuple[IcebergType, object, str]] = [
    (BOOLEAN, False, "00"),
    (BOOLEAN, True, "01"),
    (INTEGER, 84202, "EA480100"),
    (LONG, 200, "C800000000000000"),
    (FLOAT, -4.5, "000090C0"),
    (DOUBLE, 6.0, "0000000000001840"),
    (DATE, 1000, "E8030000"),
    (TIME, 10000, "1027000000000000"),
    (TIMESTAMP, 400000, "801A060000000000"),
    (TIMESTAMPTZ, 400000, "801A060000000000"),
    (TIMESTAMP_NS, 400000000, "0084D71700000000"),
    (TIMESTAMPTZ_NS, 400000000, "0084D71700000000"),
    (DecimalType(9, 2), Decimal("3.45"), "0159"),
    (DecimalType(9, 4), Decimal("123.4567"), "12D687"),
    (DecimalType(9, 4), Decimal("-123.4567"), "ED2979"),
    (DecimalType(10, 3), Decimal("0.011"), "0B"),
    (STRING, "ABC", "414243"),
    (UUID, bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), "F79C3E09677C4BBDA4793F349CB785E7"),
    (FixedType(2), b"ab", "6162"),
    (BINARY, b"Z", "5A"),
    (STRING, "", ""),
    (BINARY, b"", ""),
]


@pytest.mark.parametrize(("type_", "value", "hex_bytes"), VECTORS, ids=str)
def test_vectors_of_the_spec_decode_and_encode(
    type_: IcebergType, value: object, hex_bytes: str
) -> None:
    assert decode_bound(type_, bytes.fromhex(hex_bytes)) == value
    assert encode_bound(type_, value) == bytes.fromhex(hex_bytes)


def test_any_byte_but_zero_is_true() -> None:
    assert decode_bound(BOOLEAN, b"\x07") is True


@pytest.mark.parametrize(
    ("type_", "data", "value"),
    [
        (LONG, struct.pack("<i", -7), -7),
        (DOUBLE, struct.pack("<f", 1.5), 1.5),
        (TIMESTAMP, struct.pack("<i", -1), -86_400_000_000),
        (TIMESTAMP_NS, struct.pack("<i", 2), 172_800_000_000_000),
    ],
)
def test_bounds_from_before_a_promotion_are_widened(
    type_: IcebergType, data: bytes, value: object
) -> None:
    assert decode_bound(type_, data) == value


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (INTEGER, struct.pack("<q", 1)),
        (LONG, b"\x01"),
        (TIMESTAMPTZ, struct.pack("<i", 1)),  # a date is never promoted to an instant
        (TIMESTAMPTZ_NS, struct.pack("<i", 1)),
        (FLOAT, struct.pack("<d", 1.0)),
        (FLOAT, struct.pack("<f", math.nan)),
        (DOUBLE, struct.pack("<d", math.nan)),
        (DOUBLE, struct.pack("<f", math.nan)),
        (DATE, b""),
        (BOOLEAN, b""),
        (DecimalType(9, 2), b""),
        (DecimalType(9, 2), b"\x01" * 65),
        (UUID, b"\x01" * 15),
        (STRING, b"\xff\xfe"),
        (UNKNOWN, b"\x00"),
        (VARIANT, b"\x00"),
    ],
)
def test_bounds_that_no_rule_explains_are_unusable(type_: IcebergType, data: bytes) -> None:
    assert decode_bound(type_, data) is None


def test_sign_extended_decimals_are_accepted() -> None:
    assert decode_bound(DecimalType(9, 2), b"\xff" * 14 + b"\xfe\xa7") == Decimal("-3.45")


def test_zero_keeps_the_scale_and_infinity_is_a_bound() -> None:
    assert str(decode_bound(DecimalType(9, 2), b"\x00")) == "0.00"
    assert decode_bound(DOUBLE, struct.pack("<d", math.inf)) == math.inf


def test_decimals_of_38_digits_stay_exact_under_the_default_context() -> None:
    unscaled = 10**38 - 1
    assert scaled_decimal(unscaled, 10) == Decimal("9" * 28 + "." + "9" * 10)
    assert encode_bound(DecimalType(38, 10), scaled_decimal(unscaled, 10)) == unscaled.to_bytes(16)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_survive_the_round_trip(unscaled: int, scale: int) -> None:
    type_ = DecimalType(38, scale)
    value = scaled_decimal(unscaled, scale)
    encoded = encode_bound(type_, value)
    assert decode_bound(type_, encoded) == value
    assert int.from_bytes(encoded, "big", signed=True) == unscaled
    assert len(encoded) == 1 or abs(unscaled) >= 1 << (8 * len(encoded) - 9)


def test_values_outside_their_type_do_not_encode() -> None:
    with pytest.raises(ValueError):
        encode_bound(INTEGER, 1 << 31)
    with pytest.raises(ValueError):
        encode_bound(DecimalType(9, 2), Decimal("1.005"))
    with pytest.raises(TypeError):
        encode_bound(UNKNOWN, 1)
