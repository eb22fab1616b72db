"""The engines: the protocol that each implements, and the engines of one connection.

A connection chooses an engine for each query, and starts it when first needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from icesql.context import QueryContext
from icesql.engine.result_schema import ResultColumn
from icesql.errors import InterfaceError
from icesql.frozen import Frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.engine.duckdb.engine import LocalEngine
    from icesql.engine.result import Result
    from icesql.engine.result_schema import Row
    from icesql.engine.spark.engine import SparkEngine
    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.write.write_task import WriteTask
    from icesql.write.written import Written


class EngineChoice(Frozen):
    """The name of an engine; ``reason`` is why ``auto`` chose it, None if the user set it."""

    name: str
    reason: str | None = None


def choose_engine(plans: Sequence[ScanPlan], settings: Settings) -> EngineChoice:
    """The engine for a query: ``auto`` reads more than ``spark_threshold`` bytes with Spark."""
    if settings.engine != "auto":
        return EngineChoice(settings.engine)
    if any(plan.changes is not None for plan in plans):
        return EngineChoice("local", "engine local: it alone has CHANGES")
    if any(plan.scan.frame is not None for plan in plans):
        return EngineChoice("spark", "engine spark: it alone reads its DataFrames")
    return engine_for(sum(plan.report.projected_bytes for plan in plans), settings)


def engine_for(size: int, settings: Settings) -> EngineChoice:
    """The engine for work that reads ``size`` bytes."""
    if settings.engine != "auto":
        return EngineChoice(settings.engine)
    limit = settings.spark_threshold
    name, relation = ("spark", "more than") if size > limit else ("local", "at most")
    reason = f"engine {name}: {size:,} bytes to read, {relation} spark_threshold {limit:,}"
    return EngineChoice(name, reason)


def engine_note(choice: EngineChoice) -> str:
    """The note of EXPLAIN CALL on work in tasks; "" if the user chose the local engine."""
    if choice.reason is None and choice.name == "local":
        return ""
    return f"; {choice.reason or 'in tasks of Spark'}"


class Engines:
    """Starts each engine once. Only this class refers to concrete engines."""

    def __init__(self, spark: Any) -> None:
        """``spark`` is the Spark session to use, or a description of how to start one."""
        self.started: dict[str, Engine] = {}
        self._spark = spark
        self._lock = threading.Lock()
        self._closed = False

    def named(self, name: str) -> Engine:
        """The engine "local" or "spark". Raises InterfaceError after ``close``."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            if name not in self.started:
                self.started[name] = self._start(name)
            return self.started[name]

    def serialize(self, text: str, settings: Settings) -> str:
        """See ``LocalEngine.serialize``: DuckDB parses the text for every engine."""
        return self.local().serialize(text, settings)

    def evaluate(self, sql: str, values: Sequence[Any], query: QueryContext) -> list[Row] | None:
        """See ``LocalEngine.evaluate``."""
        return self.local().evaluate(sql, values, query)

    def local(self) -> LocalEngine:
        """The local engine, which writes files with the rows of any engine."""
        return cast("LocalEngine", self.named("local"))

    def spark(self) -> SparkEngine:
        """The Spark engine, whose tasks also do work other than queries."""
        return cast("SparkEngine", self.named("spark"))

    def _start(self, name: str) -> Engine:
        if name == "spark":
            from icesql.engine.spark.engine import SparkEngine

            return SparkEngine(self._spark)
        from icesql.engine.duckdb.engine import LocalEngine

        return LocalEngine()

    def forget(self) -> None:
        """Clear the caches of the engines."""
        for engine in list(self.started.values()):
            engine.forget()

    def close(self) -> None:
        """End open results and the engines, without waiting."""
        self._closed = True
        for engine in list(self.started.values()):
            engine.close()
        self.started.clear()


# ------------------------------------------------------------------ protocols


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
