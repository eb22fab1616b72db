"""A result whose first rows were previewed, and which is read from its start all the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import tzinfo
from itertools import chain
from typing import TYPE_CHECKING, Any

from icesql.errors import InterfaceError

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.protocol import Result

Row = tuple[Any, ...]
_CHUNK = 2_048


class PreviewResult:
    """A ``Result`` over another one, which nobody has begun to read.

    It is read as Arrow, whatever is asked of this one, so that a preview decides nothing.
    """

    def __init__(self, result: Result, zone: tzinfo, *, infinite: bool, most: int) -> None:
        """``most``: how many rows to show. Raises what reading raises."""
        self._result, self._zone, self._infinite = result, zone, infinite
        self._reader: pa.RecordBatchReader = result.arrow_reader()
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in self._reader:
            held.append(batch)
            count += batch.num_rows
            if count > most:
                break
        self.columns, self.groups, self.notes = result.columns, result.groups, result.notes
        self._items: Iterator[pa.RecordBatch] = chain(held, self._reader)
        self._mode: str | None = None
        self.ready: deque[Row] = deque()
        self.first = [row for batch in held for row in self._rows(batch.slice(0, most + 1))]
        self.first = self.first[: most + 1]

    @property
    def row_count(self) -> int | None:
        """See ``Result``; so are all that follow."""
        return self._result.row_count if self._mode is not None else None

    def fetch(self, count: int | None) -> list[Row]:
        """See ``Result``."""
        self._enter("rows")
        rows: list[Row] = []
        while count is None or len(rows) < count:
            if self.ready:
                rows.append(self.ready.popleft())
                continue
            batch = next(self._items, None)
            if batch is None:
                self.notes = self._result.notes
                break
            self.ready.extend(self._rows(batch))
        return rows

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``Result``."""
        import pyarrow as pa

        if self._mode is not None:
            raise InterfaceError(
                f"this result is already being read as {self._mode}; execute the query again"
            )
        self._enter("arrow")
        return pa.RecordBatchReader.from_batches(self._reader.schema, self._items)

    def cancel(self) -> None:
        """See ``Result``."""
        self._result.cancel()

    def close(self) -> None:
        """See ``Result``."""
        self.ready.clear()
        self._items = iter(())
        self._result.close()

    def abandon(self) -> None:
        """See ``Result``."""
        self._result.abandon()

    def _enter(self, mode: str) -> None:
        if self._mode not in (None, mode):
            raise InterfaceError(
                f"this result is already being read as {self._mode}; execute the query again"
            )
        self._mode = mode

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        from icesql.engine.arrow.values import python_values

        for start in range(0, batch.num_rows, _CHUNK):
            part = batch.slice(start, _CHUNK)
            columns = [
                python_values(array, column.type, self._zone, infinite=self._infinite)
                for array, column in zip(part.columns, self.columns, strict=True)
            ]
            yield from zip(*columns, strict=True)
