"""The live rows of a combined task as Arrow batches, read by DuckDB where it reads them exactly."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.bad_file import name_bad_file, names_of
from icesql.engine.duckdb.described import used_parameters, with_relations
from icesql.engine.duckdb.errors import is_fatal, translate
from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.grouping import ARROW, group_files
from icesql.engine.duckdb.relations.relation import registered_sql
from icesql.engine.duckdb.tasks.task_relation import task_relation
from icesql.scan.tasks.task import CombinedScanTask, distinct_deletes

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 65_536
_STEP_SECONDS: Final = 0.1
# Checking this many footers takes about as long as encoding the rows of the part before. The first
# part has none before it, so parts start small and double in size.
_FIRST_FILES, _PART_FILES = 32, 256
# A task is read in parts if it has this many times the bytes of its deletes.
_PART_DELETES: Final = 50


_lock: Final = threading.Lock()
_users = 0


@functools.cache
def _instances() -> InstancePool:
    """The pool whose DuckDB instance is kept for the next task of this process."""
    return InstancePool()


@contextmanager
def one_engine() -> Iterator[None]:
    """Let tasks share an instance; after the last one it ends and deletes its spilled files."""
    global _users
    with _lock:
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _instances().close()
                _instances.cache_clear()


def task_rows(task: CombinedScanTask, query: QueryContext) -> Iterator[pa.RecordBatch]:
    """The live rows of a task of local files, in the ``arrow_schema`` of its projection.

    Raises icesql errors, those of files naming the file.
    """
    from icesql.engine.result_schema import cast_batch
    from icesql.read.columns.arrow_schema import arrow_schema

    wanted = arrow_schema(task.context.projection)
    folders, footers = folders_of((task,)), FooterCache()
    for part in _parts(task):

        def rows(
            cursor: Any, streams: list[ArrowStream], part: CombinedScanTask = part
        ) -> Iterator[pa.RecordBatch]:
            found = task_relation(cursor, 0, part, query, streams, footers)
            return batches_of(cursor, registered_sql(cursor, found), found.parameters, query)

        for batch in engine_batches(rows, folders, (part,), query):
            yield cast_batch(batch, wanted)


def _parts(task: CombinedScanTask) -> Iterator[CombinedScanTask]:
    """The task in parts, so that the consumer of one part's rows works while the next is opened.

    The footers of a part are checked before its first row is returned. Each part loads the deletes
    again, so a task with many deletes stays whole.
    """
    size = sum(each.length for each in task.tasks)
    deletes = sum(
        each.content_size_in_bytes or each.file_size_in_bytes
        for each in distinct_deletes(task.tasks)
    )
    start, count = 0, len(task.tasks)
    step = _FIRST_FILES if deletes * _PART_DELETES <= size else count
    while start < count:
        yield CombinedScanTask(task.tasks[start : start + step], task.context)
        start += step
        step = min(2 * step, _PART_FILES)


def reads_exactly(task: CombinedScanTask, query: QueryContext) -> bool:
    """True if, according to metadata, DuckDB reads all files of a task itself."""
    groups = group_files(task.tasks, task.context, query.settings)
    return all(each.name != ARROW for each in groups)


def folders_of(tasks: Sequence[CombinedScanTask]) -> set[str]:
    """The folders of the local files of tasks."""
    return {
        os.path.dirname(path)
        for task in tasks
        for each in (*(file.data_file for file in task.tasks), *distinct_deletes(task.tasks))
        if (path := task.context.storage.local_path(each.path)) is not None
    }


def batches_of(
    cursor: Any, sql: str, parameters: Mapping[str, Any], query: QueryContext
) -> Iterator[pa.RecordBatch]:
    """The rows of a query."""
    with_relations()
    used = used_parameters(sql, parameters)
    with cursor.sql(sql, params=used).to_arrow_reader(_BATCH_ROWS) as reader:
        for batch in reader:
            query.check()
            yield batch


def engine_batches(
    rows: Callable[[Any, list[ArrowStream]], Iterator[pa.RecordBatch]],
    folders: set[str],
    tasks: Sequence[CombinedScanTask],
    query: QueryContext,
    *,
    may_repeat: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows that ``rows`` reads of ``tasks`` with a cursor; it lists its streams.

    With ``may_repeat``, the caller reads the files again if DuckDB cannot.
    """
    import duckdb

    instance, cursor = _instances().cursor(folders, query.settings)
    streams: list[ArrowStream] = []
    try:
        with _interrupted(cursor, query):
            yield from rows(cursor, streams)
    except (duckdb.Error, UnicodeDecodeError, OSError) as error:
        query.check()
        for stream in streams:
            if stream.error is not None:
                raise stream.error from None
        if is_fatal(error):
            _instances().discard(instance)
        found = translate(error, names_of(file for each in tasks for file in each.tasks))
        if not may_repeat:
            # DuckDB's error does not always name the corrupt file.
            name_bad_file(found, tasks, query)
        raise found from error
    finally:
        for stream in streams:
            stream.stop()
        instance.release(cursor)


@contextmanager
def _interrupted(cursor: Any, query: QueryContext) -> Iterator[None]:
    """Interrupt the cursor if the statement is cancelled: one batch may take long."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_STEP_SECONDS):
            if query.cancel.is_set():
                cursor.interrupt()

    threading.Thread(target=watch, name="icesql-watch", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
