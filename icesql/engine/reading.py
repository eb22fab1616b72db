"""How a result is read: as rows or as Arrow, once, and what has failed stays failed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from icesql.engine.result_schema import ResultColumn, arrow_schema
from icesql.errors import InterfaceError, QueryCancelledError

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
Item = TypeVar("Item")


class Reading:
    """Reads one result of an engine; not for several threads at once.

    ``chunks`` and ``batches`` begin the reading as lists of rows and as Arrow batches; one of them
    is called, once. What ends the rows early is raised again for whoever asks for more: an iterator
    that has failed would say that there are none.
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[list[Row]]],
        batches: Callable[[], Iterator[pa.RecordBatch]],
    ) -> None:
        self._chunks, self._batches = chunks, batches
        self._mode: str | None = None
        self._rows: Iterator[list[Row]] = iter(())
        self._pending: list[Row] = []
        self._failure: BaseException | None = None
        self._closed = False

    def rows(self, count: int | None) -> list[Row]:
        """At most ``count`` further rows, all of them for None; empty at the end.

        Raises InterfaceError for a result that is closed or read as Arrow, and the query's errors.
        """
        if self._enter("rows"):
            self._rows = self._chunks()
        rows, self._pending = self._pending, []
        while count is None or len(rows) < count:
            chunk = self._next(self._rows)
            if chunk is None:
                break
            rows.extend(chunk)
        if count is not None and len(rows) > count:
            rows, self._pending = rows[:count], rows[count:]
        return rows

    def arrow(self, columns: Callable[[], Sequence[ResultColumn]]) -> pa.RecordBatchReader:
        """All rows in the declared schema of ``columns``, which is asked once rows are there.

        Raises as ``rows``, also when it is called twice.
        """
        import pyarrow as pa

        if not self._enter("arrow"):
            raise self._is_read()
        batches = self._batches()
        # The first batch is asked for now, so that errors of the query are icesql's own and not
        # Arrow's wrapping of them.
        first = self._next(batches)
        rest = iter(lambda: self._next(batches), None)
        return pa.RecordBatchReader.from_batches(
            arrow_schema(columns()), itertools.chain([] if first is None else [first], rest)
        )

    def close(self) -> None:
        """Let nobody begin to read any more."""
        self._closed = True

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

    def _next(self, items: Iterator[Item]) -> Item | None:
        if self._failure is not None:
            raise self._failure
        try:
            return next(items, None)
        except KeyboardInterrupt:
            self._failure = QueryCancelledError("the query was cancelled")
            raise
        except BaseException as error:
            self._failure = error
            raise
