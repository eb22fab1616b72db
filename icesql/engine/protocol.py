"""What an engine gives back: a result that is read once, as rows or as Arrow batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from icesql.context import QueryContext
from icesql.engine.result_schema import ResultColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan


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


class Engine(Protocol):
    """Something that evaluates a bound query over its scan plans."""

    def execute(self, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> Result:
        """Start a query; raises for whatever is found before the first row."""

    def close(self) -> None:
        """End every open result."""
