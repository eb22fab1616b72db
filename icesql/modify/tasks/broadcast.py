"""Tables in memory that every task reads: a few rows travel with it, more lie in a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from icesql.query.views.temporary import TemporaryTable
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage
from icesql.storage.temporary import make_temporary_folder, spilling_to

_MOST_INLINE: Final = 256 << 10
_COPY_BYTES: Final = 8 << 20


class BroadcastTable(Struct, frozen=True):
    """A table as it is sent to every task: its rows are ``rows``, or in the file ``path`` of the
    table that is changed, where every worker can read them."""

    name: str
    columns: tuple[tuple[str, str, str], ...]
    rows: bytes = b""
    path: str = ""

    def load(self, storage: Storage, folder: str) -> TemporaryTable:
        """The table. A file of a store is kept in ``folder`` as long as rows of it are in use."""
        data = _of_file(_Place(self.path, storage, folder)) if self.path else _of_bytes(self.rows)
        return TemporaryTable(self.name, self.columns, data, data.nbytes)


def broadcast(
    tables: Sequence[TemporaryTable], storage: Storage, paths: Sequence[str]
) -> tuple[BroadcastTable, ...]:
    """The tables for tasks; ``paths`` are for those that are large. Raises OperationalError."""
    return tuple(_broadcast_table(*each, storage) for each in zip(tables, paths, strict=True))


def _broadcast_table(table: TemporaryTable, path: str, storage: Storage) -> BroadcastTable:
    data: pa.Table = table.data
    if data.nbytes <= _MOST_INLINE:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data)
        return BroadcastTable(table.name, table.columns, rows=sink.getvalue().to_pybytes())
    with (
        NewFile(storage, path) as file,
        pa.ipc.new_file(pa.PythonFile(_Sink(file), "w"), data.schema) as writer,
    ):
        writer.write_table(data)
    return BroadcastTable(table.name, table.columns, path=path)


class _Sink:
    """A new file as Arrow takes one to write to."""

    closed = False

    def __init__(self, file: NewFile) -> None:
        self.write = file.write

    def flush(self) -> None:
        """Nothing waits."""


def _of_bytes(rows: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(rows)).read_all()


class _Place:
    """A path and what opens it; places of one path are the same."""

    def __init__(self, path: str, storage: Storage, folder: str) -> None:
        self.path, self.storage, self.folder = path, storage, folder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


@lru_cache(maxsize=1)
def _of_file(place: _Place) -> pa.Table:
    """Kept for the next task of this worker; its rows are pages of a file, no memory of ours."""
    local = place.storage.local_path(place.path)
    if local is not None:
        return pa.ipc.open_file(pa.memory_map(local)).read_all()
    make_temporary_folder(place.folder)
    with spilling_to(place.folder):
        handle, copy = tempfile.mkstemp(dir=place.folder, prefix="icesql-broadcast-")
        try:
            source: Any = place.storage.open(place.path)
            with source, os.fdopen(handle, "wb") as sink:
                shutil.copyfileobj(source, sink, _COPY_BYTES)
            # The rows stay as long as something maps them.
            return pa.ipc.open_file(pa.memory_map(copy)).read_all()
        finally:
            os.unlink(copy)
