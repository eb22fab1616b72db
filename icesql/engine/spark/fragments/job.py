"""Run a fragment inside a Spark task: DuckDB over the files of one combined task."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.relation import registered_sql
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.composed import filled
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.task_rows import batches_of, engine_batches, folders_of, task_relation
from icesql.engine.result_schema import ResultColumn, arrow_schema, cast_batch
from icesql.engine.spark.task_memory import TaskMemory
from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.scan.tasks import CombinedScanTask, FileScanTask

if TYPE_CHECKING:
    import pyarrow as pa


@functools.cache
def _footers() -> FooterCache:
    return FooterCache()


class FragmentJob(Frozen):
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
        query, tasks = QueryContext(settings=settings), [task for _, task in self.tables]
        may_repeat = settings.local_reader != "arrow"
        rows = partial(self._run, query)
        return engine_batches(rows, folders_of(tasks), tasks, query, may_repeat=may_repeat)

    def _run(
        self, query: QueryContext, cursor: Any, streams: list[ArrowStream]
    ) -> Iterator[pa.RecordBatch]:
        facts = check_written(self.sql, cursor, [table for table, _ in self.tables])
        guard_calls(facts, cursor, query.settings)
        sources, parameters = dict[str, str](), dict[str, Any]()
        for index, (table, task) in enumerate(self.tables):
            relation = task_relation(cursor, index, task, query, streams, _footers())
            sources[table] = registered_sql(cursor, relation)
            parameters |= relation.parameters
        schema = arrow_schema(self.columns)
        for batch in batches_of(cursor, filled(self.sql, sources), parameters, query):
            yield cast_batch(batch, schema)
