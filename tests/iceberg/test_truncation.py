"""Truncated bounds: the vectors of the reference, and bounds that stay bounds."""

from __future__ import annotations

import random

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.truncation import truncated_lower, truncated_upper

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("text", "width", "lower", "upper"),
    [
        (ALPHABET, 16, "abcdefghijklmnop", "abcdefghijklmnoq"),
        ("abcdefghijklmnop", 16, "abcdefghijklmnop", "abcdefghijklmnop"),
        ("", 16, "", ""),
        ("\ud7ffa", 1, "\ud7ff", "\ue000"),
        (f"a{LAST}b", 2, f"a{LAST}", "b"),
        (f"{LAST}{LAST}b", 2, f"{LAST}{LAST}", None),
        ("\uffffx", 1, "\uffff", "\U00010000"),
        ("\U0001f600\U0001f601b", 2, "\U0001f600\U0001f601", "\U0001f600\U0001f602"),
    ],
)
def test_text_is_cut_by_code_points(text, width, lower, upper) -> None:
    assert truncated_lower(t.STRING, text, width) == lower
    assert truncated_upper(t.STRING, text, width) == upper


@pytest.mark.parametrize(
    ("data", "width", "lower", "upper"),
    [
        (b"\x01\x02\x03", 2, b"\x01\x02", b"\x01\x03"),
        (b"\x01\x02", 2, b"\x01\x02", b"\x01\x02"),
        (b"\x01\xff\x03", 2, b"\x01\xff", b"\x02"),
        (b"\xff\xff\x01", 2, b"\xff\xff", None),
        (b"", 2, b"", b""),
    ],
)
def test_binary_is_cut_by_bytes(data, width, lower, upper) -> None:
    assert truncated_lower(t.BINARY, data, width) == lower
    assert truncated_upper(t.BINARY, data, width) == upper


def test_other_types_stay_whole() -> None:
    assert truncated_upper(t.FixedType(4), b"\x01\x02\x03\x04", 2) == b"\x01\x02\x03\x04"
    assert truncated_lower(t.LONG, 7, 1) == 7


def test_what_is_cut_still_bounds_the_value() -> None:
    chance = random.Random(1)
    points = [0x61, 0x7F, 0x80, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFE, 0x10FFFF]
    for _ in range(2000):
        text = "".join(map(chr, chance.choices(points, k=chance.randint(0, 6))))
        width = chance.randint(1, 4)
        lower, upper = (
            truncated_lower(t.STRING, text, width),
            truncated_upper(t.STRING, text, width),
        )
        assert lower.encode() <= text.encode()
        assert upper is None or text.encode() <= upper.encode()
