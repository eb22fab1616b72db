"""The work of one task: the statement's query over the rows of some files, and their new files."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.modify.rows.changes import GoneRows, NewRows, RowBatch
from icesql.modify.rows.new_files import FileNames, RowFiles
from icesql.modify.tasks.broadcast import BroadcastTable
from icesql.modify.tasks.task_result import encode_changed
from icesql.query.bound import BoundQuery
from icesql.query.views.temporary import TemporaryTable
from icesql.scan.plan import ScanPlan
from icesql.scan.repeated_files import refuse_repeated
from icesql.scan.tasks.task import FileScanTask, ScanContext
from icesql.storage.open import Storage

if TYPE_CHECKING:
    from icesql.engine.duckdb.engine import LocalEngine
    from icesql.modify.rows.stored_variants import FileOf


class OpenRows(Protocol):
    """What the rows of one query do, while they are read."""

    @property
    def new(self) -> NewRows | None:
        """What rows come as, None where none come."""

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        """The rows that go and come."""

    def matches(self) -> bytes:
        """The rows of a MERGE's source that matched, serialized; empty for other statements."""


class QueryRows(Protocol):
    """How a statement takes the rows of its query; picklable."""

    @property
    def once(self) -> bool:
        """Whether a row that goes twice is an error."""

    def begin(
        self,
        schema: pa.Schema,
        tables: Sequence[TemporaryTable],
        file_of: FileOf,
        query: QueryContext,
    ) -> OpenRows:
        """For rows of this schema; ``tables`` are those in memory that the query reads, and
        ``file_of`` finds the files of the rows."""


class TablePart(Protocol):
    """Some rows of a table in memory; picklable."""

    def of(self, tables: Sequence[TemporaryTable]) -> tuple[TemporaryTable, ...]:
        """The tables, that one with these rows alone."""


class SharedWork(Struct, frozen=True):
    """What all tasks of a statement share. ``tables`` are those in memory."""

    bound: BoundQuery
    metadata: TableMetadata
    storage: Storage
    context: ScanContext
    settings: Settings
    now: datetime
    rows: QueryRows
    tables: tuple[BroadcastTable, ...]
    by_deletes: bool
    repeated: str


class ChangeJob(Struct, frozen=True):
    """``files`` with all their deletes are those of the table that are changed here.

    ``plans`` say what the query reads: of that table these files, of others all. ``part`` is what
    it reads of a table in memory, None for all of each.
    """

    shared: SharedWork
    plans: tuple[ScanPlan, ...]
    files: tuple[FileScanTask, ...]
    names: FileNames
    part: TablePart | None = None

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        """What was done, encoded by ``task_result``. Raises what the query and writing raise, and
        then no file is left."""
        shared = self.shared
        most = min(shared.settings.memory_limit, query.settings.memory_limit)
        settings = replace(shared.settings, threads=1, memory_limit=most)
        own = QueryContext(settings=settings, now=shared.now)
        folder = settings.temp_directory
        tables = tuple(each.load(shared.storage, folder) for each in shared.tables)
        if self.part is not None:
            tables = self.part.of(tables)
        result = _engine().execute(replace(shared.bound, temporary=tables), self.plans, own)
        try:
            reader = result.arrow_reader()
            rows = shared.rows.begin(reader.schema, tables, self._file_of, own)
            files = RowFiles(
                shared.metadata,
                shared.storage,
                self._files_of,
                gone=GoneRows(once=shared.rows.once, repeated=shared.repeated),
                new=rows.new,
                zone=str(settings.timezone),
                names=replace(self.names, attempt=attempt),
                query=own,
            )
            changed = files.write(rows.batches(reader), by_deletes=shared.by_deletes)
        finally:
            result.close()
        return encode_changed(changed, rows.matches())

    def _files_of(
        self, projection: Schema, paths: set[str]
    ) -> tuple[list[FileScanTask], ScanContext]:
        found = [each for each in self.files if each.data_file.path in paths]
        refuse_repeated(found, self.shared.context.table)
        return found, replace(self.shared.context, projection=projection)

    def _file_of(self, projection: Schema, path: str) -> tuple[FileScanTask, ScanContext]:
        (task,), context = self._files_of(projection, {path})
        return task, context


@functools.cache
def _engine() -> LocalEngine:
    """DuckDB is kept for the next task of this worker process."""
    from icesql.engine.duckdb.engine import LocalEngine

    return LocalEngine()
