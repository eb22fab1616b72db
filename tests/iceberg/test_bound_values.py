"""Bounds as bytes, and cut short: the vectors of Java's tests."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.bound_values import encode_bound, lower_text, upper_bytes, upper_text
from icesql.iceberg.bounds import decode_bound

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("text", "length", "lower", "upper"),
    [
        (ALPHABET, 16, "abcdefghijklmnop", "abcdefghijklmnoq"),
        ("abcdefghijklmnop", 16, "abcdefghijklmnop", "abcdefghijklmnop"),
        ("", 16, "", ""),
        ("イロハニホヘト", 2, "イロ", "イヮ"),
        ("イロハニホヘト", 3, "イロハ", "イロバ"),
        ("\uffff\uffff", 1, "\uffff", "\U00010000"),
        ("\ud7ff\ud7ff", 1, "\ud7ff", "\ue000"),
        ("\U0010ffff" * 2, 1, "\U0010ffff", None),
        ("a\U0010ffff\U0010ffff", 2, "a\U0010ffff", "b"),
    ],
)
def test_text(text: str, length: int, lower: str, upper: str | None) -> None:
    assert lower_text(text, length) == lower
    assert upper_text(text, length) == upper


@pytest.mark.parametrize(
    ("data", "length", "upper"),
    [
        ("010102", 2, "0102"),
        ("0101ff02", 3, "0102"),
        ("ffffff02", 2, None),
        ("ffffff02", 5, "ffffff02"),
        ("010100", 2, "0102"),
        ("", 2, ""),
    ],
)
def test_bytes(data: str, length: int, upper: str | None) -> None:
    found = upper_bytes(bytes.fromhex(data), length)
    assert (None if found is None else found.hex()) == upper


@pytest.mark.parametrize(
    ("type", "value", "data"),
    [
        (t.BOOLEAN, True, "01"),
        (t.INTEGER, 34, "22000000"),
        (t.DATE, -1, "ffffffff"),
        (t.LONG, 34, "2200000000000000"),
        (t.FLOAT, 1.0, "0000803f"),
        (t.DOUBLE, -0.0, "0000000000000080"),
        (t.TIME, 1, "0100000000000000"),
        (t.TIMESTAMPTZ_NS, -1, "ffffffffffffffff"),
        (t.DecimalType(9, 2), Decimal("14.20"), "058c"),
        (t.DecimalType(9, 2), Decimal("-1.28"), "80"),
        (t.DecimalType(9, 2), Decimal("1.28"), "0080"),
        (t.DecimalType(9, 2), Decimal("0"), "00"),
        (t.STRING, "é", "c3a9"),
        (t.BINARY, b"\x00\xff", "00ff"),
        (t.UUID, b"\x01" * 16, "01" * 16),
        (t.FixedType(2), b"ab", "6162"),
    ],
)
def test_single_values(type: t.IcebergType, value: object, data: str) -> None:
    assert encode_bound(type, value).hex() == data
    assert decode_bound(type, bytes.fromhex(data)) == value


def test_types_without_a_form() -> None:
    with pytest.raises(ValueError, match="variant"):
        encode_bound(t.VARIANT, "{}")


def test_avro_names() -> None:
    names = ["a.b", "9x", "é", "😀", "plain", "a#b", "_x", "9"]
    assert [*map(avro_name, names)] == [
        "a_x2Eb", "_9x", "_xE9", "_xD83D_xDE00", "plain", "a_x23b", "_x", "_9",
    ]  # fmt: skip
