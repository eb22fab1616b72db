"""Bounds as bytes, and cut short: the vectors of Java's tests."""

from __future__ import annotations

import json

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.bounds import encode_bound, lower_text, upper_bytes, upper_text
from tests.tables import read_table


@pytest.mark.parametrize(
    ("text", "length", "lower", "upper"), read_table(__file__, "cut_texts.tsv")
)
def test_text(text: str, length: str, lower: str, upper: str) -> None:
    assert lower_text(json.loads(text), int(length)) == json.loads(lower)
    assert upper_text(json.loads(text), int(length)) == json.loads(upper)


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


def test_types_without_a_form() -> None:
    with pytest.raises(ValueError, match="variant"):
        encode_bound(t.VARIANT, "{}")


def test_avro_names() -> None:
    names = ["a.b", "9x", "é", "😀", "plain", "a#b", "_x", "9"]
    assert [*map(avro_name, names)] == [
        "a_x2Eb", "_9x", "_xE9", "_xD83D_xDE00", "plain", "a_x23b", "_x", "_9",
    ]  # fmt: skip
