"""Results that are known without an engine: SHOW, DESCRIBE, EXPLAIN and metadata answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.result_reader import Reading
from icesql.engine.result_schema import ResultColumn, ResultType, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


def _type(kind: str) -> ResultType:
    """``varchar[]`` is the list of a kind."""
    if kind.endswith("[]"):
        return ResultType("list", children=(("element", _type(kind.removesuffix("[]"))),))
    return ResultType(kind)


class StaticResult:
    """Rows in memory. See ``protocol.Result``."""

    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, columns: Sequence[tuple[str, str]], rows: Iterable[tuple[Any, ...]]) -> None:
        """``columns`` are (name, kind of ``ResultType``) pairs."""
        self.columns = tuple(ResultColumn(name, _type(kind)) for name, kind in columns)
        self._rows = list(rows)
        self.row_count = len(self._rows)
        self._reading = Reading(self._chunks, self._batches, self._finish)

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.rows(count)

    @property
    def ready(self) -> deque[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.ready

    def _chunks(self) -> Iterator[list[tuple[Any, ...]]]:
        return iter([self._rows])

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``protocol.Result``."""
        return self._reading.arrow(lambda: self.columns)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self.columns)
        columns = list(zip(*self._rows, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, schema, strict=True)
        ]
        return iter([pa.RecordBatch.from_arrays(arrays, schema=schema)])

    def cancel(self) -> None:
        """See ``protocol.Result``."""

    def close(self) -> None:
        """See ``protocol.Result``."""
        self._reading.close()

    def abandon(self) -> None:
        """See ``protocol.Result``."""

    def _finish(self) -> None:
        self._rows = []
