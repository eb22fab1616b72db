"""The work of one task: run the statement's query over some files, and write the new files."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.modify.rows.new_files import FileNames, GoneRows, RowFiles
from icesql.modify.tasks.broadcast import BroadcastTable
from icesql.query.bound import BoundQuery
from icesql.query.views.temporary import TemporaryTable
from icesql.scan.plan import ScanPlan, refuse_repeated
from icesql.scan.tasks import FileScanTask, ScanContext
from icesql.storage.open import Storage
from icesql.write.written import Written, encode_written

if TYPE_CHECKING:
    from icesql.engine.duckdb.engine import LocalEngine
    from icesql.modify.merge.changes import MergedRows
    from icesql.modify.merge.source import SourcePart
    from icesql.modify.rows.delete_update import DeletedRows, UpdatedRows

    # How a statement turns the rows of its query into changes. Picklable; ``once``: deleting a row
    # twice is an error; ``begin`` gets the schema of the rows, the tables in memory that the query
    # reads, and what finds the files of the rows.
    QueryRows: TypeAlias = DeletedRows | UpdatedRows | MergedRows


class ChangeWork(Frozen):
    """The shared part of a statement's tasks: writes the changes by ``rows``."""

    metadata: TableMetadata
    storage: Storage
    context: ScanContext
    settings: Settings
    now: datetime
    rows: QueryRows
    by_deletes: bool
    repeated: str

    def context_of(self, worker: QueryContext) -> QueryContext:
        """The statement's context for a task; memory is limited by the worker's."""
        most = min(self.settings.memory_limit, worker.settings.memory_limit)
        settings = replace(self.settings, threads=1, memory_limit=most)
        return QueryContext(settings=settings, now=self.now)

    def write(
        self,
        found: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        files: Sequence[FileScanTask],
        names: FileNames,
        query: QueryContext,
        tables: Sequence[TemporaryTable] = (),
    ) -> Written:
        """Change the rows ``found`` in these files, given with all deletes; notes are matches.

        Raises what writing raises; then no file is left.
        """

        def files_of(projection: Schema, paths: set[str]) -> tuple[list[FileScanTask], ScanContext]:
            wanted = [each for each in files if each.data_file.path in paths]
            refuse_repeated(wanted, self.context.table)
            return wanted, replace(self.context, projection=projection)

        rows = self.rows.begin(schema, tables, files_of, query)
        writing = RowFiles(
            self.metadata,
            self.storage,
            files_of,
            GoneRows(self.rows.once, self.repeated),
            rows.new,
            names,
            query,
        )
        changed = writing.write(rows.batches(found), by_deletes=self.by_deletes)
        return replace(changed, notes=(rows.matches(),))


class SharedWork(Frozen):
    """The shared part of a statement's query tasks. ``tables`` are those in memory."""

    bound: BoundQuery
    tables: tuple[BroadcastTable, ...]
    change: ChangeWork


class ChangeTask(Frozen):
    """One task, which changes rows of ``files``; these have all their deletes.

    ``plans`` are the query's plans: of the changed table these files, of others all. ``part`` is
    the part of a table in memory to read, None for the whole of each.
    """

    shared: SharedWork
    plans: tuple[ScanPlan, ...]
    files: tuple[FileScanTask, ...]
    names: FileNames
    part: SourcePart | None

    @property
    def number(self) -> int:
        """See ``work.run.Task``."""
        return self.names.number

    def run(self, query: QueryContext, attempt: int) -> Written:
        """See ``work.run.Task``. Also raises the query's errors."""
        shared, change = self.shared, self.shared.change
        own = change.context_of(query)
        folder = own.settings.temp_directory
        tables = tuple(each.load(change.storage, folder) for each in shared.tables)
        if self.part is not None:
            tables = self.part.of(tables)
        bound = replace(shared.bound, temporary=tables)
        with closing(_engine().execute(bound, self.plans, own)) as result:
            reader = result.arrow_reader()
            names = replace(self.names, attempt=attempt)
            return change.write(reader, reader.schema, self.files, names, own, tables)


class FoundRowsJob(Frozen):
    """Changes rows that Spark found; all rows of a file are in one task. See ``RowsJob``."""

    change: ChangeWork
    files: tuple[FileScanTask, ...]
    names: FileNames

    def __call__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """See ``engine.engines.RowsJob``, ``ChangeWork``."""
        number, attempt = numbers
        names = replace(self.names, number=number, attempt=attempt)
        own = self.change.context_of(query)
        return encode_written(self.change.write(batches, schema, self.files, names, own))


@functools.cache
def _engine() -> LocalEngine:
    """The engine, kept for the next task of this worker process."""
    from icesql.engine.duckdb.engine import LocalEngine

    return LocalEngine()
