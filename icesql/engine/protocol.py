"""The protocol of an engine, and its result: read once, as rows or as Arrow batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from icesql.context import QueryContext
from icesql.engine.result_schema import ResultColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.write.write_task import WriteTask
    from icesql.write.written import Written

T = TypeVar("T")


class Sink(Protocol):
    """A sink for the bytes of a file. ``error`` is the first failure to write."""

    error: BaseException | None

    def write(self, data: bytes) -> Any:
        """Write more bytes, from any thread; raises the exception that ``error`` then is."""

    def restart(self) -> bool:
        """Discard the written bytes; False if a reader has received them already."""


class Result(Protocol):
    """Rows of one query. Reading begins at the first fetch; rows and Arrow exclude each other.

    Its resources are released after the last row or an error. Several threads may fetch.
    """

    columns: tuple[ResultColumn, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """At most ``count`` further rows, all of them for None; empty at the end."""

    @property
    def ready(self) -> deque[tuple[Any, ...]]:
        """The next rows that have arrived: take them with ``popleft``; if empty, call ``fetch``."""

    @property
    def row_count(self) -> int | None:
        """The total number of rows, None while it is unknown."""

    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream in the declared Arrow schema."""

    def cancel(self) -> None:
        """Stop the query, from any thread; a waiting call raises QueryCancelledError."""

    def close(self) -> None:
        """Release all resources and interrupt readers. May be called again."""

    def abandon(self) -> None:
        """Release all resources, unless an Arrow reader exists: no more rows will be fetched.

        For finalizers: it does not wait.
        """


class WritableResult(Result, Protocol):
    """A result whose engine writes files itself."""

    def write(self, form: FileFormat, sink: Sink) -> int:
        """Write all rows in a format, in bounded memory; returns their number."""


class TableWritingResult(Result, Protocol):
    """A result whose engine can write the data files of a table itself."""

    def write_files(self, task: WriteTask) -> Written | None:
        """Write all rows as data files; None, with nothing read, if it cannot."""


class RowsJob(Protocol):
    """A picklable function that processes the rows of a part of a result where they are."""

    def __call__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """Process a part of the rows; returns a report. ``numbers``: of the part, of the try."""


class RowsResult(Result, Protocol):
    """A result whose rows can be processed where they are, without transfer to this process."""

    def run_over_rows(
        self,
        job: RowsJob,
        collect: Callable[[Iterable[tuple[bytes, bool]]], T],
        together: int | None = None,
    ) -> T | None:
        """Run the job over each part of the rows, pass reports to ``collect``, close the result.

        Rows with the same value in the column ``together``, if any, are in one part. Each report
        comes with True if its part may have been tried before; ``collect`` is called again if its
        rows are lost on the way. None, with nothing read, if the rows are combined here.
        """


class PlannedResult(Result, Protocol):
    """A result whose engine can show its own plan for the query."""

    def engine_plan(self) -> list[str]:
        """The engine's own plan, line by line; reads footers but no rows."""


class Engine(Protocol):
    """An engine that evaluates a bound query over its scan plans."""

    def execute(self, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> Result:
        """Start a query; raises the errors that are found before the first row."""

    def forget(self) -> None:
        """Clear caches of data and of earlier queries."""

    def close(self) -> None:
        """End every open result."""
