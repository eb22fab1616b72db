"""The rows of the source: read once, as a second run could return others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from icesql.engine.duckdb_types import duckdb_type
from icesql.engine.result import keep_rows
from icesql.engine.result_schema import arrow_schema
from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.modify.column_types import result_fields
from icesql.modify.rows.new_files import as_positions
from icesql.modify.tasks.broadcast import BroadcastTable, counted, read_rows, stage, travels_inline
from icesql.query.views.temporary import TemporaryTable
from icesql.storage.new_files import Uncommitted
from icesql.storage.temporary import make_temporary_folder, spilling_to

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.engine.result import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.storage.open import Storage

# How much of the source stays in memory; the rest is spilled to disk in Arrow's format.
_MOST_BYTES: Final = 256 << 20


class SourceRows(Frozen):
    """All rows of the source, with the names and types of its columns.

    ``row`` is a column that counts the rows from 0. The join carries only this number and the
    columns that conditions use; other values of the rows to write are taken from here.
    ``staged`` are files of the rows that Spark's tasks have written.
    """

    table: TemporaryTable
    columns: tuple[ResultColumn, ...]
    row: str
    staged: tuple[str, ...] = ()

    @property
    def sent(self) -> BroadcastTable | None:
        """The broadcast of this table to tasks; None if it is only on this machine, or is small."""
        if not self.staged or travels_inline(self.table.data):
            return None
        return BroadcastTable(
            self.table.name, self.table.columns, paths=self.staged, counting=self.row
        )

    @property
    def names(self) -> list[str]:
        """The names of the source's columns."""
        return [name for name, _, _ in self.table.columns[: len(self.columns)]]

    def values(self, index: int) -> pa.ChunkedArray:
        """The column at this index."""
        return self.table.data.column(index)

    def taken(self, name: str, rows: pa.Array) -> pa.Array:
        """The values of a column in these rows."""
        return self.values(self.names.index(name)).take(rows).combine_chunks()

    def parts(self, gone: BitMap64, tasks: int) -> list[SourcePart]:
        """The rows that are not in ``gone``, in at most ``tasks`` parts of about equal size."""
        from pyroaring import BitMap64

        left, name = BitMap64(range(self.table.data.num_rows)) - gone, self.table.name
        ends = [len(left) * number // tasks for number in range(tasks + 1)]
        parts = (
            left & BitMap64(range(left[first], left[end - 1] + 1))
            for first, end in pairwise(ends)
            if first < end
        )
        return [SourcePart(name, each.serialize()) for each in parts]


class SourcePart(Frozen):
    """Some rows of the source, by a serialized bitmap; in the part they are numbered from 0."""

    name: str
    rows: bytes

    def of(self, tables: Sequence[TemporaryTable]) -> tuple[TemporaryTable, ...]:
        """The tables, with that one reduced to these rows."""
        return tuple(self._of(each) if each.name == self.name else each for each in tables)

    def _of(self, table: TemporaryTable) -> TemporaryTable:
        from pyroaring import BitMap64

        rows = as_positions(BitMap64.deserialize(self.rows))
        data = table.data.slice(rows[0], rows[-1] - rows[0] + 1)
        if len(rows) < data.num_rows:
            kept = np.zeros(data.num_rows, np.bool_)
            kept[rows - rows[0]] = True
            data = data.filter(pa.array(kept))
        last = data.num_columns - 1
        data = counted(data.remove_column(last), data.schema.names[last])
        return replace(table, data=data, size=data.nbytes)


def read_source(
    result: Result, name: str, query: QueryContext, target: Table, new: Uncommitted
) -> SourceRows:
    """Read the rows of a query, to be merged into ``target``, and close it.

    ``new`` gets the row files that tasks have written. Raises OperationalError and what reading
    raises.
    """
    staged = stage(result, target)
    new.take(staged or ())
    columns = result.columns
    rows: Any = _Spilled(result, query)
    if staged is not None:
        rows = _Staged(columns, staged, target.storage, query.settings.temp_directory)
    described, data = keep_rows(rows, (), lambda size: None)
    described = tuple(
        (name, type_name, kind or _engine_type(column))
        for (name, type_name, kind), column in zip(described, columns, strict=True)
    )
    row = "__row"
    while row in {each.lower() for each, _, _ in described}:
        row += "_"
    data = counted(data, row)
    table = TemporaryTable(name, (*described, (row, "bigint", "BIGINT")), data, data.nbytes)
    return SourceRows(table, tuple(columns), row, staged or ())


class _Staged(Frozen):
    """A result whose rows are in staged files."""

    columns: tuple[ResultColumn, ...]
    paths: Sequence[str]
    storage: Storage
    folder: str

    def close(self) -> None:
        """Nothing runs any more."""

    def arrow_reader(self) -> Any:
        data = pa.Table.from_batches([], arrow_schema(self.columns))
        if self.paths:
            data = read_rows(self.paths, self.storage, self.folder)
        return data.to_reader()


def _engine_type(column: ResultColumn) -> str:
    """The local engine's type for a column of another engine; "" if it has none."""
    try:
        (field,) = result_fields((column,))
    except UnsupportedSqlError:
        return ""
    return duckdb_type(field.type)


class _Spilled:
    """A result whose batches are moved to a memory-mapped file once they exceed a size."""

    def __init__(self, result: Result, query: QueryContext) -> None:
        self._result, self._query = result, query
        self.columns = result.columns
        self.engine_types = getattr(result, "engine_types", ())

    def close(self) -> None:
        self._result.close()

    def arrow_reader(self) -> Any:
        reader = self._result.arrow_reader()
        most = min(_MOST_BYTES, self._query.settings.memory_limit // 8)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader, most))

    def _batches(self, reader: pa.RecordBatchReader, most: int) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in reader:
            self._query.check()
            size += batch.nbytes
            if size > most:
                yield from self._on_disk(batch, reader)
                return
            yield batch

    def _on_disk(
        self, first: pa.RecordBatch, reader: pa.RecordBatchReader
    ) -> Iterator[pa.RecordBatch]:
        folder = self._query.settings.temp_directory
        make_temporary_folder(folder)
        with spilling_to(folder):
            handle, path = tempfile.mkstemp(dir=folder, prefix="icesql-merge-")
            os.close(handle)
            try:
                with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, reader.schema) as writer:
                    writer.write_batch(first)
                    for batch in reader:
                        self._query.check()
                        writer.write_batch(batch)
                # Mapped pages stay valid after the file is unlinked.
                mapped = pa.ipc.open_file(pa.memory_map(path))
            finally:
                os.unlink(path)
            for index in range(mapped.num_record_batches):
                yield mapped.get_batch(index)
