"""Look up rows in a set of equality-delete keys: key → greatest sequence number.

Keys are hashed to words, kept sorted, distinct and packed (12 bytes for a one-word key), and found
through a directory of their leading bits, so a look-up costs the same however many delete files
there were. Above the memory limit the index is built and kept in temporary files.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import InternalError
from icesql.read.key_hash import KeyWords, Words, is_exact, key_words, row_hash, word_count

Records: TypeAlias = npt.NDArray[Any]
KeyBatches: TypeAlias = Callable[[], Iterable[tuple[Sequence[pa.Array], int]]]

_PARTITION_ROWS = 1 << 19
_ATTEMPTS = 4


@dataclass(frozen=True)
class _Layout:
    """Which parts of a key a record keeps beside its hash."""

    types: tuple[pa.DataType, ...]

    @property
    def is_bijective(self) -> bool:
        """Whether the hash alone is the key: one column of one exact word."""
        return len(self.types) == 1 and is_exact(self.types[0]) and word_count(self.types[0]) == 1

    @property
    def inexact(self) -> tuple[int, ...]:
        """The columns whose values must be compared themselves."""
        return tuple(index for index, type in enumerate(self.types) if not is_exact(type))

    @property
    def dtype(self) -> np.dtype[Any]:
        parts: list[tuple[str, str]] = [("hash", "u8"), ("rank", "u4")]
        if not self.is_bijective:
            words = sum(word_count(type) for type in self.types)
            parts += [(f"word{index}", "u8") for index in range(words)]
            parts.append(("nulls", "u8"))
        if self.inexact:
            parts.append(("row", "u8"))
        return np.dtype(parts)


class KeyIndex:
    """An immutable set of keys; look-ups may run in several threads."""

    def __init__(
        self,
        layout: _Layout,
        seed: int,
        records: Records,
        sequence_numbers: npt.NDArray[np.int64],
        null_sequence_number: int,
        values: Sequence[pa.ChunkedArray],
    ) -> None:
        self._layout, self._seed, self._records = layout, seed, records
        self._sequence_numbers, self._null_sequence_number = sequence_numbers, null_sequence_number
        self._values = values
        # Its own column: look-ups touch little else.
        self._hashes = np.ascontiguousarray(records["hash"])
        bits = max(1, len(records).bit_length() - 1)
        self._shift = np.uint64(64 - bits)
        edges = np.arange((1 << bits) + 1, dtype=np.uint64)
        starts = edges[:-1] << self._shift
        self._directory = np.append(np.searchsorted(self._hashes, starts), len(records)).astype(
            np.int64
        )

    def __len__(self) -> int:
        return len(self._records) + (self._null_sequence_number >= 0)

    def sequence_numbers(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """For each row the greatest sequence number that deletes its key, -1 for none."""
        count = len(columns[0])
        encoded = [key_words(column, self._seed) for column in columns]
        answer = np.full(count, -1, np.int64)
        if len(self._records):
            hashed = row_hash(encoded, count, self._seed)
            rows, slots = self._find(hashed)
            if not self._layout.is_bijective:
                same = self._same(encoded, columns, rows, slots)
                rows, slots = rows[same], slots[same]
            answer[rows] = self._sequence_numbers[self._records["rank"][slots]]
        if self._layout.is_bijective and encoded[0].nulls is not None:
            answer[encoded[0].nulls] = self._null_sequence_number
        return answer

    def _find(self, hashed: Words) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows whose hash is in the index, and where."""
        bucket = hashed >> self._shift
        slot = self._directory[bucket]
        end = self._directory[bucket + np.uint64(1)]
        active = np.flatnonzero(slot < end)
        found_rows, found_slots = [], []
        while len(active):
            there = self._hashes[slot[active]]
            here = hashed[active]
            hit = there == here
            found_rows.append(active[hit])
            found_slots.append(slot[active[hit]])
            active = active[there < here]
            slot[active] += 1
            active = active[slot[active] < end[active]]
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
        records = self._records[slots]
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

    ``sequence_numbers`` are all that can come, ``expected`` about how many rows. ``batches`` is
    called again with another seed in the rare case that two keys share a hash.
    """
    layout = _Layout(tuple(types))
    ranks = np.array(sorted(set(sequence_numbers)), np.int64)
    rank_of = {int(number): rank for rank, number in enumerate(ranks)}
    spill = expected * layout.dtype.itemsize * 2 > memory_limit
    for _ in range(_ATTEMPTS):
        seed = int.from_bytes(os.urandom(8), "little")
        with _Partitions(layout, expected, temp_directory if spill else None) as partitions:
            null_rank = _fill(layout, seed, batches, rank_of, partitions)
            values = partitions.values()
            records = partitions.distinct(values)
        if records is not None:
            null_number = -1 if null_rank < 0 else int(ranks[null_rank])
            return KeyIndex(layout, seed, records, ranks, null_number, values)
    raise InternalError("equality keys share hashes under four seeds")


def _fill(
    layout: _Layout,
    seed: int,
    batches: KeyBatches,
    rank_of: dict[int, int],
    partitions: _Partitions,
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
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.cast(pa.large_binary())


class _Partitions:
    """Records by the leading bits of their hash, in memory or one temporary file each."""

    def __init__(self, layout: _Layout, expected: int, folder: str | None) -> None:
        self._layout, self._folder = layout, folder
        self._bits = max(0, (max(expected, 1) // _PARTITION_ROWS).bit_length())
        self._parts: list[list[Records]] = [[] for _ in range(1 << self._bits)]
        self._files: list[IO[bytes]] = []
        self._values: list[list[pa.Array]] = [[] for _ in layout.inexact]
        self._spilled: tuple[str, Any, Any] | None = None
        self._kept = 0
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
            self._files = [_temporary(folder) for _ in self._parts]

    def __enter__(self) -> _Partitions:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def add(self, records: Records) -> None:
        """Sort a batch of records into its partitions."""
        if not self._bits:
            self._append(0, records)
            return
        shift = np.uint64(64 - self._bits)
        records = records[np.argsort(records["hash"])]
        bounds = np.searchsorted(
            records["hash"] >> shift, np.arange(len(self._parts) + 1, dtype=np.uint64)
        )
        for part in range(len(self._parts)):
            piece = records[bounds[part] : bounds[part + 1]]
            if len(piece):
                self._append(part, piece.copy())

    def _append(self, part: int, records: Records) -> None:
        if self._folder is None:
            self._parts[part].append(records)
        else:
            self._files[part].write(records.tobytes())

    def keep(self, columns: Sequence[pa.Array]) -> int:
        """Keep the values of inexact columns; the number of their first row."""
        first = self._kept
        self._kept += len(columns[0])
        if self._folder is None:
            for place, column in enumerate(columns):
                self._values[place].append(column)
            return first
        if self._spilled is None:
            descriptor, path = tempfile.mkstemp(dir=self._folder, suffix=".keys")
            os.close(descriptor)
            schema = pa.schema([(str(place), pa.large_binary()) for place in range(len(columns))])
            sink = pa.OSFile(path, "wb")
            self._spilled = (path, sink, pa.ipc.new_file(sink, schema))
        names = [str(place) for place in range(len(columns))]
        self._spilled[2].write_batch(pa.record_batch(list(columns), names=names))
        return first

    def values(self) -> list[pa.ChunkedArray]:
        """The kept values, one chunked array per inexact column."""
        if self._spilled is None:
            return [pa.chunked_array(chunks, pa.large_binary()) for chunks in self._values]
        path, sink, writer = self._spilled
        writer.close()
        sink.close()
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        os.unlink(path)
        return [table.column(place) for place in range(table.num_columns)]

    def distinct(self, values: Sequence[pa.ChunkedArray]) -> Records | None:
        """All records in hash order, one per key with its greatest rank.

        None when two keys share a hash.
        """
        done: list[Records] = []
        target = None if self._folder is None else _temporary(self._folder)
        for part in range(len(self._parts)):
            records = self._take(part)
            if not len(records):
                continue
            kept = _distinct(records, self._layout, values)
            if kept is None:
                return None
            if target is None:
                done.append(kept)
            else:
                target.write(kept.tobytes())
        if target is not None and target.tell():
            target.flush()
            return np.memmap(target, self._layout.dtype, "r")
        return np.concatenate(done) if done else np.zeros(0, self._layout.dtype)

    def _take(self, part: int) -> Records:
        if self._folder is not None:
            file = self._files[part]
            file.seek(0)
            return np.frombuffer(file.read(), self._layout.dtype)
        pieces, self._parts[part] = self._parts[part], []
        return np.concatenate(pieces) if pieces else np.zeros(0, self._layout.dtype)


def _temporary(folder: str) -> IO[bytes]:
    # Unlinked from the start: it goes when the last map of it does.
    return tempfile.TemporaryFile(dir=folder)


def _distinct(
    records: Records, layout: _Layout, values: Sequence[pa.ChunkedArray]
) -> Records | None:
    """Records in hash order, the greatest rank of each hash; None when keys share a hash."""
    hashes = records["hash"]
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    firsts = np.flatnonzero(is_first)
    if len(firsts) == len(records):
        return records[order]
    if not layout.is_bijective and not _runs_are_one_key(records, order, is_first, layout, values):
        return None
    kept = records[order[firsts]]
    kept["rank"] = np.maximum.reduceat(records["rank"][order], firsts)
    return kept


def _runs_are_one_key(
    records: Records,
    order: npt.NDArray[np.int64],
    is_first: npt.NDArray[np.bool_],
    layout: _Layout,
    values: Sequence[pa.ChunkedArray],
) -> bool:
    """Whether neighbours of equal hash are equal keys."""
    again = np.flatnonzero(~is_first)
    mine, before = records[order[again]], records[order[again - 1]]
    for name in layout.dtype.names or ():
        if name not in ("hash", "rank", "row") and not np.array_equal(mine[name], before[name]):
            return False
    for column in values:
        left = column.take(pa.array(mine["row"])).combine_chunks()
        right = column.take(pa.array(before["row"])).combine_chunks()
        if not left.equals(right):
            return False
    return True
