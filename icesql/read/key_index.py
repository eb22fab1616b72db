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
    def rest(self) -> list[tuple[str, str]]:
        """What a record holds beside hash and rank, so that keys can be compared."""
        if self.is_bijective:
            return []
        words = sum(word_count(type) for type in self.types)
        parts = [(f"word{index}", "u8") for index in range(words)]
        parts.append(("nulls", "u8"))
        return [*parts, ("row", "u8")] if self.inexact else parts

    @property
    def dtype(self) -> np.dtype[Any]:
        """One record."""
        return np.dtype([("hash", "u8"), ("rank", "u4"), *self.rest])


@dataclass(frozen=True)
class _Keys:
    """Distinct keys in hash order: hash, rank of the sequence number, and the rest of the key."""

    hashes: Words
    ranks: npt.NDArray[np.uint32]
    rest: Records | None


class KeyIndex:
    """An immutable set of keys; look-ups may run in several threads."""

    def __init__(
        self,
        layout: _Layout,
        seed: int,
        keys: _Keys,
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
            # Hashes ascend within a bucket: beyond the one looked for it cannot come.
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

    ``sequence_numbers`` are all that can come, ``expected`` about how many rows. ``batches`` is
    called again with another seed in the rare case that two keys share a hash.
    """
    layout = _Layout(tuple(types))
    ranks = np.array(sorted(set(sequence_numbers)), np.int64)
    rank_of = {int(number): rank for rank, number in enumerate(ranks)}
    spill = expected * layout.dtype.itemsize * 4 > memory_limit
    for _ in range(_ATTEMPTS):
        seed = int.from_bytes(os.urandom(8), "little")
        with _Partitions(layout, expected, temp_directory if spill else None) as partitions:
            null_rank = _fill(layout, seed, batches, rank_of, partitions)
            values = partitions.values()
            keys = partitions.distinct(values)
        if keys is not None:
            null_number = -1 if null_rank < 0 else int(ranks[null_rank])
            return KeyIndex(layout, seed, keys, ranks, null_number, values)
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
        self._kept = self._rows = 0
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
        self._rows += len(records)
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

    def distinct(self, values: Sequence[pa.ChunkedArray]) -> _Keys | None:
        """One record per key with its greatest rank, in hash order.

        None when two keys share a hash.
        """
        rest = self._layout.rest
        hashes = _Column(np.dtype("u8"), self._rows, self._folder)
        ranks = _Column(np.dtype("u4"), self._rows, self._folder)
        others = _Column(np.dtype(rest), self._rows, self._folder) if rest else None
        for part in range(len(self._parts)):
            records = self._take(part)
            if not len(records):
                continue
            kept = _distinct(records, self._layout, values)
            if kept is None:
                return None
            hashes.append(kept["hash"])
            ranks.append(kept["rank"])
            if others is not None:
                others.append(kept[[name for name, _ in rest]])
        return _Keys(hashes.array(), ranks.array(), None if others is None else others.array())

    def _take(self, part: int) -> Records:
        if self._folder is not None:
            file = self._files[part]
            file.seek(0)
            return np.frombuffer(file.read(), self._layout.dtype)
        pieces, self._parts[part] = self._parts[part], []
        return np.concatenate(pieces) if pieces else np.zeros(0, self._layout.dtype)


class _Column:
    """An array that grows to at most ``capacity`` values, in memory or in a temporary file."""

    def __init__(self, dtype: np.dtype[Any], capacity: int, folder: str | None) -> None:
        self._dtype, self._count = dtype, 0
        self._file = None if folder is None else _temporary(folder)
        # Memory that is never written to is never taken.
        self._memory = np.empty(capacity if folder is None else 0, dtype)

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add values at the end."""
        if self._file is None:
            self._memory[self._count : self._count + len(values)] = values
        else:
            self._file.write(np.ascontiguousarray(values, self._dtype).tobytes())
        self._count += len(values)

    def array(self) -> npt.NDArray[Any]:
        """All values."""
        if self._file is None or not self._count:
            return self._memory[: self._count]
        self._file.flush()
        with self._file as file:
            return np.memmap(file, self._dtype, "r")


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
