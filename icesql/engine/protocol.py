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
        """Take some more bytes, from any thread; raises what ``error`` then is."""

    def restart(self) -> bool:
        """Forget what was written; False where it is with a reader already."""


class Result(Protocol):
    """Rows of one query. Reading begins at the first fetch; rows and Arrow exclude each other.

    What it holds ends with the last row or an error. Several threads may fetch.
    """

    columns: tuple[ResultColumn, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """At most ``count`` further rows, all of them for None; empty at the end."""

    @property
    def ready(self) -> deque[tuple[Any, ...]]:
        """The next rows, as far as they have come: take them with ``popleft``, else ``fetch``."""

    @property
    def row_count(self) -> int | None:
        """How many rows there are in all, None while that is unknown."""

    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream in the declared Arrow schema."""

    def cancel(self) -> None:
        """Stop, from any thread; whoever waits gets a QueryCancelledError."""

    def close(self) -> None:
        """Give everything back; whoever reads is interrupted. Harmless when repeated."""

    def abandon(self) -> None:
        """Nobody fetches rows any more: give everything back, unless an Arrow reader is out.

        For finalizers: waits for nothing.
        """


class WritableResult(Result, Protocol):
    """A result whose engine writes files itself."""

    def write(self, form: FileFormat, sink: Sink) -> int:
        """Write all rows in a format, in bounded memory; how many there were."""


class TableWritingResult(Result, Protocol):
    """A result whose engine can write the data files of a table itself."""

    def write_files(self, task: WriteTask) -> Written | None:
        """Write all rows as data files; None where it cannot, and then nothing was read."""


class RowsJob(Protocol):
    """Something picklable that takes the rows of a part of a result where they are."""

    def __call__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """Work on a part of the rows; return its report. ``numbers``: of the part, of this try."""


class RowsResult(Result, Protocol):
    """A result whose rows need not come here."""

    def run_over_rows(
        self,
        job: RowsJob,
        collect: Callable[[Iterable[tuple[bytes, bool]]], T],
        together: int | None = None,
    ) -> T | None:
        """Run the job over each part of the rows, pass reports to ``collect``, close the result.

        Rows of one value in the column ``together``, if it is given, are in one part. With each
        part comes whether it may have been tried before; ``collect`` is called again where its rows
        are lost on the way. None where rows are put together here, and then nothing was read.
        """


class PlannedResult(Result, Protocol):
    """A result whose engine tells how it will run the query."""

    def engine_plan(self) -> list[str]:
        """The engine's own plan, line by line; footers are read for it, and no rows."""


class Engine(Protocol):
    """Something that evaluates a bound query over its scan plans."""

    def execute(self, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> Result:
        """Start a query; raises for whatever is found before the first row."""

    def forget(self) -> None:
        """Keep nothing of what was read or run."""

    def close(self) -> None:
        """End every open result."""
