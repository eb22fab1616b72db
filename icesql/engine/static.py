"""Results that are known without an engine: SHOW, DESCRIBE, EXPLAIN and metadata answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.result_reader import ReadResult
from icesql.engine.result_schema import ResultColumn, ResultType, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


def _type(kind: str) -> ResultType:
    """``varchar[]`` is the list of a kind."""
    if kind.endswith("[]"):
        return ResultType("list", children=(("element", _type(kind.removesuffix("[]"))),))
    return ResultType(kind)


class StaticResult(ReadResult):
    """Rows in memory. See ``protocol.Result``."""

    def __init__(self, columns: Sequence[tuple[str, str]], rows: Iterable[tuple[Any, ...]]) -> None:
        """``columns`` are (name, kind of ``ResultType``) pairs."""
        super().__init__(self._chunks, self._batches, self._finish)
        self.columns = tuple(ResultColumn(name, _type(kind)) for name, kind in columns)
        self._rows = list(rows)
        self._count = len(self._rows)

    @property
    def row_count(self) -> int:
        """See ``protocol.Result``."""
        return self._count

    def _chunks(self) -> Iterator[list[tuple[Any, ...]]]:
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
