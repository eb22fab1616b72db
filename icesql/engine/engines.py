"""The engines of one connection: which one a query runs on, each started when first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from icesql.errors import InterfaceError

if TYPE_CHECKING:
    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.engine.duckdb.engine import LocalEngine
    from icesql.engine.protocol import Engine
    from icesql.engine.spark.engine import SparkEngine
    from icesql.scan.plan import ScanPlan


class EngineChoice(Struct, frozen=True):
    """The name of an engine; ``reason`` says why ``auto`` chose it, None where it was set."""

    name: str
    reason: str | None = None


def choose_engine(plans: Sequence[ScanPlan], settings: Settings) -> EngineChoice:
    """The engine for a query: ``auto`` reads more than ``spark_threshold`` bytes with Spark."""
    if settings.engine != "auto":
        return EngineChoice(settings.engine)
    if any(plan.changes is not None for plan in plans):
        return EngineChoice("local", "engine local: it alone has CHANGES")
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
    """The note of EXPLAIN CALL on work of tasks: "" on this machine, if that was set."""
    if choice.reason is None and choice.name == "local":
        return ""
    return f"; {choice.reason or 'in tasks of Spark'}"


class Engines:
    """Starts each engine once. The only place that names concrete engines."""

    def __init__(self, spark: Any) -> None:
        """``spark`` says which Spark session to use, or how to start one."""
        self.started: dict[str, Engine] = {}
        self._spark = spark
        self._lock = threading.Lock()
        self._closed = False

    def named(self, name: str) -> Engine:
        """The engine "local" or "spark". Raises InterfaceError once these are closed."""
        with self._lock:
            if self._closed:
                raise InterfaceError("the connection is closed")
            if name not in self.started:
                self.started[name] = self._start(name)
            return self.started[name]

    def serialize(self, text: str, settings: Settings) -> str:
        """See ``LocalEngine.serialize``: DuckDB reads the text, whatever engine runs it."""
        return self.local().serialize(text, settings)

    def evaluate(
        self, sql: str, values: Sequence[Any], query: QueryContext
    ) -> list[tuple[Any, ...]] | None:
        """See ``LocalEngine.evaluate``."""
        return self.local().evaluate(sql, values, query)

    def local(self) -> LocalEngine:
        """The local engine, which writes files whatever engine gave the rows."""
        from icesql.engine.duckdb.engine import LocalEngine

        local = self.named("local")
        assert isinstance(local, LocalEngine)
        return local

    def spark(self) -> SparkEngine:
        """The Spark engine, which also runs work that is no query in its tasks."""
        from icesql.engine.spark.engine import SparkEngine

        spark = self.named("spark")
        assert isinstance(spark, SparkEngine)
        return spark

    def _start(self, name: str) -> Engine:
        if name == "spark":
            from icesql.engine.spark.engine import SparkEngine

            return SparkEngine(self._spark)
        from icesql.engine.duckdb.engine import LocalEngine

        return LocalEngine()

    def forget(self) -> None:
        """Have the engines keep nothing of what they read or ran."""
        for engine in list(self.started.values()):
            engine.forget()

    def close(self) -> None:
        """End open results and the engines; nobody is waited for."""
        self._closed = True
        for engine in list(self.started.values()):
            engine.close()
        self.started.clear()
