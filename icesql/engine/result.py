"""Results: rows that are read once, as Python's or as Arrow, and results that need no engine.

After an error every further read of a result raises it again.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from icesql.engine.result_schema import ResultColumn, ResultType, Row, arrow_schema, unique_names
from icesql.errors import InterfaceError, ProgrammingError, QueryCancelledError

if TYPE_CHECKING:
    import pyarrow as pa


# At exit, Arrow never calls back into Python: the resources of its readers would not be released.
_READ_AS_ARROW: Final[WeakSet[Result]] = WeakSet()


@atexit.register
def _close_all() -> None:
    for result in list(_READ_AS_ARROW):
        result._release()


class Result:
    """Rows of one query, read once as rows or as Arrow; of several threads each gets other rows.

    Reading begins at the first fetch. Resources are released after the last row, an error, or
    ``close``. An error that ends the rows early is raised again at each further read: a failed
    iterator would look exhausted instead.

    Subclasses begin the reading in ``_chunks`` or ``_batches``, of which one is called, once.
    ``_finish`` is called when the engine is no longer needed.
    """

    columns: tuple[ResultColumn, ...] = ()
    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._mode: str | None = None
        self._items: Iterator[Any] = iter(())
        # Rows received but not yet returned: first `ready`, for callers that take single rows
        # (popleft() is atomic and needs no lock; if it is empty, they call `fetch`), then the
        # chunk from `_at` on.
        self.ready: deque[Row] = deque()
        self._chunk: list[Row] = []
        self._at = 0
        self._received = 0
        self._complete = self._closed = self._ended = False
        self._failure: BaseException | None = None

    def _chunks(self) -> Iterator[list[Row]]:
        """Begin the reading as lists of rows."""
        raise NotImplementedError

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Begin the reading as batches in the declared Arrow schema."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Release the engine's resources. A finalizer may call this, in any thread."""

    @property
    def row_count(self) -> int | None:
        """The total number of rows; None while unknown."""
        return self._received if self._complete else None

    def fetch(self, count: int | None) -> list[Row]:
        """At most ``count`` further rows, all of them for None; empty at the end.

        Raises InterfaceError for a result that is closed or read as Arrow, and the query's errors.
        """
        with self._lock:
            if self._enter("rows"):
                self._items = self._chunks()
            try:
                rows = self._taken(count)
            except KeyboardInterrupt:
                # The caller does not receive the rows taken so far.
                self._failure = QueryCancelledError("the query was cancelled")
                raise
            if self._closed:
                self._forget_rows()
                raise InterfaceError("the result is closed")
            return rows

    def _taken(self, count: int | None) -> list[Row]:
        ready, rows = self.ready, list[Row]()
        if ready:
            wanted = len(ready) if count is None else count
            with suppress(IndexError):  # other threads take rows at the same time
                rows.extend(starmap(ready.popleft, repeat((), wanted)))
        while count is None or len(rows) < count:
            if not self._chunk:
                chunk = self._next()
                if chunk is None:
                    break
                self._received += len(chunk)
                self._chunk, self._at = chunk, 0
            end = len(self._chunk) if count is None else self._at + count - len(rows)
            rows += self._chunk[self._at : end]
            self._at = end
            if end >= len(self._chunk):
                self._chunk = []
        if count == 1:
            ready.extend(self._chunk[self._at :])
            self._chunk = []
        return rows

    def _forget_rows(self) -> None:
        self.ready.clear()
        self._chunk = []

    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream in the declared Arrow schema.

        Raises the errors of ``fetch``, also on a second call. The engine ends when the reader is
        exhausted or deleted.
        """
        import pyarrow as pa

        with self._lock:
            if not self._enter("arrow"):
                raise self._is_read()
            self._items = self._batches()
            # Fetch the first batch now, so that errors of the query are icesql's own and not
            # wrapped by Arrow.
            first = self._arrow_batch()
        _READ_AS_ARROW.add(self)
        return pa.RecordBatchReader.from_batches(arrow_schema(self.columns), _Batches(self, first))

    def _arrow_batch(self) -> pa.RecordBatch | None:
        with self._lock:
            if self._closed:
                raise InterfaceError("the result is closed")
            batch = self._next()
            if batch is not None:
                self._received += batch.num_rows
            return batch

    def _whole(self, function: Callable[[], int]) -> int:
        """Read all rows at once with ``function``, which writes them and returns their number.

        Raises the errors of ``fetch``.
        """
        with self._lock:
            if not self._enter("a file"):
                raise self._is_read()
            self._items = iter(function, None)  # a step that calls it
            count: int = self._next() or 0
            self._received = count
            self._is_last()
            return count

    def _is_last(self) -> None:
        """End the reading: the current chunk or batch is the last one."""
        self._complete = True
        self._end()

    def cancel(self) -> None:
        """Stop the query, from any thread; a waiting call raises QueryCancelledError."""

    def close(self) -> None:
        """Release all resources and interrupt readers; may be called again.

        Refuses further reads, and does not wait for one that is running.
        """
        self._release()

    def _release(self) -> None:
        """As ``close``, without waiting for anything."""
        self._closed = True
        self._forget_rows()
        self._end()

    def abandon(self) -> None:
        """Release all resources, unless an Arrow reader exists: no more rows will be fetched.

        For finalizers: it does not wait.
        """
        if self._mode != "arrow":
            self._release()

    def _end(self) -> None:
        # A finalizer may call this in any thread: use no lock.
        if not self._ended:
            self._ended = True
            self._finish()
        # An iterator that is running ends after its current step.
        self._items = iter(())

    def _enter(self, mode: str) -> bool:
        """True if the reading begins now; raises if this way of reading is not possible."""
        if self._closed:
            raise InterfaceError("the result is closed")
        if self._failure is not None:
            raise self._failure
        if self._mode not in (None, mode):
            raise self._is_read()
        begins, self._mode = self._mode is None, mode
        return begins

    def _is_read(self) -> InterfaceError:
        return InterfaceError(
            f"this result is already being read as {self._mode}; execute the query again"
        )

    def _next(self) -> Any | None:
        if self._failure is not None:
            raise self._failure
        try:
            item = next(self._items, None)
        except KeyboardInterrupt:
            self._failure = QueryCancelledError("the query was cancelled")
            self._end()
            raise
        except BaseException as error:
            self._failure = error
            self._end()
            own = isinstance(error, InterfaceError | QueryCancelledError)
            if self._closed and isinstance(error, Exception) and not own:
                # The close came during the read and removed its resources.
                raise InterfaceError("the result is closed") from error
            raise
        if item is None:
            self._is_last()
        return item


class _Batches:
    """The batches of a result for an Arrow reader; deleting it ends the reading."""

    def __init__(self, result: Result, first: pa.RecordBatch | None) -> None:
        self._result, self._first = result, first
        self._process = os.getpid()

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        if os.getpid() != self._process:
            # A thread of the parent process may hold the lock for ever.
            raise InterfaceError("the result belongs to the process that this one was forked from")
        batch, self._first = self._first, None
        if batch is None:
            batch = self._result._arrow_batch()
        if batch is None:
            raise StopIteration
        return batch

    def __del__(self) -> None:
        self._result._end()


# ------------------------------------------------------------------ results without an engine


def _type(kind: str) -> ResultType:
    """The type of a kind; ``varchar[]`` is a list of ``varchar``."""
    if kind.endswith("[]"):
        return ResultType("list", children=(("element", _type(kind.removesuffix("[]"))),))
    return ResultType(kind)


class StaticResult(Result):
    """Rows in memory."""

    def __init__(self, columns: Sequence[tuple[str, str]], rows: Iterable[Row]) -> None:
        """``columns`` are (name, kind of ``ResultType``) pairs."""
        super().__init__()
        self.columns = tuple(ResultColumn(name, _type(kind)) for name, kind in columns)
        self._rows = list(rows)
        self._count = len(self._rows)

    @property
    def row_count(self) -> int:
        """See ``Result``."""
        return self._count

    def _chunks(self) -> Iterator[list[Row]]:
        return iter([self._rows])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self.columns)
        columns = list(zip(*self._rows, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, schema, strict=True)
        ]
        return iter([pa.RecordBatch.from_arrays(arrays, schema=schema)])

    def _finish(self) -> None:
        self._rows = []


class ResultOver(Result):
    """A result whose rows are made of those of another one, which ends with it."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self._result = result
        self.columns, self.groups, self.notes = result.columns, result.groups, result.notes

    def cancel(self) -> None:
        """See ``Result``."""
        self._result.cancel()

    def abandon(self) -> None:
        """See ``Result``."""
        self._result.abandon()

    def _finish(self) -> None:
        self._result.close()


# A result of counts, where metadata provides a part of each count.


class CountedResult(ResultOver):
    """The only row of an engine, with ``counts`` added to its columns."""

    def __init__(self, result: Result, counts: Sequence[int]) -> None:
        super().__init__(result)
        self._counts = tuple(counts)

    def _chunks(self) -> Iterator[list[Row]]:
        yield [self._added(row) for row in self._result.fetch(None)]

    def _added(self, row: Row) -> Row:
        pairs = zip(row, self._counts, strict=True)
        return tuple(value + count if count else value for value, count in pairs)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in self._result.arrow_reader():
            arrays = [
                pa.array([value + count for value in column.to_pylist()], column.type)
                if count
                else column
                for column, count in zip(batch.columns, self._counts, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


# ------------------------------------------------------------------ rows that are kept


# DuckDB's type of a column of NULLs only, and the type that a table gives to it.
_NULL, _INTEGER = '"NULL"', "INTEGER"


def keep_rows(
    result: Result, columns: Sequence[str], check: Callable[[int], None]
) -> tuple[tuple[tuple[str, str, str], ...], Any]:
    """Columns (name, declared type, type of the engine) of a result, and its Arrow table.

    ``columns`` are names for the first of them; repeated names get a number as in DuckDB.
    ``check`` receives the number of bytes so far, and raises an error if there are too many. The
    result is closed.
    """
    import pyarrow as pa

    try:
        if len(columns) > len(result.columns):
            raise ProgrammingError(
                f"{len(columns)} columns are named; the query has {len(result.columns)}"
            )
        # The last row ends the result, and its types with it.
        kinds = list(map(str, getattr(result, "engine_types", ()))) or [""] * len(result.columns)
        reader = result.arrow_reader()
        batches, size = [], 0
        for batch in reader:
            size += batch.nbytes
            check(size)
            batches.append(batch)
        schema, own = reader.schema, result.columns
    finally:
        result.close()
    names = unique_names([*columns, *(each.name for each in own[len(columns) :])])
    described = tuple(
        (name, column.type.kind, _INTEGER if kind == _NULL else kind)
        for name, column, kind in zip(names, own, kinds, strict=True)
    )
    return described, pa.Table.from_batches(batches, schema).rename_columns(names)
