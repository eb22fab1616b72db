"""The local engine: DuckDB evaluates the query tree over Parquet files and Arrow streams."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakSet

from icesql.config import time_zone
from icesql.context import QueryContext
from icesql.engine.chunk_sizes import MOST_ROWS, ChunkSize, batch_rows
from icesql.engine.duckdb.allowed_folders import folders_read
from icesql.engine.duckdb.bad_file import ask_named_file, is_reading_problem, name_bad_file
from icesql.engine.duckdb.copying.statement import columns_to_write, copy_statement
from icesql.engine.duckdb.copying.stream import copy_stream
from icesql.engine.duckdb.described import Described, describe_once, with_relations
from icesql.engine.duckdb.errors import is_fatal, translate
from icesql.engine.duckdb.instance import Instance, InstancePool
from icesql.engine.duckdb.open_query import OpenQuery
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.grouping import FileGroup, group_files
from icesql.engine.duckdb.relations.opened_files import OpenedFiles
from icesql.engine.duckdb.relations.relation import file_relation, register_tables
from icesql.engine.duckdb.relations.relation_builder import RelationBuilder
from icesql.engine.duckdb.same_reading import EngineReading
from icesql.engine.duckdb.sql.bind_sql import bind_sql
from icesql.engine.duckdb.sql.own_words import KeptTexts
from icesql.engine.memory_watch import MemoryWatch
from icesql.engine.query_thread import Worker
from icesql.engine.result_reader import Reading
from icesql.engine.result_rows import (
    Converter,
    may_be_infinite,
    needs_arrow_rows,
    python_values,
    row_converter,
    row_expression,
)
from icesql.engine.result_schema import (
    ResultColumn,
    arrow_schema,
    cast_batch,
    declare,
    declared_expression,
)
from icesql.engine.struct_names import true_name
from icesql.errors import Error

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from icesql.engine.duckdb.sql.composed import Composed
    from icesql.engine.protocol import Sink
    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks.task import CombinedScanTask

_CLOSE_SECONDS: Final = 1.0


class LocalEngine:
    """Runs bound queries on this machine; one for each icesql connection, safe for threads."""

    def __init__(self) -> None:
        self._pool = InstancePool()
        self._footers = FooterCache()
        self._open: WeakSet[LocalResult] = WeakSet()
        self._reading = EngineReading(self._pool)
        self._texts = KeptTexts()

    def mark_same(self, tree: exp.Expr, text: str, start: int, query: QueryContext) -> None:
        """Mark in ``tree`` what DuckDB's parser reads the same in ``text``.

        ``start`` is the offset at which the places of the tree find the text.
        """
        self._reading.mark(tree, text, start, query)

    def ask(
        self, sql: str, parameters: Sequence[Any], query: QueryContext
    ) -> list[tuple[Any, ...]] | None:
        """The rows of a query without tables, for planning; None where the engine raises.

        ``sql`` is made by ``query.pushdown.computed`` alone, of functions that it knows.
        """
        return self._reading.ask(sql, parameters, query)

    def execute(
        self, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext
    ) -> LocalResult:
        """Bind a query and return its result; nothing is read but footers and small scans."""
        result = LocalResult(bound, plans, query, self._pool, self._footers, self._texts)
        self._open.add(result)
        return result

    def write(
        self,
        reader: pa.RecordBatchReader,
        columns: Sequence[ResultColumn],
        form: FileFormat,
        sink: Sink,
        query: QueryContext,
    ) -> int:
        """Write the Arrow batches of another engine's result; see ``copy_stream``."""
        return copy_stream(self._pool, reader, columns, form, sink, query)

    def close(self) -> None:
        """End every open result and the DuckDB instance."""
        for result in list(self._open):
            result.close()
        self._pool.close()


class LocalResult:
    """One query on one DuckDB cursor in one worker thread. See ``protocol.Result``.

    The thread and what DuckDB holds end with the last row, an error, ``close`` or the collection.
    """

    def __init__(
        self,
        bound: BoundQuery,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        pool: InstancePool,
        footers: FooterCache,
        texts: KeptTexts,
    ) -> None:
        self._bound, self._plans, self._query = bound, tuple(plans), query
        self._pool, self._footers, self._texts = pool, footers, texts
        self._zone = time_zone(query.settings.timezone)
        self._open = OpenQuery()
        self._instance: Instance | None = None
        self._sql, self._given, self._parameters = "", "", dict[str, Any]()
        self._composed: Composed | None = None
        self.engine_types: list[Any] = []
        self.groups: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.columns: tuple[ResultColumn, ...] = ()
        self._watch = watch = MemoryWatch(query.settings.memory_limit, id(pool))
        self._worker = Worker(self._open.interrupt, self._open.release, watch)
        self._reading = Reading(
            lambda: watch.over(self._chunks()), lambda: watch.over(self._batches()), self._finish
        )
        try:
            self._start(arrow_only=False)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ start

    def _start(self, *, arrow_only: bool) -> None:
        """Bind the query; ``read/`` reads every file if ``arrow_only``."""
        groups = [self._groups(plan, arrow_only=arrow_only) for plan in self._plans]
        folders = {
            folder
            for plan, own in zip(self._plans, groups, strict=True)
            for folder in folders_read(plan, own)
        }
        folders.update(*(files.folders for files in self._bound.files))
        self._run(lambda: self._bind(folders, groups))

    def _groups(self, plan: ScanPlan, *, arrow_only: bool) -> tuple[FileGroup, ...]:
        if plan.rows_read is not None:
            return ()
        if not arrow_only:
            return group_files(plan.files, plan.context, self._query.settings, stores=True)
        reason = "DuckDB could not read the files"
        return (FileGroup(grouping.ARROW, plan.files, reason),) if plan.files else ()

    def _bind(self, folders: set[str], groups: Sequence[tuple[FileGroup, ...]]) -> None:
        self._instance, cursor = self._pool.cursor(folders, self._query.settings)
        self._open.begin(self._instance, cursor)
        sources = register_tables(cursor, self._bound.temporary)
        used: list[str] = []
        opened = OpenedFiles(self._query, self._open.begin_files)
        builder = RelationBuilder(cursor, self._footers, self._query, self._open.streams, opened)
        for index, (plan, own) in enumerate(zip(self._plans, groups, strict=True)):
            confirmed = builder.confirm(plan.context, own)
            used.extend(group.name for group in confirmed for _ in group.tasks)
            used.extend(grouping.ARROW for _ in plan.files if plan.rows_read is not None)
            found = builder.of_plan(index, plan, own, confirmed)
            for name, source in found.registered.items():
                with_relations()
                cursor.register(name, source)
            sources[f"__scan_{index}"] = found.sql
            self._parameters.update(found.parameters)
        for files in self._bound.files:
            found = file_relation(files)
            sources[files.name] = found.sql
            self._parameters.update(found.parameters)
        self.groups = tuple(used)
        bound = self._bound_sql(cursor, sources)
        self.engine_types = list(bound.types)
        self.columns = tuple(
            ResultColumn(true_name(name), declare(engine_type))
            for name, engine_type in zip(bound.columns, bound.types, strict=True)
        )

    def _bound_sql(self, cursor: Any, sources: Mapping[str, str]) -> Described:
        """The columns of the query over the SQL of its scans, as DuckDB binds it."""

        def run(sql: str, parameters: Mapping[str, Any], composed: Composed | None) -> Described:
            self._parameters.update(parameters)
            self._sql, self._given, self._composed = sql, f"EXPLAIN {sql}", composed
            used, before = self._used_parameters(sql), self._bound.found_before
            return describe_once(cursor, sql, used, sources, before)

        return bind_sql(
            self._bound,
            sources,
            run,
            cursor,
            self._query.settings,
            _scanned_rows(self._plans),
            self._texts,
        )

    def _used_parameters(self, sql: str) -> dict[str, Any] | None:
        # A scan that is named by no part of the tree leaves its parameters unused.
        used = {name: value for name, value in self._parameters.items() if f"${name}" in sql}
        return used or None

    # ------------------------------------------------------------------ running in the worker

    def _run(self, function: Any) -> Any:
        """``function()`` in the worker; foreign exceptions become icesql's."""
        import duckdb

        try:
            return self._worker.call(function, self._query)
        except Error as error:
            raise self._bound.placed(error) from error.__cause__
        except (duckdb.Error, UnicodeDecodeError, OSError) as error:
            self._fail(error)
        except RuntimeError as error:
            if self._query.cancel.is_set():
                self._fail(error)
            raise

    def _fail(self, error: Exception) -> NoReturn:
        for each in (*self._open.streams, self._open.files, self._open.sink):
            if each is not None and each.error is not None:
                raise each.error from None
        self._query.check()
        if is_fatal(error) and self._instance is not None:
            self._pool.discard(self._instance)
        place = None if self._composed is None else self._composed.place_in(self._given)
        raise self._bound.placed(translate(error, _locations(self._plans), place)) from error

    def _first(self, function: Any, again: Callable[[], bool] = lambda: True) -> Any:
        """``function()``; if DuckDB cannot read a file, run the query again with ``read/``.

        This is the first read of the result, so no row is returned twice. ``again`` says whether
        what was made of the rows can be made anew.
        """
        try:
            return self._run(function)
        except Error as error:
            by_duckdb = any(name != grouping.ARROW for name in self.groups)
            if not by_duckdb or not is_reading_problem(error) or not again():
                raise
            ask_named_file(error, _scans(self._plans), self._query)
            self._run(self._open.release)
            self._start(arrow_only=True)
            self.notes = (*self.notes, f"read again without DuckDB's Parquet reader: {error}")
            return self._run(function)

    def _later(self, function: Any) -> Any:
        """``function()`` after rows were returned; DuckDB does not always name the bad file."""
        try:
            return self._run(function)
        except Error as error:
            name_bad_file(error, _scans(self._plans), self._query)
            raise

    # ------------------------------------------------------------------ rows

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.rows(count)

    @property
    def ready(self) -> deque[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.ready

    @property
    def row_count(self) -> int | None:
        """See ``protocol.Result``."""
        return self._reading.row_count

    def _chunks(self) -> Iterator[list[tuple[Any, ...]]]:
        if any(needs_arrow_rows(column.type) for column in self.columns):
            return self._rows_from_arrow()
        return self._rows_from_engine()

    def _rows_from_engine(self) -> Iterator[list[tuple[Any, ...]]]:
        types = [column.type for column in self.columns]
        converters = [row_converter(declared, self._zone) for declared in types]
        self._first(self._execute_rows)
        size = ChunkSize(types)
        while rows := self._later(lambda: self._open.cursor.fetchmany(size.rows)):
            is_last = len(rows) < size.rows
            if is_last:
                self._reading.last()
            size.measure(rows)
            yield _converted(rows, converters) if any(converters) else rows
            if is_last:
                return

    def _execute_rows(self) -> None:
        infinite = may_be_infinite([each.type for each in self.columns], self._bound.tree)
        fetched = [
            row_expression(expression, column.type, infinite=infinite)
            for expression, column in zip(self._declared(), self.columns, strict=True)
        ]
        sql = self._select(fetched)
        self._open.cursor.execute(sql, self._used_parameters(sql))

    def _rows_from_arrow(self) -> Iterator[list[tuple[Any, ...]]]:
        infinite = may_be_infinite([each.type for each in self.columns], self._bound.tree)
        for batch in self._batches():
            for start in range(0, batch.num_rows, MOST_ROWS):
                part = batch.slice(start, MOST_ROWS)
                columns = [
                    python_values(array, column.type, self._zone, infinite=infinite)
                    for array, column in zip(part.columns, self.columns, strict=True)
                ]
                yield list(zip(*columns, strict=True))

    # ------------------------------------------------------------------ Arrow

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``protocol.Result``."""
        return self._reading.arrow(lambda: self.columns)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.columns)
        self._first(self._open_reader)
        while True:
            batch = self._later(lambda: next(self._open.reader, None))
            if batch is None:
                return
            yield cast_batch(batch, schema)

    def _open_reader(self) -> None:
        sql = self._select(self._declared())
        with_relations()
        relation = self._open.cursor.sql(sql, params=self._used_parameters(sql))
        rows = batch_rows([column.type for column in self.columns], self._plans)
        self._open.reader = relation.to_arrow_reader(rows)

    def write(self, form: FileFormat, sink: Sink) -> int:
        """See ``protocol.WritableResult``."""
        copy = partial(self._copy, form, sink)
        return self._reading.whole(lambda: self._first(copy, sink.restart))

    def _copy(self, form: FileFormat, sink: Sink) -> int:
        assert self._instance is not None
        self._open.sink = sink
        columns = columns_to_write(self.columns, self.engine_types)
        query = self._select(self._declared())
        with self._instance.outputs.path_of(sink) as path:
            self._given = copy_statement(query, columns, form, path)
            cursor = self._open.cursor
            cursor.execute(self._given, self._used_parameters(self._given))
            return int(cursor.fetchone()[0])

    def engine_plan(self) -> list[str]:
        """See ``protocol.PlannedResult``."""
        sql = f"EXPLAIN {self._select(self._declared())}"
        parameters = self._used_parameters(sql)
        rows = self._run(lambda: self._open.cursor.execute(sql, parameters).fetchall())
        return [line for row in rows for line in str(row[1]).splitlines()]

    def _declared(self) -> list[str]:
        return [
            declared_expression(f"q.c{index}", engine_type)
            for index, engine_type in enumerate(self.engine_types)
        ]

    def _select(self, expressions: Sequence[str]) -> str:
        self._given = _cast(self._sql, expressions)
        return self._given

    # ------------------------------------------------------------------ ends

    def cancel(self) -> None:
        """See ``protocol.Result``."""
        self._query.cancel.set()
        self._open.interrupt()

    def abandon(self) -> None:
        """See ``protocol.Result``."""
        if not self._reading.is_arrow:
            self._reading.close()

    def close(self) -> None:
        """See ``protocol.Result``."""
        self._reading.close()
        end = time.monotonic() + _CLOSE_SECONDS
        # An interrupt that comes before the engine starts is forgotten by it: repeat.
        while not self._worker.join(0.0) and time.monotonic() < end:
            self._open.interrupt()
            self._worker.join(0.05)

    def _finish(self) -> None:
        """Nothing more is wanted of DuckDB. Also from a finalizer: it waits for nothing."""
        self._worker.close()
        # At exit nothing of DuckDB's may be left.
        self.engine_types = []


def _locations(plans: Sequence[ScanPlan]) -> list[str]:
    return [task.data_file.path.rsplit("/", 1)[-1] for plan in plans for task in plan.files]


def _scans(plans: Sequence[ScanPlan]) -> list[CombinedScanTask]:
    from msgspec.structs import replace

    from icesql.scan.tasks.task import CombinedScanTask

    found = []
    for plan in plans:
        context = plan.context
        if plan.changes is not None:  # no file holds what is told of a change
            rows = plan.changes.row_schema
            context = replace(context, schema=rows, projection=rows)
        found.append(CombinedScanTask(plan.files, context))
    return found


def _cast(query: str, expressions: Sequence[str]) -> str:
    """The query with its columns cast; the bare query when there is nothing to cast."""
    names = [f"c{index}" for index in range(len(expressions))]
    if all(e == f"q.{name}" for e, name in zip(expressions, names, strict=True)):
        return query
    selected = ", ".join(
        f"{expression} AS {name}" for expression, name in zip(expressions, names, strict=True)
    )
    return f"SELECT {selected} FROM ({query}\n) AS q({', '.join(names)})"


def _converted(
    rows: Sequence[tuple[Any, ...]], converters: Sequence[Converter | None]
) -> list[tuple[Any, ...]]:
    return [
        tuple(
            value if convert is None else convert(value)
            for convert, value in zip(converters, row, strict=True)
        )
        for row in rows
    ]


def _scanned_rows(plans: Sequence[ScanPlan]) -> int | None:
    """How many rows the one table of a query has at most; None for several tables."""
    if len(plans) != 1:
        return None
    return sum(max(task.data_file.record_count, 0) for task in plans[0].files)
