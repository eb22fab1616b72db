"""Look up rows in a set of equality-delete keys: key → greatest sequence number.

Keys are hashed to words, kept sorted, distinct and packed (12 bytes for a one-word key), and found
through a directory of their leading bits, so a look-up costs the same however many delete files
there were. Above the memory limit the index is built and kept in temporary files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import InternalError
from icesql.read.columns.arrow_schema import stored
from icesql.read.deletes.key_partitions import (
    DistinctKeys,
    KeyLayout,
    KeyPartitions,
    KeyWords,
    Words,
    key_words,
    row_hash,
)
from icesql.storage.temporary import spilling_to

KeyBatches: TypeAlias = Callable[[], Iterable[tuple[Sequence[pa.Array], int]]]

_ATTEMPTS = 4


class KeyIndex:
    """An immutable set of keys; look-ups may run in several threads."""

    def __init__(
        self,
        layout: KeyLayout,
        seed: int,
        keys: DistinctKeys,
        sequence_numbers: npt.NDArray[np.int64],
        null_sequence_number: int,
        values: Sequence[pa.ChunkedArray],
    ) -> None:
        self._layout, self._seed, self._keys = layout, seed, keys
        self._sequence_numbers, self._null_sequence_number = sequence_numbers, null_sequence_number
        self._values = values
        self._shift, self._directory = _directory(keys.hashes)

    def __len__(self) -> int:
        return len(self._keys.hashes) + (self._null_sequence_number >= 0)

    def sequence_numbers(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """For each row the greatest sequence number that deletes its key, -1 for none."""
        count = len(columns[0])
        encoded = [key_words(column, self._seed) for column in columns]
        answer = np.full(count, -1, np.int64)
        if len(self._keys.hashes):
            hashed = row_hash(encoded, count, self._seed)
            rows, slots = self._find(hashed)
            if not self._layout.is_bijective:
                same = self._same(encoded, columns, rows, slots)
                rows, slots = rows[same], slots[same]
            answer[rows] = self._sequence_numbers[self._keys.ranks[slots]]
        if self._layout.is_bijective and encoded[0].nulls is not None:
            answer[encoded[0].nulls] = self._null_sequence_number
        return answer

    def _find(self, hashed: Words) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows whose hash is in the index, and where."""
        hashes = self._keys.hashes
        bucket = hashed >> self._shift
        slot = self._directory[bucket]
        bucket += np.uint64(1)
        end = self._directory[bucket]
        active = np.flatnonzero(slot < end)
        slot, end, here = slot[active], end[active], hashed[active]
        found_rows, found_slots = [], []
        while len(active):
            there = hashes[slot]
            hit = there == here
            if hit.any():
                found_rows.append(active[hit])
                found_slots.append(slot[hit].astype(np.int64))
            slot = slot + np.uint32(1)
            # Hashes ascend within a bucket: after a greater one the search ends.
            on = (there < here) & (slot < end)
            active, slot, end, here = active[on], slot[on], end[on], here[on]
        if not found_rows:
            empty = np.empty(0, np.int64)
            return empty, empty
        return np.concatenate(found_rows), np.concatenate(found_slots)

    def _same(
        self,
        encoded: Sequence[KeyWords],
        columns: Sequence[pa.Array],
        rows: npt.NDArray[np.int64],
        slots: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Whether row and record are one key, not only one hash."""
        assert self._keys.rest is not None
        records = self._keys.rest[slots]
        same = np.ones(len(rows), np.bool_)
        for index, word in enumerate(word for column in encoded for word in column.words):
            same &= records[f"word{index}"] == word[rows]
        same &= records["nulls"] == _null_bits(encoded, len(columns[0]))[rows]
        for place, index in enumerate(self._layout.inexact):
            mine = _binary(columns[index]).take(pa.array(rows))
            theirs = self._values[place].take(pa.array(records["row"]))
            equal = pc.equal(mine, theirs.combine_chunks())
            both_null = pc.and_(mine.is_null(), theirs.combine_chunks().is_null())
            same &= pc.if_else(both_null, True, equal.fill_null(False)).to_numpy(
                zero_copy_only=False
            )
        return same


def build_key_index(
    types: Sequence[pa.DataType],
    sequence_numbers: Iterable[int],
    batches: KeyBatches,
    *,
    expected: int,
    memory_limit: int,
    temp_directory: str,
) -> KeyIndex:
    """The index of all keys that ``batches()`` yields, each batch with its sequence number.

    ``sequence_numbers`` are all possible ones, ``expected`` the approximate number of rows.
    ``batches`` is called again with another seed in the rare case that two keys share a hash.
    """
    layout = KeyLayout(tuple(types))
    ranks = np.array(sorted(set(sequence_numbers)), np.int64)
    rank_of = {int(number): rank for rank, number in enumerate(ranks)}
    spill = expected * layout.dtype.itemsize * 4 > memory_limit
    for _ in range(_ATTEMPTS):
        seed = int.from_bytes(os.urandom(8), "little")
        with (
            spilling_to(temp_directory) if spill else nullcontext(),
            KeyPartitions(layout, expected, temp_directory if spill else None) as partitions,
        ):
            null_rank = _fill(layout, seed, batches, rank_of, partitions)
            values = partitions.values()
            keys = partitions.distinct(values)
        if keys is not None:
            null_number = -1 if null_rank < 0 else int(ranks[null_rank])
            return KeyIndex(layout, seed, keys, ranks, null_number, values)
    raise InternalError("equality keys share hashes under four seeds")


def _fill(
    layout: KeyLayout,
    seed: int,
    batches: KeyBatches,
    rank_of: dict[int, int],
    partitions: KeyPartitions,
) -> int:
    """Hash all keys into the partitions; the rank of the NULL key of a one-word index, or -1."""
    null_rank = -1
    for columns, sequence_number in batches():
        count = len(columns[0])
        rank = rank_of[sequence_number]
        encoded = [key_words(column, seed) for column in columns]
        records = np.zeros(count, layout.dtype)
        records["hash"] = row_hash(encoded, count, seed)
        records["rank"] = rank
        if layout.is_bijective:
            nulls = encoded[0].nulls
            if nulls is not None:
                null_rank = max(null_rank, rank)
                records = records[~nulls]
        else:
            for index, word in enumerate(word for column in encoded for word in column.words):
                records[f"word{index}"] = word
            records["nulls"] = _null_bits(encoded, count)
        if layout.inexact:
            first = partitions.keep([_binary(columns[index]) for index in layout.inexact])
            records["row"] = np.arange(first, first + count, dtype=np.uint64)
        partitions.add(records)
    return null_rank


def _null_bits(encoded: Sequence[KeyWords], count: int) -> Words:
    bits = np.zeros(count, np.uint64)
    for index, column in enumerate(encoded):
        if column.nulls is not None:
            bits |= column.nulls.astype(np.uint64) << np.uint64(index % 64)
    return bits


def _binary(array: pa.Array) -> pa.Array:
    return stored(array).cast(pa.large_binary())


def _directory(hashes: Words) -> tuple[np.uint64, npt.NDArray[np.uint32]]:
    """Where the hashes of each value of the leading bits begin, and how far to shift to these."""
    # Twice as many entries as keys keep most look-ups of missing keys to one step.
    bits = min(max(1, len(hashes).bit_length() + 1), 24)
    shift = np.uint64(64 - bits)
    directory = np.empty((1 << bits) + 1, np.uint32)
    step = 1 << 18
    for begin in range(0, 1 << bits, step):
        edges = np.arange(begin, min(begin + step, 1 << bits), dtype=np.uint64) << shift
        directory[begin : begin + len(edges)] = np.searchsorted(hashes, edges)
    directory[-1] = len(hashes)
    return shift, directory
