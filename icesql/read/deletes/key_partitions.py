"""Records of equality keys while an index is built: partitioned by hash, made distinct, packed.

Records wait in partitions by the leading bits of their hash, in memory or in temporary files, and
are sorted one partition at a time, so that no more than one of them is held twice.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.frozen import Frozen
from icesql.read.columns.arrow_schema import stored
from icesql.storage.temporary import make_temporary_folder

# ------------------------------------------------------------------ keys as machine words
# Key columns of equality deletes as machine words: equal words if, and mostly only if, equal.
#
# Equality is Java's: NULL equals NULL, NaN equals NaN, -0.0 and 0.0 differ. Columns of at most 16
# bytes are their own words; longer values are hashed and must be compared again after a match.


Words: TypeAlias = npt.NDArray[np.uint64]

_LONG = 256
_NULL = np.uint64(0x9E3779B97F4A7C15)


class KeyWords(Frozen):
    """One key column: words per value (0 where NULL), and which values are NULL."""

    words: tuple[Words, ...]
    nulls: npt.NDArray[np.bool_] | None


def is_exact(type: pa.DataType) -> bool:
    """Whether values of a type are their words, so that equal words mean equal values."""
    if isinstance(type, pa.BaseExtensionType):
        return is_exact(type.storage_type)
    if pa.types.is_fixed_size_binary(type):
        return bool(type.byte_width <= 16)
    return not (pa.types.is_string(type) or pa.types.is_binary(type))


def word_count(type: pa.DataType) -> int:
    """Words per value of a type."""
    if isinstance(type, pa.BaseExtensionType):
        return word_count(type.storage_type)
    if pa.types.is_null(type) or not is_exact(type):
        return 1
    return int(max(1, -(-type.bit_width // 64)))


def key_words(array: pa.Array, seed: int) -> KeyWords:
    """The words of a key column in a table type; ``seed`` varies the hash of long values."""
    array = stored(array)
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else None
    words: tuple[Words, ...]
    if pa.types.is_null(array.type):
        words = (np.zeros(len(array), np.uint64),)
    elif is_exact(array.type):
        words = _own_words(array)
    else:
        words = (_hash_bytes(array.cast(pa.binary()), seed),)
    if nulls is not None:
        words = tuple(np.where(nulls, np.uint64(0), word) for word in words)
    return KeyWords(words, nulls)


def row_hash(columns: list[KeyWords], count: int, seed: int) -> Words:
    """One word per row; of a single one-word column without NULLs it is a bijection."""
    hashed = np.full(count, seed, np.uint64)
    for column in columns:
        for word in column.words:
            hashed = mix(hashed ^ word)
        if column.nulls is not None:
            hashed = np.where(column.nulls, mix(hashed ^ _NULL), hashed)
    return hashed


def mix(words: Words) -> Words:
    """The finaliser of splitmix64, a bijection on 64-bit words."""
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _own_words(array: pa.Array) -> tuple[Words, ...]:
    """The bytes of values of fixed width, with zeros behind them."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_floating(array.type):
        # Every NaN is one key, whatever its bits.
        array = pc.if_else(pc.is_nan(array), pa.scalar(math.nan, array.type), array)
    width, count = array.type.bit_width // 8, word_count(array.type)
    padded = np.zeros((len(array), count * 8), np.uint8)
    data = array.buffers()[1]
    if data is not None and width and len(array):
        kind = f"V{width}"
        values = np.frombuffer(data, kind, len(array), array.offset * width)
        padded[:, :width].view(kind)[:, 0] = values
    words = padded.view(np.uint64)
    return tuple(np.ascontiguousarray(words[:, index]) for index in range(count))


def _hash_bytes(array: pa.Array, seed: int) -> Words:
    """A hash of each value, eight bytes a step over all values at once."""
    count = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + count + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    lengths = ends - starts
    hashed = mix(np.full(count, seed, np.uint64) ^ lengths.astype(np.uint64))
    data = array.buffers()[2]
    if data is None or not lengths.any():
        return hashed
    first, last = int(starts[0]), int(ends[-1])
    # Eight spare bytes, so that the last step may read past the end.
    flat = np.zeros(last - first + 8, np.uint8)
    flat[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    windows = np.lib.stride_tricks.as_strided(
        flat.view(np.uint8), shape=(len(flat) - 7, 8), strides=(1, 1)
    )
    starts = starts - first
    rows = np.flatnonzero((lengths > 0) & (lengths <= _LONG))
    step = 0
    while len(rows):
        at = starts[rows] + step
        word = np.ascontiguousarray(windows[at]).view(np.uint64)[:, 0]
        rest = np.minimum(lengths[rows] - step, 8)
        word = word & _TAIL_MASKS[rest]
        hashed[rows] = mix(hashed[rows] ^ word)
        step += 8
        rows = rows[lengths[rows] > step]
    for row in np.flatnonzero(lengths > _LONG):
        value = flat[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = hashlib.blake2b(value, digest_size=8, key=seed.to_bytes(8, "little")).digest()
        hashed[row] = np.frombuffer(digest, np.uint64)[0]
    return hashed


_TAIL_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


# ------------------------------------------------------------------ partitions


Records: TypeAlias = npt.NDArray[Any]

_PARTITION_ROWS = 1 << 19


class KeyLayout(Frozen):
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
        """The columns of a record beside hash and rank, by which keys are compared."""
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


class DistinctKeys(Frozen):
    """Distinct keys in hash order: hash, rank of the sequence number, and the rest of the key."""

    hashes: Words
    ranks: npt.NDArray[np.uint32]
    rest: Records | None


class KeyPartitions:
    """Records by the leading bits of their hash, in memory or one temporary file each."""

    def __init__(self, layout: KeyLayout, expected: int, folder: str | None) -> None:
        self._layout, self._folder = layout, folder
        self._bits = max(0, (max(expected, 1) // _PARTITION_ROWS).bit_length())
        self._parts: list[list[Records]] = [[] for _ in range(1 << self._bits)]
        self._files: list[IO[bytes]] = []
        self._values: list[list[pa.Array]] = [[] for _ in layout.inexact]
        self._spilled: tuple[str, Any, Any] | None = None
        self._kept = self._rows = 0
        if folder is not None:
            make_temporary_folder(folder)
            self._files = [_temporary(folder) for _ in self._parts]

    def __enter__(self) -> KeyPartitions:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()
        if self._spilled is not None and os.path.exists(self._spilled[0]):
            # Only after an error: ``values`` removes the file once it is mapped.
            self._spilled[1].close()
            os.unlink(self._spilled[0])

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

    def distinct(self, values: Sequence[pa.ChunkedArray]) -> DistinctKeys | None:
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
        return DistinctKeys(
            hashes.array(), ranks.array(), None if others is None else others.array()
        )

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
        # Memory that is never written to is never allocated.
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


def _temporary(folder: str) -> IO[bytes]:
    # Unlinked from the start: the file is removed with the last map of it.
    return tempfile.TemporaryFile(dir=folder)


def _distinct(
    records: Records, layout: KeyLayout, values: Sequence[pa.ChunkedArray]
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
    layout: KeyLayout,
    values: Sequence[pa.ChunkedArray],
) -> bool:
    """Whether neighbours with equal hashes have equal keys."""
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
