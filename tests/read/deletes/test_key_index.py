"""The key index against a dictionary of Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.errors import InternalError
from icesql.read.deletes import key_index
from icesql.read.deletes.key_index import KeyIndex, build_key_index

TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])),
    (pa.int32(), st.integers(-2, 2)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.sampled_from(["", "a", "aa", "12345678", "123456789", "é" * 200, "é" * 201])),
    (pa.binary(), st.sampled_from([b"", b"\x00", b"\x00\x00", b"\x00" * 8])),
    (pa.binary(3), st.sampled_from([b"abc", b"abd"])),
    (pa.binary(20), st.sampled_from([b"a" * 20, b"a" * 19 + b"b"])),
    (pa.binary(16), st.sampled_from([b"a" * 16, b"a" * 15 + b"b"])),
    (pa.float32(), st.sampled_from([0.5, -0.5])),
    (pa.float64(), st.sampled_from([0.1, -0.1])),
    (pa.date32(), st.integers(-2, 2)),
    (pa.timestamp("us", "UTC"), st.sampled_from([0, -1, 2**62])),
    (pa.null(), st.none()),
    (pa.decimal128(38, 0), st.sampled_from([0, -1, 10**37, -(10**37)])),
]


def build(
    types: Sequence[pa.DataType],
    batches: Sequence[tuple[list[tuple[Any, ...]], int]],
    folder: Path,
    limit: int = 1 << 30,
) -> KeyIndex:
    def arrays() -> Iterator[tuple[Sequence[pa.Array], int]]:
        for keys, number in batches:
            yield columns(types, keys), number

    return build_key_index(
        types,
        [number for _, number in batches],
        arrays,
        expected=sum(len(keys) for keys, _ in batches),
        memory_limit=limit,
        temp_directory=str(folder),
    )


def columns(types: Sequence[pa.DataType], keys: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([key[place] for key in keys], type) for place, type in enumerate(types)]


@st.composite
def key_sets(draw: st.DrawFn) -> tuple[list[pa.DataType], list[Any], list[tuple[Any, ...]]]:
    chosen = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    key = st.tuples(*(st.none() | values for _, values in chosen))
    batch = st.tuples(st.lists(key, max_size=8), st.integers(1, 5))
    return (
        [type for type, _ in chosen],
        draw(st.lists(batch, min_size=1, max_size=4)),
        draw(st.lists(key, min_size=1, max_size=8)),
    )


@settings(max_examples=200)
@given(case=key_sets(), limit=st.sampled_from([0, 1 << 30]))
def test_the_index_answers_like_a_dictionary(tmp_path_factory, case: Any, limit: int) -> None:
    types, batches, probes = case
    expected: dict[tuple[Any, ...], int] = {}
    for keys, number in batches:
        for key in keys:
            expected[key] = max(number, expected.get(key, -1))
    folder = tmp_path_factory.mktemp("index")
    index = build(types, batches, folder, limit)
    asked = probes + list(expected)
    found = index.sequence_numbers(columns(types, asked)).tolist()
    assert found == [expected.get(key, -1) for key in asked]
    assert len(index) == len(expected)
    assert list(folder.iterdir()) == []


def test_many_keys_in_several_partitions(tmp_path) -> None:
    keys = np.arange(0, 3_000_000, 3, dtype=np.int64)
    for limit in (1 << 30, 1 << 20):
        index = build_key_index(
            [pa.int64()],
            [7],
            lambda: (([pa.array(part)], 7) for part in np.array_split(keys, 9)),
            expected=len(keys),
            memory_limit=limit,
            temp_directory=str(tmp_path),
        )
        found = index.sequence_numbers([pa.array(np.arange(100_000, dtype=np.int64))])
        assert (found[::3] == 7).all()
        assert (found[1::3] == -1).all()
        assert len(index) == 1_000_000


def test_keys_that_share_a_hash_are_hashed_anew(tmp_path, monkeypatch) -> None:
    genuine = key_index.row_hash
    attempts = []

    def weak_at_first(encoded: Any, count: int, seed: int) -> Any:
        if seed not in attempts:
            attempts.append(seed)
        hashed = genuine(encoded, count, seed)
        return hashed & np.uint64(3) if len(attempts) < 3 else hashed

    monkeypatch.setattr(key_index, "row_hash", weak_at_first)
    types = [pa.string(), pa.int64()]
    keys = [(str(n), n) for n in range(50)]
    index = build(types, [(keys, 1)], tmp_path)
    assert len(attempts) == 3
    assert index.sequence_numbers(columns(types, [("7", 7), ("7", 8)])).tolist() == [1, -1]


def test_hashes_that_never_differ_are_an_internal_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        key_index, "row_hash", lambda encoded, count, seed: np.zeros(count, np.uint64)
    )
    with pytest.raises(InternalError, match="share hashes"):
        build([pa.string()], [([("a",), ("b",)], 1)], tmp_path)


def test_a_shared_hash_is_not_a_match(tmp_path, monkeypatch) -> None:
    index = build([pa.string()], [([("a",)], 1)], tmp_path)
    genuine = key_index.row_hash

    def as_if_a(encoded: Any, count: int, seed: int) -> Any:
        (key,) = columns([pa.string()], [("a",)])
        return np.repeat(genuine([key_index.key_words(key, seed)], 1, seed), count)

    monkeypatch.setattr(key_index, "row_hash", as_if_a)
    assert index.sequence_numbers(columns([pa.string()], [("a",), ("b",)])).tolist() == [1, -1]
