"""Results that need no engine, and counts of which one part comes from metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from icesql.engine.result_reader import Result
from icesql.engine.result_schema import ResultColumn, ResultType, Row, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


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
