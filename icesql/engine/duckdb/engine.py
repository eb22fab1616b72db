"""The local engine: DuckDB evaluates the query tree over Parquet files and Arrow streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakSet

from icesql.config import time_zone
from icesql.context import Progress, QueryContext, check_reading, seconds_to_read
from icesql.engine.duckdb.described import (
    Described,
    describe,
    used_parameters,
    with_relations,
)
from icesql.engine.duckdb.errors import (
    check_named_file,
    forget_bad_file,
    is_fatal,
    name_bad_file,
    names_of,
    translate,
)
from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.duckdb.prepared_run import FEW_ROWS, PreparedRun
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.sources import OpenQuery, Sources, folders_of_store
from icesql.engine.duckdb.sql.bind_sql import TEXTS_BYTES, bind_sql
from icesql.engine.query_thread import MemoryWatch, Threads, Worker
from icesql.engine.result import Result
from icesql.engine.result_rows import (
    MOST_ROWS,
    ChunkSize,
    are_many,
    batch_rows,
    batches,
    converted,
    may_be_infinite,
    need_arrow_rows,
    row_converter,
    row_expression,
)
from icesql.engine.result_schema import (
    Row,
    arrow_schema,
    cast_batch,
    declared_expression,
    selected,
)
from icesql.errors import CorruptFileError, Error
from icesql.sql.reading.door import serialized
from icesql.storage.cache import BoundedCache, kept

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.config import Settings
    from icesql.engine.duckdb.sql.composed import Composed
    from icesql.engine.engines import Sink
    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks import CombinedScanTask
    from icesql.storage.open import Storage

# Progress of a query in this process: bytes read of the bytes that are planned.
#
# DuckDB's own estimate needs an unlocked configuration, and icesql locks it.


def reading_progress(planned_bytes: int) -> Callable[[], Progress]:
    """A function that returns the progress of the process from now on; callable from any thread.

    It counts all reads of the process, from disk or the page cache, as Linux counts them, and
    is 0 on other systems; it is never more than ``planned_bytes``.
    """
    before = _bytes_read()

    def progress() -> Progress:
        done = min(max(_bytes_read() - before, 0), planned_bytes)
        return Progress("running", 0, bytes_done=done, bytes_total=planned_bytes)

    return progress


def _bytes_read() -> int:
    try:
        with open("/proc/self/io", "rb") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


_CLOSE_SECONDS: Final = 1.0


class LocalEngine:
    """Runs bound queries on this machine; one for each icesql connection. Thread-safe."""

    def __init__(self) -> None:
        self.pool = InstancePool(keeps_footers=True)
        self.footers = FooterCache()
        self._open: WeakSet[LocalResult] = WeakSet()
        self.texts = BoundedCache(TEXTS_BYTES)
        self.threads = Threads()

    def serialize(self, text: str, settings: Settings) -> str:
        """Parse a text with the instance that runs queries; return the tree as JSON."""
        import duckdb

        left = seconds_to_read(len(text))
        with self.pool.parsing(settings, is_long=left is not None) as cursor:
            timer = None if left is None else threading.Timer(left, cursor.interrupt)
            try:
                if timer is not None:
                    timer.start()
                return serialized(cursor, text)
            except duckdb.Error as error:
                check_reading()
                raise translate(error, ()) from error
            finally:
                if timer is not None:
                    timer.cancel()

    def evaluate(
        self, sql: str, parameters: Sequence[Any], query: QueryContext
    ) -> list[Row] | None:
        """The rows of a query without tables, for planning; None if the engine raises an error.

        Only ``query.pushdown.computed`` makes ``sql``, of functions that it knows.
        """
        import duckdb

        query.check()
        try:
            with self.pool.asking(query.settings) as cursor:
                rows: list[Row] = cursor.execute(sql, list(parameters)).fetchall()
                return rows
        except (duckdb.Error, Error):
            return None

    def execute(
        self,
        bound: BoundQuery,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        prepared: PreparedRun | None = None,
    ) -> LocalResult:
        """Bind a query and return its result; only footers and small scans are read.

        ``prepared`` holds facts from earlier runs of a prepared query; None for other queries.
        """
        result = LocalResult(bound, plans, query, prepared, self)
        self._open.add(result)
        return result

    def get_ready(self, stores: Iterable[tuple[Storage, str]], query: QueryContext) -> None:
        """Start what queries over files in stores need, while metadata is being fetched.

        ``stores`` are pairs of a storage and a table's location in it. Raises OperationalError.
        """
        folders = set[str]()
        for storage, location in stores:
            folders |= folders_of_store(storage, location)
        instance = self.pool.acquire(folders, query.settings)
        instance.begin_files().make_known()

    def forget(self) -> None:
        """See ``engines.Engine``."""
        self.footers, self.texts = FooterCache(), BoundedCache(TEXTS_BYTES)

    def close(self) -> None:
        """End every open result and the DuckDB instance."""
        for result in list(self._open):
            result.close()
        self.threads.close()
        self.pool.close()


class LocalResult(Result):
    """One query on one DuckDB cursor in one worker thread. See ``Result``.

    The thread and DuckDB's resources end with the last row, an error, ``close`` or collection.
    """

    def __init__(
        self,
        bound: BoundQuery,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        prepared: PreparedRun | None,
        engine: LocalEngine,
    ) -> None:
        self._bound, self._plans, self._query = bound, tuple(plans), query
        self._prepared, self._pool, self._texts = prepared, engine.pool, engine.texts
        self._zone = time_zone(query.settings.timezone)
        self._open = OpenQuery()
        self._sources = Sources(
            bound, plans, query, engine.pool, engine.footers, self._open, prepared
        )
        self._sql, self._given = "", ""
        self._composed: Composed | None = None
        self.engine_types: list[Any] = []
        self._few: list[Row] | None = None  # all rows, if they came with binding
        self._all_at_once = False  # True if the first fetch wanted all rows
        # The source of progress while a call waits, if the query has a progress callback.
        self._progress: Callable[[], Progress] | None = None
        if query.progress is not None:
            self._progress = reading_progress(sum(plan.projected_bytes for plan in plans))
        self._watch = MemoryWatch(query.settings.memory_limit, engine.pool)
        self._worker = Worker(self._open.interrupt, self._open.release, self._watch, engine.threads)
        super().__init__()
        try:
            self._start(arrow_only=False)
        except BaseException as error:
            if isinstance(error, CorruptFileError):
                self._forget(error)
            self.close()
            raise

    # ------------------------------------------------------------------ start

    def _start(self, *, arrow_only: bool) -> None:
        """Bind the query; ``read/`` reads every file if ``arrow_only``."""
        read = self._sources.planned(arrow_only=arrow_only)
        self._run(lambda: self._bind(read))

    def _bind(self, read: Callable[[], Mapping[str, str]]) -> None:
        sources, cursor = read(), self._open.cursor
        self.groups = self._sources.groups

        def run(sql: str, composed: Composed | None) -> Described:
            self._sql, self._given, self._composed = sql, f"EXPLAIN {sql}", composed
            return self._described(cursor, sql, tuple(sources.items()))

        bound = bind_sql(
            self._bound,
            sources,
            run,
            cursor,
            self._query.settings,
            self._plans[0].rows_in_files if len(self._plans) == 1 else None,
            self._texts,
            self._prepared,
        )
        self.engine_types = list(bound.types)
        self.columns = bound.declared
        if self._prepared is not None and self._prepared.gives_few_rows:
            self._few = self._fetch_few()

    def _described(self, cursor: Any, sql: str, scans: tuple[tuple[str, str], ...]) -> Described:
        known = None if self._prepared is None else self._prepared.described
        return kept(known, scans, lambda: (describe(cursor, sql, self._used_parameters(sql)), 1))

    def _used_parameters(self, sql: str) -> dict[str, Any] | None:
        return used_parameters(sql, self._sources.parameters)

    # ------------------------------------------------------------------ running in the worker

    def _run(self, function: Any) -> Any:
        """Run ``function()`` in the worker; other libraries' exceptions become icesql's."""
        import duckdb

        try:
            return self._worker.call(function, self._query, self._progress)
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
        if is_fatal(error) and self._sources.instance is not None:
            self._pool.discard(self._sources.instance)
        place = None if self._composed is None else self._composed.place_in(self._given)
        raise self._bound.placed(
            translate(error, names_of(task for plan in self._plans for task in plan.files), place)
        ) from error

    def _first(self, function: Any, again: Callable[[], bool] = lambda: True) -> Any:
        """``_by_any_reader``, but a corrupt file that was cached on disk is fetched once more."""
        try:
            return _by_any_reader(self, function, again)
        except CorruptFileError as error:
            if not self._forget(error) or not again():
                raise
        self._run(self._open.release)
        self._start(arrow_only=False)
        return _by_any_reader(self, function, again)

    def _forget(self, error: CorruptFileError) -> bool:
        """Discard cached bytes of a corrupt file; True if there were any on disk.

        DuckDB's instance, which may hold them in memory, is then discarded, too.
        """
        was_kept = forget_bad_file(error, _scans(self._plans))
        if was_kept and self._sources.instance is not None:
            self._pool.discard(self._sources.instance)
        return was_kept

    def _later(self, function: Any) -> Any:
        """Run ``function()`` after rows were returned; find a corrupt file if none is named."""
        try:
            return self._run(function)
        except Error as error:
            try:
                name_bad_file(error, _scans(self._plans), self._query)
                raise
            except CorruptFileError as corrupt:
                self._forget(corrupt)
                raise

    # ------------------------------------------------------------------ rows

    def fetch(self, count: int | None) -> list[Row]:
        """See ``Result``."""
        self._all_at_once = self._all_at_once or count is None
        return super().fetch(count)

    def _chunks(self) -> Iterator[list[Row]]:
        at_once = self._all_at_once
        if need_arrow_rows([column.type for column in self.columns]) or (
            self._few is None and are_many(self._bound, self._plans, at_once=at_once)
        ):
            return self._watch.over(self._rows_from_arrow())
        return self._watch.over(self._rows_from_engine())

    def _rows_from_engine(self) -> Iterator[list[Row]]:
        types = [column.type for column in self.columns]
        converters = [row_converter(declared, self._zone) for declared in types]
        size, few = ChunkSize(types), self._few
        self._few = None
        fetch = partial(self._fetch_first, size.rows)
        rows = few if few is not None else self._first(fetch)
        self._note_row_count(len(rows) if len(rows) < size.rows else None)
        is_last = few is not None or len(rows) < size.rows
        size.measure(rows)
        while rows:
            if is_last:
                self._is_last()
            yield converted(rows, converters)
            if is_last:
                return
            rows = self._later(lambda: size.fetch(self._open.cursor.fetchmany))
            is_last = size.is_over

    def _fetch_first(self, count: int) -> list[Row]:
        """Run the query and fetch some rows."""
        infinite = self._may_be_infinite()
        fetched = [
            row_expression(declared, column.type, infinite=infinite)
            for declared, column in zip(self._declared(), self.columns, strict=True)
        ]
        sql = self._select(fetched)
        cursor = self._open.cursor
        cursor.execute(sql, self._used_parameters(sql))
        rows: list[Row] = cursor.fetchmany(count)
        return rows

    def _fetch_few(self) -> list[Row] | None:
        """All rows, if they are few; None if there are more, or if an error occurs."""
        if need_arrow_rows([column.type for column in self.columns]):
            return None
        with suppress(Exception):  # reading the rows raises it again
            rows = self._fetch_first(FEW_ROWS + 1)
            if len(rows) <= FEW_ROWS:
                return rows
        self._open.cursor.abort()
        return None

    def _may_be_infinite(self) -> bool:
        return may_be_infinite([each.type for each in self.columns], self._bound.tree)

    def _note_row_count(self, count: int | None) -> None:
        if self._prepared is not None:
            self._prepared.note_row_count(count)

    def _rows_from_arrow(self) -> Iterator[list[Row]]:
        from icesql.engine.arrow_values import rows_of

        count = 0
        at_once, infinite = self._all_at_once, self._may_be_infinite()
        for batch in self._read_batches(None if at_once else MOST_ROWS):
            count += batch.num_rows
            yield from rows_of(batch, self.columns, self._zone, infinite=infinite, at_once=at_once)
        self._note_row_count(count)

    # ------------------------------------------------------------------ Arrow

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._watch.over(self._read_batches())

    def _read_batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, for a caller that waits for the first of them."""
        self._few = None
        self._note_row_count(None)
        schema = arrow_schema(self.columns)
        self._first(partial(self._open_reader, rows))
        while found := self._later(lambda: batches(self._open.reader, several=rows is not None)):
            for batch in found:
                yield cast_batch(batch, schema)

    def _open_reader(self, rows: int | None) -> None:
        sql = self._select(self._declared())
        with_relations()
        relation = self._open.cursor.sql(sql, params=self._used_parameters(sql))
        rows = rows or batch_rows([column.type for column in self.columns], self._plans)
        self._open.reader = relation.to_arrow_reader(rows)

    def write(self, form: FileFormat, sink: Sink) -> int:
        """See ``engines.WritableResult``."""
        copy = partial(self._copy, form, sink)
        return self._whole(lambda: self._first(copy, sink.restart))

    def _copy(self, form: FileFormat, sink: Sink) -> int:
        from icesql.engine.duckdb.copy import columns_to_write, copy_statement

        assert self._sources.instance is not None
        self._open.sink, self._few = sink, None
        columns = columns_to_write(self.columns, self.engine_types)
        query = self._select(self._declared())
        with self._sources.instance.outputs.path_of(sink) as path:
            self._given = copy_statement(query, columns, form, path)
            cursor = self._open.cursor
            cursor.execute(self._given, self._used_parameters(self._given))
            return int(cursor.fetchone()[0])

    def engine_plan(self) -> list[str]:
        """See ``engines.PlannedResult``."""
        sql = f"EXPLAIN {self._select(self._declared())}"
        parameters = self._used_parameters(sql)
        rows = self._run(lambda: self._open.cursor.execute(sql, parameters).fetchall())
        return [line for row in rows for line in str(row[1]).splitlines()]

    def _declared(self) -> list[str]:
        return [declared_expression(f"q.c{i}", each) for i, each in enumerate(self.engine_types)]

    def _select(self, expressions: Sequence[str]) -> str:
        self._given = selected(self._sql, expressions)
        return self._given

    # ------------------------------------------------------------------ ends

    def cancel(self) -> None:
        """See ``Result``."""
        self._query.cancel.set()
        self._open.interrupt()

    def close(self) -> None:
        """See ``Result``."""
        is_read = self.row_count is not None
        super().close()
        # After the last row the thread releases its resources by itself.
        end = time.monotonic() + (0.0 if is_read else _CLOSE_SECONDS)
        # The engine ignores an interrupt that comes before it starts: repeat it.
        while not self._worker.join(0.0) and time.monotonic() < end:
            self._open.interrupt()
            self._worker.join(0.05)

    def _finish(self) -> None:
        """End the use of DuckDB. A finalizer may call this, so it waits for nothing."""
        files = self._open.files
        if files is not None and self.row_count is not None:
            files.is_over = True
        self._worker.close()
        # At exit no object of DuckDB's may be alive.
        self.engine_types = []


def _by_any_reader(result: LocalResult, function: Any, again: Callable[[], bool]) -> Any:
    """Run ``function()``; if DuckDB cannot read a file, run the query again with ``read/``.

    This is the first read of the result, so no row is returned twice. ``again`` returns True if
    the output that was made of the rows can be made again.
    """
    try:
        return result._run(function)
    except Error as error:
        by_duckdb = any(name != grouping.ARROW for name in result.groups)
        if not by_duckdb or not error.while_reading or not again():
            raise
        check_named_file(error, _scans(result._plans), result._query)
        result._run(result._open.release)
        result._start(arrow_only=True)
        result.notes = (*result.notes, f"read again without DuckDB's Parquet reader: {error}")
        return result._run(function)


def _scans(plans: Sequence[ScanPlan]) -> list[CombinedScanTask]:
    from msgspec.structs import replace

    from icesql.scan.tasks import CombinedScanTask

    found = []
    for plan in plans:
        context = plan.context
        if plan.changes is not None:  # no file contains the columns about a change
            rows = plan.changes.row_schema
            context = replace(context, schema=rows, projection=rows)
        found.append(CombinedScanTask(plan.files, context))
    return found
