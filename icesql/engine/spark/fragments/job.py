"""Run a fragment inside a Spark task: DuckDB over the files of one combined task."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.bad_file import name_bad_file
from icesql.engine.duckdb.described import register, used_parameters, with_relations
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.sql.splice import filled
from icesql.engine.duckdb.tasks.task_relation import task_relation
from icesql.engine.result_schema import ResultColumn, arrow_schema, cast_batch
from icesql.engine.spark.task_memory import TaskMemory
from icesql.errors import Error
from icesql.scan.tasks.task import CombinedScanTask, FileScanTask

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 65_536


@functools.cache
def _instances() -> InstancePool:
    """The pool whose DuckDB instance is kept for the next task of this worker process."""
    return InstancePool()


@functools.cache
def _footers() -> FooterCache:
    return FooterCache()


class FragmentJob(Struct, frozen=True):
    """``sql`` over the rows of ``tables``, in the session zone ``timezone``.

    ``tables`` maps names in it to their tasks; the first is the table whose files differ between
    Spark tasks. ``columns`` are those of the result. ``memory`` is that of its Spark task.
    """

    sql: str
    tables: tuple[tuple[str, CombinedScanTask], ...]
    timezone: str
    columns: tuple[ResultColumn, ...]
    memory: TaskMemory = TaskMemory()

    def over(self, files: tuple[FileScanTask, ...]) -> FragmentJob:
        """The same job with other files of the first table."""
        (name, task), *whole = self.tables
        return replace(self, tables=((name, replace(task, tasks=files)), *whole))

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The rows of the fragment. Raises icesql errors.

        If DuckDB's reader fails, for example on an unknown encoding, ``read/`` reads the files.
        """
        settings = replace(
            Settings(),
            timezone=self.timezone,
            threads=1,
            memory_limit=self.memory.limit(),
        )
        has_rows = False
        try:
            for batch in self._rows(settings):
                has_rows = True
                yield batch
        except Error as error:
            if has_rows or not error.while_reading:
                raise
            yield from self._rows(replace(settings, local_reader="arrow"))

    def _rows(self, settings: Settings) -> Iterator[pa.RecordBatch]:
        import duckdb

        query = QueryContext(settings=settings)
        folders = {
            os.path.dirname(path)
            for _, task in self.tables
            for file in task.tasks
            for each in (file.data_file, *file.deletes)
            if (path := task.context.storage.local_path(each.path)) is not None
        }
        instance, cursor = _instances().cursor(folders, settings)
        streams: list[ArrowStream] = []
        try:
            yield from self._run(cursor, query, streams)
        except (duckdb.Error, UnicodeDecodeError, OSError) as error:
            for stream in streams:
                if stream.error is not None:
                    raise stream.error from None
            names = [
                file.data_file.path.rsplit("/", 1)[-1]
                for _, task in self.tables
                for file in task.tasks
            ]
            found = translate(error, names)
            if settings.local_reader == "arrow" or not found.while_reading:
                # DuckDB's error does not always name the corrupt file.
                name_bad_file(found, [task for _, task in self.tables], query)
            raise found from error
        finally:
            for stream in streams:
                stream.stop()
            instance.release(cursor)

    def _run(
        self, cursor: Any, query: QueryContext, streams: list[ArrowStream]
    ) -> Iterator[pa.RecordBatch]:
        facts = check_written(self.sql, cursor, [table for table, _ in self.tables])
        guard_calls(facts, cursor, query.settings)
        sources, parameters = dict[str, str](), dict[str, Any]()
        for index, (table, task) in enumerate(self.tables):
            relation = task_relation(cursor, index, task, query, streams, _footers())
            for name, source in relation.registered.items():
                register(cursor, name, source)
            sources[table] = relation.sql
            parameters |= relation.parameters
        sql = filled(self.sql, sources)
        schema = arrow_schema(self.columns)
        with_relations()
        used = used_parameters(sql, parameters)
        with cursor.sql(sql, params=used).to_arrow_reader(_BATCH_ROWS) as reader:
            for batch in reader:
                yield cast_batch(batch, schema)
