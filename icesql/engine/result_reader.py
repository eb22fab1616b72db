"""How a result is read: as rows or as Arrow, once, and what has failed stays failed."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from icesql.engine.result_schema import ResultColumn, arrow_schema
from icesql.errors import InterfaceError, QueryCancelledError

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]


# When the interpreter ends Arrow leaves Python alone: what its reader holds then is never freed.
_READ_AS_ARROW: Final[WeakSet[Reading]] = WeakSet()


@atexit.register
def _close_all() -> None:
    for reading in list(_READ_AS_ARROW):
        reading.close()


class Reading:
    """Reads one result of an engine, once; several threads may, and each row comes to one of them.

    ``chunks`` and ``batches`` begin the reading as lists of rows and as Arrow batches; one of them
    is called, once. ``ended`` is called when nothing more is wanted of the engine: after the last
    row, an error, or ``close``. What ends the rows early is raised again for whoever asks for more:
    an iterator that has failed would say that there are none.
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[list[Row]]],
        batches: Callable[[], Iterator[pa.RecordBatch]],
        ended: Callable[[], None],
    ) -> None:
        self._chunks, self._batches, self._ended = chunks, batches, ended
        self._lock = threading.RLock()
        self._mode: str | None = None
        self._items: Iterator[Any] = iter(())
        # Rows received but not yet returned: `ready` comes first, for whoever takes them one by one
        # (popleft() is atomic: it needs no lock), then the chunk from `_at` on.
        self.ready: deque[Row] = deque()
        self._chunk: list[Row] = []
        self._at = 0
        self._received = 0
        self._complete = False
        self._failure: BaseException | None = None
        self._closed = False

    @property
    def row_count(self) -> int | None:
        """The total number of rows; None while unknown."""
        return self._received if self._complete else None

    @property
    def is_arrow(self) -> bool:
        """Whether the result is read as Arrow batches, whose reader keeps it alive."""
        return self._mode == "arrow"

    def rows(self, count: int | None) -> list[Row]:
        """At most ``count`` further rows, all of them for None; empty at the end.

        Raises InterfaceError for a result that is closed or read as Arrow, and the query's errors.
        """
        with self._lock:
            if self._enter("rows"):
                self._items = self._chunks()
            try:
                rows = self._taken(count)
            except KeyboardInterrupt:
                # Rows taken so far are lost to the caller.
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
            with suppress(IndexError):  # others take rows meanwhile, too
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

    def arrow(self, columns: Callable[[], Sequence[ResultColumn]]) -> pa.RecordBatchReader:
        """All rows in the declared schema of ``columns``, which is called once rows exist.

        Raises as ``rows``, also on a second call. The engine finishes when the reader is
        exhausted or dropped.
        """
        import pyarrow as pa

        with self._lock:
            if not self._enter("arrow"):
                raise self._is_read()
            self._items = self._batches()
            # The first batch is asked for now, so that errors of the query are icesql's own and not
            # Arrow's wrapping of them.
            first = self._next_batch()
        _READ_AS_ARROW.add(self)
        return pa.RecordBatchReader.from_batches(arrow_schema(columns()), _Batches(self, first))

    def _next_batch(self) -> pa.RecordBatch | None:
        with self._lock:
            if self._closed:
                raise InterfaceError("the result is closed")
            batch = self._next()
            if batch is not None:
                self._received += batch.num_rows
            return batch

    def whole(self, function: Callable[[], int]) -> int:
        """All rows at once by ``function``, which writes them and says how many there were.

        Raises as ``rows``.
        """
        with self._lock:
            if not self._enter("a file"):
                raise self._is_read()
            self._items = map(_called, (function,))
            count: int = self._next() or 0
            self._received, self._complete = count, True
            self._end()
            return count

    def last(self) -> None:
        """Let the chunk or batch that is there now be the last one of ``chunks`` or ``batches``."""
        self._complete = True
        self._end()

    def close(self) -> None:
        """Let nobody read any more. Whoever does is not waited for."""
        self._closed = True
        self._forget_rows()
        self._end()

    def _end(self) -> None:
        # Also from a finalizer, in any thread: no lock.
        ended, self._ended = self._ended, _nothing
        ended()
        # The result and its reading refer to each other no more. An iterator that is just running
        # ends with its step.
        self._chunks = self._batches = _no_items
        self._items = iter(())

    def _enter(self, mode: str) -> bool:
        """Whether reading begins; raises when it may not be read so."""
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
                # It was taken apart while it was read.
                raise InterfaceError("the result is closed") from error
            raise
        if item is None:
            self._complete = True
            self._end()
        return item


def _called(function: Callable[[], int]) -> int:
    return function()


class ReadResult:
    """``protocol.Result`` over a source of rows, which each kind of result has."""

    columns: tuple[ResultColumn, ...] = ()
    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        chunks: Callable[[], Iterator[list[Row]]],
        batches: Callable[[], Iterator[pa.RecordBatch]],
        ended: Callable[[], None],
    ) -> None:
        """The parameters are those of ``Reading``."""
        self._reading = Reading(chunks, batches, ended)

    def fetch(self, count: int | None) -> list[Row]:
        """See ``protocol.Result``; so are all that follow."""
        return self._reading.rows(count)

    @property
    def ready(self) -> deque[Row]:
        """See ``protocol.Result``."""
        return self._reading.ready

    @property
    def row_count(self) -> int | None:
        """See ``protocol.Result``."""
        return self._reading.row_count

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``protocol.Result``."""
        return self._reading.arrow(lambda: self.columns)

    def cancel(self) -> None:
        """See ``protocol.Result``."""

    def close(self) -> None:
        """See ``protocol.Result``."""
        self._reading.close()

    def abandon(self) -> None:
        """See ``protocol.Result``."""
        if not self._reading.is_arrow:
            self._reading.close()


class _Batches:
    """The batches of a reading for an Arrow reader; dropping it ends the reading."""

    def __init__(self, reading: Reading, first: pa.RecordBatch | None) -> None:
        self._reading, self._first = reading, first
        self._process = os.getpid()

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        if os.getpid() != self._process:
            # Whoever reads in the other process may hold the lock for ever.
            raise InterfaceError("the result belongs to the process that this one was forked from")
        batch, self._first = self._first, None
        if batch is None:
            batch = self._reading._next_batch()
        if batch is None:
            raise StopIteration
        return batch

    def __del__(self) -> None:
        self._reading._end()


def _nothing() -> None:
    pass


def _no_items() -> Iterator[Any]:
    return iter(())
