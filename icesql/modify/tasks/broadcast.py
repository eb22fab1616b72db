"""Rows that every task reads: tables in memory, and the rows of a query written by its tasks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.query.views.temporary import TemporaryTable
from icesql.storage.new_files import NewFile
from icesql.storage.open import Storage
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.work.run import files_of_tasks
from icesql.write.options import DataLocations, data_locations
from icesql.write.written import Written, encode_written, reported, types_of

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.engine.engines import RowsResult
    from icesql.engine.result import Result


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


# ------------------------------------------------------------------ rows of a query
# The query runs once, and no row is sent to the driver: it maps the files as the tasks do.


class StageJob(Frozen):
    """Writes the rows of one part of a result to a file in the table's data location."""

    storage: Storage
    locations: DataLocations
    operation: str

    def __call__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """Write the file, unless there are no rows. See ``engine.engines.RowsJob``."""
        rows = (each for each in batches if each.num_rows)
        first = next(rows, None)
        if first is None:
            return encode_written(Written())
        number, attempt = numbers
        path = self.locations.path(f"rows-{self.operation}-{number:010d}-{attempt}.arrow")

        def all_rows() -> Iterator[pa.RecordBatch]:
            yield first
            for each in rows:
                query.check()
                yield each

        write_rows(all_rows(), schema, self.storage, path)
        return encode_written(Written(apart=(path,)))


def stage(result: Result, table: Table) -> tuple[str, ...] | None:
    """Write all rows of a result to files in the data location of ``table``; return their paths.

    Paths are in the order of the result's parts. None if the rows come to this process; then
    nothing was read. Raises what the query and writing raise; then no file is left.
    """
    if not hasattr(result, "run_over_rows"):
        return None
    metadata, storage = table.metadata, table.storage
    types = types_of(metadata)
    with files_of_tasks(metadata, storage) as new:
        written = cast("RowsResult", result).run_over_rows(
            StageJob(storage, data_locations(metadata), new.mark),
            lambda described: Written.of(reported(described, types, new)),
        )
        if written is None:
            return None
        new.hand_over(written.apart)
    # File names have a common prefix, then the number of the part.
    return tuple(sorted(written.apart, key=lambda each: each.rpartition("/")[2]))
