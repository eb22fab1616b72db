"""A result whose first rows were previewed, and which is read from its start all the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from icesql.engine.result_reader import ReadResult

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.protocol import Result

Row = tuple[Any, ...]
_CHUNK = 2_048


class PreviewResult(ReadResult):
    """A ``Result`` over another one, which nobody has begun to read.

    It is read as Arrow, whatever is asked of this one, so that a preview decides nothing.
    """

    def __init__(self, result: Result, zone: tzinfo, *, infinite: bool, most: int) -> None:
        """``most``: how many rows to show. Raises what reading raises."""
        super().__init__(self._chunks, self._batches, self._finish)
        self._result, self._zone, self._infinite = result, zone, infinite
        reader: pa.RecordBatchReader = result.arrow_reader()
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in reader:
            held.append(batch)
            count += batch.num_rows
            if count > most:
                break
        self.columns, self.groups, self.notes = result.columns, result.groups, result.notes
        self._items: Iterator[pa.RecordBatch] = chain(held, reader)
        first = (row for batch in held for rows in self._rows(batch) for row in rows)
        self.first = list(islice(first, most + 1))

    def _chunks(self) -> Iterator[list[Row]]:
        for batch in self._items:
            yield from self._rows(batch)
        self.notes = self._result.notes

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._items

    def cancel(self) -> None:
        """See ``Result``."""
        self._result.cancel()

    def abandon(self) -> None:
        """See ``Result``."""
        self._result.abandon()

    def _finish(self) -> None:
        self._items = iter(())
        self._result.close()

    def _rows(self, batch: pa.RecordBatch) -> Iterator[list[Row]]:
        from icesql.engine.arrow.values import python_values

        for start in range(0, batch.num_rows, _CHUNK):
            part = batch.slice(start, _CHUNK)
            columns = [
                python_values(array, column.type, self._zone, infinite=self._infinite)
                for array, column in zip(part.columns, self.columns, strict=True)
            ]
            yield list(zip(*columns, strict=True))
