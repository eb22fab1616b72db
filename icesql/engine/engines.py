"""The engines of one connection: chooses one for each query, and starts it when first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from icesql.errors import InterfaceError
from icesql.frozen import Frozen

if TYPE_CHECKING:
    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.engine.duckdb.engine import LocalEngine
    from icesql.engine.protocol import Engine
    from icesql.engine.result_schema import Row
    from icesql.engine.spark.engine import SparkEngine
    from icesql.scan.plan import ScanPlan


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
