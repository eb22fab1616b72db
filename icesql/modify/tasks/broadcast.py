"""Tables in memory that every task reads: a few rows travel with it, more lie in a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from icesql.query.views.temporary import TemporaryTable
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage
from icesql.storage.temporary import make_temporary_folder, spilling_to

_MOST_INLINE: Final = 256 << 10
_COPY_BYTES: Final = 8 << 20


class BroadcastTable(Struct, frozen=True):
    """A table as it is sent to every task: its rows are ``rows``, or in the files ``paths`` of the
    table that is changed, where every worker can read them.

    ``counting`` is its last column where that is not in the files: it counts their rows from 0.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    rows: bytes = b""
    paths: tuple[str, ...] = ()
    counting: str = ""

    def load(self, storage: Storage, folder: str) -> TemporaryTable:
        """The table. A file of a store is kept in ``folder`` as long as rows of it are in use."""
        if self.paths:
            data = _kept(_Place(self.paths, self.counting, storage, folder))
        else:
            data = _of_bytes(self.rows)
        names = [name for name, _, _ in self.columns]
        return TemporaryTable(self.name, self.columns, data.rename_columns(names), data.nbytes)


def broadcast(
    tables: Sequence[TemporaryTable], storage: Storage, paths: Sequence[str]
) -> tuple[BroadcastTable, ...]:
    """The tables for tasks; ``paths`` are for those that are large. Raises OperationalError."""
    return tuple(_broadcast_table(*each, storage) for each in zip(tables, paths, strict=True))


def _broadcast_table(table: TemporaryTable, path: str, storage: Storage) -> BroadcastTable:
    data: pa.Table = table.data
    if travels_inline(data):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data)
        return BroadcastTable(table.name, table.columns, rows=sink.getvalue().to_pybytes())
    write_rows(data.to_batches(), data.schema, storage, path)
    return BroadcastTable(table.name, table.columns, paths=(path,))


def travels_inline(data: pa.Table) -> bool:
    """Whether the rows are few enough to travel with each task."""
    return bool(data.nbytes <= _MOST_INLINE)


def write_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, storage: Storage, path: str
) -> None:
    """Write rows that ``read_rows`` reads. Raises OperationalError, and then there is no file."""
    with (
        NewFile(storage, path) as file,
        pa.ipc.new_file(pa.PythonFile(_Sink(file), "w"), schema) as writer,
    ):
        for each in batches:
            writer.write_batch(each)


class _Sink:
    """A new file as Arrow takes one to write to."""

    closed = False

    def __init__(self, file: NewFile) -> None:
        self.write = file.write

    def flush(self) -> None:
        """Nothing waits."""


def _of_bytes(rows: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(rows)).read_all()


def counted(data: pa.Table, name: str) -> pa.Table:
    """The rows with a last column that counts them from 0."""
    chunks, start = [], 0
    for batch in data.to_batches():
        chunks.append(pa.array(np.arange(start, start + batch.num_rows)))
        start += batch.num_rows
    return data.append_column(name, pa.chunked_array(chunks, pa.int64()))


def read_rows(paths: Sequence[str], storage: Storage, folder: str) -> pa.Table:
    """The rows of files one after the other: pages of these, or of copies in ``folder`` where they
    are in a store, and no memory of ours."""
    return pa.concat_tables([_of_file(each, storage, folder) for each in paths])


class _Place:
    """Paths and what opens them; places of the same paths are the same."""

    def __init__(
        self, paths: tuple[str, ...], counting: str, storage: Storage, folder: str
    ) -> None:
        self.paths, self.counting, self.storage, self.folder = paths, counting, storage, folder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and other.paths == self.paths

    def __hash__(self) -> int:
        return hash(self.paths)


@lru_cache(maxsize=1)
def _kept(place: _Place) -> pa.Table:
    """The rows, kept for the next task of this worker."""
    data = read_rows(place.paths, place.storage, place.folder)
    return counted(data, place.counting) if place.counting else data


def _of_file(path: str, storage: Storage, folder: str) -> pa.Table:
    local = storage.local_path(path)
    if local is not None:
        return pa.ipc.open_file(pa.memory_map(local)).read_all()
    make_temporary_folder(folder)
    with spilling_to(folder):
        handle, copy = tempfile.mkstemp(dir=folder, prefix="icesql-broadcast-")
        try:
            source: Any = storage.open(path)
            with source, os.fdopen(handle, "wb") as sink:
                shutil.copyfileobj(source, sink, _COPY_BYTES)
            # The rows stay as long as something maps them.
            return pa.ipc.open_file(pa.memory_map(copy)).read_all()
        finally:
            os.unlink(copy)
