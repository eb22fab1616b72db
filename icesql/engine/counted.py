"""A result of counts, of which metadata has counted a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.result_reader import ReadResult

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.protocol import Result


class CountedResult(ReadResult):
    """The one row of an engine with ``counts`` added, by output. See ``protocol.Result``."""

    def __init__(self, result: Result, counts: Sequence[int]) -> None:
        super().__init__(self._chunks, self._batches, self._finish)
        self._result, self._counts = result, tuple(counts)
        self.columns, self.groups, self.notes = result.columns, result.groups, result.notes

    def _chunks(self) -> Iterator[list[tuple[Any, ...]]]:
        yield [self._added(row) for row in self._result.fetch(None)]

    def _added(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
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

    def cancel(self) -> None:
        """See ``protocol.Result``."""
        self._result.cancel()

    def abandon(self) -> None:
        """See ``protocol.Result``."""
        self._result.abandon()

    def _finish(self) -> None:
        self._result.close()
