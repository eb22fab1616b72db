"""Records of equality keys while an index is built: partitioned by hash, made distinct, packed.

Records wait in partitions by the leading bits of their hash, in memory or in temporary files, and
are sorted one partition at a time, so that no more than one of them is held twice.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.frozen import Frozen
from icesql.read.deletes.key_hash import Words, is_exact, word_count
from icesql.storage.temporary import make_temporary_folder

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
