"""Tables in memory that every task reads: small ones are sent with each task, others as a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icesql.frozen import Frozen
from icesql.query.views.temporary import TemporaryTable
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage
from icesql.storage.temporary import make_temporary_folder, spilling_to

_MOST_INLINE: Final = 256 << 10
_COPY_BYTES: Final = 8 << 20
# The rows of the last table read from files, for the next task of this worker.
_kept: dict[tuple[str, ...], pa.Table] = {}


class BroadcastTable(Frozen):
    """A table as it is sent to every task: its rows are in ``rows``, or in the files ``paths``
    beside the changed table's, where every worker can read them.

    ``counting`` names a last column that the files lack: it counts the rows from 0.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    rows: bytes = b""
    paths: tuple[str, ...] = ()
    counting: str = ""

    def load(self, storage: Storage, folder: str) -> TemporaryTable:
        """Load the table. A file of a store is copied to ``folder`` while its rows are in use."""
        if self.paths:
            data = _kept.get(self.paths)
            if data is None:
                _kept.clear()
                data = read_rows(self.paths, storage, folder)
                data = counted(data, self.counting) if self.counting else data
                _kept[self.paths] = data
        else:
            data = pa.ipc.open_file(pa.BufferReader(self.rows)).read_all()
        names = [name for name, _, _ in self.columns]
        return TemporaryTable(self.name, self.columns, data.rename_columns(names), data.nbytes)


def broadcast(table: TemporaryTable, path: str, storage: Storage) -> BroadcastTable:
    """The table for tasks; a large one is written to ``path``. Raises OperationalError."""
    data: pa.Table = table.data
    if travels_inline(data):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data)
        return BroadcastTable(table.name, table.columns, rows=sink.getvalue().to_pybytes())
    write_rows(data.to_batches(), data.schema, storage, path)
    return BroadcastTable(table.name, table.columns, paths=(path,))


def travels_inline(data: pa.Table) -> bool:
    """True if the rows are few enough to be sent with each task."""
    return bool(data.nbytes <= _MOST_INLINE)


def write_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, storage: Storage, path: str
) -> None:
    """Write rows for ``read_rows``. Raises OperationalError; then no file is left."""
    with (
        NewFile(storage, path) as file,
        pa.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer,
    ):
        for each in batches:
            writer.write_batch(each)


def counted(data: pa.Table, name: str) -> pa.Table:
    """Append a column that counts the rows from 0."""
    chunks, start = [], 0
    for batch in data.to_batches():
        chunks.append(pa.array(np.arange(start, start + batch.num_rows)))
        start += batch.num_rows
    return data.append_column(name, pa.chunked_array(chunks, pa.int64()))


def read_rows(paths: Sequence[str], storage: Storage, folder: str) -> pa.Table:
    """The rows of files one after the other. They are mapped pages of the files, or of copies in
    ``folder`` for files of a store, and use no heap memory."""
    return pa.concat_tables([_of_file(each, storage, folder) for each in paths])


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
            # Mapped pages stay valid after the file is unlinked.
            return pa.ipc.open_file(pa.memory_map(copy)).read_all()
        finally:
            os.unlink(copy)
