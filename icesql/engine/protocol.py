"""The protocol of an engine, and what the results of some engines can do beside ``Result``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from icesql.context import QueryContext
from icesql.engine.result_schema import ResultColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.result_reader import Result
    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.write.write_task import WriteTask
    from icesql.write.written import Written

T = TypeVar("T")
# The report of each part of a result's rows, and True if the part may have been tried before.
Reports = Iterable[tuple[bytes, bool]]


class Sink(Protocol):
    """A sink for the bytes of a file. ``error`` is the first failure to write."""

    error: BaseException | None

    def write(self, data: bytes) -> Any:
        """Write more bytes, from any thread; raises the exception that ``error`` then is."""

    def restart(self) -> bool:
        """Discard the written bytes; False if a reader has received them already."""


class WritableResult(Protocol):
    """A result whose engine writes files itself."""

    def write(self, form: FileFormat, sink: Sink) -> int:
        """Write all rows in a format, in bounded memory; returns their number."""


class TableWritingResult(Protocol):
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


class RowsResult(Protocol):
    """A result whose rows can be processed where they are, without transfer to this process."""

    columns: tuple[ResultColumn, ...]

    def run_over_rows(
        self,
        job: RowsJob,
        collect: Callable[[Reports], T],
        together: int | None = None,
    ) -> T | None:
        """Run the job over each part of the rows, pass reports to ``collect``, close the result.

        Rows with the same value in the column ``together``, if any, are in one part. Each report
        comes with True if its part may have been tried before; ``collect`` is called again if its
        rows are lost on the way. None, with nothing read, if the rows are combined here.
        """


class PlannedResult(Protocol):
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
