"""Results that are known without an engine: SHOW, DESCRIBE, EXPLAIN and metadata answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.result_schema import ResultColumn, ResultType, arrow_schema
from icesql.errors import InterfaceError

if TYPE_CHECKING:
    import pyarrow as pa


class StaticResult:
    """Rows in memory. See ``protocol.Result``."""

    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, columns: Sequence[tuple[str, str]], rows: Iterable[tuple[Any, ...]]) -> None:
        """``columns`` are (name, kind of ``ResultType``) pairs."""
        self.columns = tuple(ResultColumn(name, ResultType(kind)) for name, kind in columns)
        self._rows = list(rows)
        self._closed = False

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        if self._closed:
            raise InterfaceError("the result is closed")
        count = len(self._rows) if count is None else count
        fetched, self._rows = self._rows[:count], self._rows[count:]
        return fetched

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``protocol.Result``."""
        import pyarrow as pa

        schema = arrow_schema(self.columns)
        rows = self.fetch(None)
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return pa.RecordBatchReader.from_batches(schema, [batch])

    def cancel(self) -> None:
        """See ``protocol.Result``."""

    def close(self) -> None:
        """See ``protocol.Result``."""
        self._closed = True
