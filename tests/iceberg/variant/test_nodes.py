"""Variants taken apart and put together."""

from __future__ import annotations

import random

import pytest

from icesql.iceberg import variant as p
from icesql.iceberg.variant import (
    NULL,
    BadVariant,
    Node,
    decode_node,
    encode_node,
    read_dictionary,
)

PRIMITIVES = [
    NULL, p.of_bool(True), p.of_int(-1), p.of_int(300), p.of_int(1 << 40), p.of_int(1 << 70),
    p.of_double(1.5), p.of_float(-2.0), p.of_text("é"), p.of_text("x" * 64), p.of_text("x" * 63),
    p.of_binary(b"\0\1"), p.of_date(-1), p.of_time(1), p.of_uuid(bytes(range(16))),
    p.of_timestamp(-1, nanos=False, instant=True), p.of_timestamp(7, nanos=True, instant=False),
]  # fmt: skip


def node(chance: random.Random, depth: int = 0) -> Node:
    kind = chance.random()
    if depth > 3 or kind < 0.5:
        return chance.choice(PRIMITIVES)
    count = chance.choice((0, 1, 2, 5, 300 if depth == 0 else 3))
    if kind < 0.75:
        return [node(chance, depth + 1) for _ in range(count)]
    return {chance.choice("abzé𐍈") + str(n): node(chance, depth + 1) for n in range(count)}


def test_what_is_encoded_is_decoded() -> None:
    chance = random.Random(7)
    for _ in range(60):
        made = node(chance)
        metadata, value = encode_node(made)
        names = read_dictionary(metadata)
        assert list(names) == sorted(names, key=str.encode)
        assert decode_node(value, names) == made


def test_examples_of_the_specification() -> None:
    metadata, value = encode_node({"name": p.of_text("Alice"), "age": p.of_int(30)})
    assert metadata == b"\x11\x02\x00\x03\x07agename"
    assert value == b"\x02\x02\x00\x01\x00\x02\x08\x0c\x1e\x15Alice"
    assert encode_node([p.of_int(1), NULL]) == (b"\x01\0\0", b"\x03\x02\x00\x02\x03\x0c\x01\x00")


@pytest.mark.parametrize("made", [{"a": [1 and p.of_text("xyz")], "b": p.of_int(1 << 70)}])
def test_cut_bytes_are_no_variant(made: Node) -> None:
    metadata, value = encode_node(made)
    names = read_dictionary(metadata)
    for size in range(len(value)):
        with pytest.raises(BadVariant):
            decode_node(value[:size], names)
    with pytest.raises(BadVariant):
        decode_node(b"\x54", ())
    with pytest.raises(BadVariant):
        decode_node(value, ())
