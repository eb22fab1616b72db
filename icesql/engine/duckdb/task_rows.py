"""Rows of tasks as Arrow batches: DuckDB reads live rows where it does so exactly, and sorts."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.described import register, used_parameters, with_relations
from icesql.engine.duckdb.errors import is_fatal, name_bad_file, names_of, translate
from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.grouping import ARROW, FileGroup, group_files
from icesql.engine.duckdb.relations.relation import Relation, registered_sql, union_all
from icesql.engine.duckdb.relations.relation_builder import RelationBuilder
from icesql.engine.duckdb_types import engine_arrow_type
from icesql.engine.result_schema import cast_batch
from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.quoting import quoted
from icesql.scan.tasks import CombinedScanTask, FileScanTask, ScanContext, distinct_deletes

if TYPE_CHECKING:
    import pyarrow as pa


# ------------------------------------------------------------------ the relation of a task
# Splits are ranges of rows; the rest is as in a scan.


def task_relation(
    cursor: Any,
    index: int,
    task: CombinedScanTask,
    query: QueryContext,
    streams: list[ArrowStream],
    footers: FooterCache,
) -> Relation:
    """The live rows of a task of local files; ``index`` distinguishes several relations."""
    context = task.context
    builder = RelationBuilder(cursor, footers, query, streams)
    relations: list[Relation] = []
    rest: list[FileGroup] = []
    for group in builder.confirm(context, group_files(task.tasks, context, query.settings)):
        whole = tuple(each for each in group.tasks if each.is_whole_file)
        parts = tuple(each for each in group.tasks if not each.is_whole_file)
        if group.name == grouping.DUCKDB:
            for number, part in enumerate(parts):
                first, end = _row_range(part, context)
                relations.append(builder.rows(context, part, f"p{index}_{number}", first, end))
        elif parts:
            # A split of a file with deletes: only ``read/`` knows its row numbers.
            rest.append(FileGroup(grouping.ARROW, parts, "a split with deletes"))
        if whole:
            rest.append(FileGroup(group.name, whole, group.reason))
    if rest or not relations:
        relations.append(builder.relation(index, context, rest))
    return union_all(relations)


def _row_range(task: FileScanTask, context: ScanContext) -> tuple[int, int]:
    """The first row and the end of a split: the row groups whose midpoint is in its byte range."""
    import pyarrow.parquet as pq

    from icesql.read.formats.parquet import RowGroups
    from icesql.read.task import byte_range

    path = context.storage.location(task.data_file.path)
    metadata = pq.read_metadata(path)
    groups = RowGroups(metadata, (), context.schema)
    start, stop = byte_range(task)
    rows = first = last = 0
    found = False
    for number, count in enumerate(groups.row_counts):
        if start <= groups.midpoint(number) < stop:
            first, last, found = (first if found else rows), rows + count, True
        rows += count
    return first, last


# ------------------------------------------------------------------ rows of a task


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


# ------------------------------------------------------------------ sorted rows
# DuckDB sorts in bounded memory, and spills.


class KeyOrder(Frozen):
    """The direction of one key column."""

    descending: bool = False
    nulls_first: bool = False


def sorted_batches(
    batches: Iterable[tuple[pa.RecordBatch, Sequence[pa.Array]]],
    schema: pa.Schema,
    key_types: Sequence[pa.DataType],
    orders: Sequence[KeyOrder],
    query: QueryContext,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``batches`` (of ``schema``, each with its keys), ordered by the keys.

    Columns that DuckDB would change are converted before sorting and converted back after. Raises
    UnsupportedTableError for a nested column that cannot be converted.
    """
    import pyarrow as pa

    carried = pa.schema(
        [pa.field(f"c{n}", _carried(each.type, each.name)) for n, each in enumerate(schema)]
    )
    key_fields = [pa.field(f"k{n}", kind) for n, kind in enumerate(key_types)]
    stream_schema = pa.schema([*carried, *key_fields])

    def opened() -> Iterator[pa.RecordBatch]:
        for batch, keys in batches:
            columns = cast_batch(batch, carried).columns
            yield pa.RecordBatch.from_arrays([*columns, *keys], schema=stream_schema)

    def rows(cursor: Any, streams: list[ArrowStream]) -> Iterator[pa.RecordBatch]:
        stream = ArrowStream(stream_schema, opened)
        streams.append(stream)
        register(cursor, "__rows", stream)
        columns = ", ".join(quoted(f"c{n}") for n in range(len(carried)))
        keys = ", ".join(
            f"{quoted(f'k{n}')} {'DESC' if each.descending else 'ASC'} "
            f"NULLS {'FIRST' if each.nulls_first else 'LAST'}"
            for n, each in enumerate(orders)
        )
        return batches_of(cursor, f'SELECT {columns} FROM "__rows" ORDER BY {keys}', {}, query)

    for batch in engine_batches(rows, set(), (), query):
        columns = [
            _back(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield cast_batch(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)


def _carried(kind: pa.DataType, name: str) -> pa.DataType:
    """The type of a column for sorting: DuckDB has no nanoseconds with a zone, and no FIXED."""
    import pyarrow as pa

    if _has_zoned_nanos(kind):
        if pa.types.is_nested(kind):
            raise UnsupportedTableError(f"sorting rows with column {name} of type {kind}")
        return pa.int64()
    if kind == pa.uuid() or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return engine_arrow_type(kind)


def _has_zoned_nanos(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_has_zoned_nanos(kind.field(n).type) for n in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "ns")


def _back(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A sorted column in a type that ``cast_batch`` casts to its own."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, column.cast(pa.binary(16)))
    return column
