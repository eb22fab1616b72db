"""The whole pipeline on one screen: SQL text → statement → bound query → scan plans → result.

The only place that names concrete engines.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from icesql.access import Access
from icesql.catalog.search_path import SearchPath
from icesql.config import Settings, check_temp_directory
from icesql.context import Progress, QueryContext
from icesql.engine.static import StaticResult
from icesql.errors import InterfaceError, UnsupportedSqlError
from icesql.storage.cache import BoundedCache
from icesql.storage.clean_errors import without_secrets
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.open import Catalog, Table
    from icesql.engine.protocol import Engine, Result
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.scan.report import ScanReport
    from icesql.sql.statement import Query, Statement, TableReference

_CACHE_BYTES = 128 << 20

Parameters = Sequence[Any] | Mapping[str, Any] | None


class Outcome(Struct, frozen=True):
    """What a statement gave: a result if it has rows, and what is worth knowing about it."""

    result: Result | None
    reports: tuple[ScanReport, ...] = ()
    notes: tuple[str, ...] = ()
    bound: BoundQuery | None = None


class Session:
    """Settings, names and engines of one connection."""

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        settings: Settings,
        *,
        access: Access | None = None,
        dialect: str | None = None,
        spark: Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._properties = dict(properties or {})
        self.settings, self.dialect = settings, dialect
        self.names = SearchPath(open_catalog, BoundedCache(_CACHE_BYTES), access or Access())
        self._defaults = settings
        self._spark = spark
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()
        self._closed, self._process = False, os.getpid()

    # ------------------------------------------------------------------ the pipeline

    def check_open(self) -> None:
        """Raises InterfaceError once the session is closed, and in a process that was forked."""
        if self._closed:
            raise InterfaceError("the connection is closed")
        if not self.is_here:
            raise InterfaceError(
                f"the connection belongs to process {self._process}, of which this one is a fork; "
                "connect again here"
            )

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened the session: no engine survives a fork."""
        return os.getpid() == self._process

    def without_secrets(self) -> AbstractContextManager[None]:
        """A block whose errors tell no secret of this connection's catalogs and stores."""
        sources = [self._properties, *self.names.storage_properties]
        return without_secrets({str(number): each for number, each in enumerate(sources)})

    def context(
        self,
        cancel: threading.Event | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> QueryContext:
        """What one statement carries, from now on."""
        limit = self.settings.query_timeout
        return QueryContext(
            settings=self.settings,
            cancel=cancel or threading.Event(),
            deadline=None if limit is None else time.monotonic() + limit,
            progress=progress,
        )

    def execute(self, statement: Statement, query: QueryContext) -> Outcome:
        """Run one statement, also where the caller's stack is nearly full."""
        from icesql.errors import OperationalError
        from icesql.stack import with_room

        try:
            return with_room(lambda: self._execute(statement, query))
        except RecursionError as error:
            raise OperationalError(
                "the statement is nested too deeply for the stack of this program; name its inner "
                "parts in a WITH clause, or call from less deep in recursion"
            ) from error

    def _execute(self, statement: Statement, query: QueryContext) -> Outcome:
        from icesql.sql import statement as kinds

        match statement:
            case kinds.Query():
                return self._query(statement, query)
            case kinds.Explain():
                return self._explain(statement, query)
            case kinds.SetSetting(name, value):
                self._set(name, value)
                return Outcome(None)
            case kinds.ResetSetting(None):
                # Those that are locked stand at their defaults.
                self.settings = self._defaults
                return Outcome(None)
            case kinds.ResetSetting(str() as name):
                self.names.access.check_setting(name)
                self.settings = self.settings.with_default(name, self._defaults)
                return Outcome(None)
            case kinds.Use(parts):
                found = query.wait_for(lambda: self.names.find_namespace(parts))
                self.names.namespace = found
                return Outcome(None)
            case _:
                from icesql.query.show import show

                columns, rows, notes = query.wait_for(lambda: show(statement, self.names, query))
                return Outcome(StaticResult(columns, rows), notes=notes)

    def _opener(self, query: QueryContext) -> Callable[[TableReference], Table]:
        """Opens tables; what may wait for another machine is left when the query ends."""

        def open_table(reference: TableReference) -> Table:
            name = reference.parts, reference.path
            if self.names.is_near(*name):
                return self.names.open_table(*name)
            return query.wait_for(lambda: self.names.open_table(*name))

        return open_table

    def _set(self, name: str, value: str) -> None:
        self.names.access.check_setting(name)
        changed = self.settings.with_text(name, value)
        if changed.temp_directory != self.settings.temp_directory:
            check_temp_directory(changed.temp_directory)
        self.settings = changed

    def _bind(self, statement: Query, query: QueryContext) -> BoundQuery:
        from icesql.query.bind import bind

        bound = bind(statement, self._opener(query), query)
        if not statement.files:
            return bound
        from icesql.query.files import bind_files

        if query.settings.engine != "local":
            first = statement.files[0]
            raise UnsupportedSqlError(
                f"{first.function}() where engine = '{query.settings.engine}'",
                hint="files are read with engine = 'local'",
                line=first.line,
                column=first.column,
            )
        return replace(bound, files=bind_files(statement.files, self.names.access.files, query))

    def _query(self, statement: Query, query: QueryContext) -> Outcome:
        from icesql.query.metadata_answers import answer_from_metadata
        from icesql.scan.planner import plan

        bound = self._bind(statement, query)
        verified = query.settings.verify == "full"
        answer = None if verified else answer_from_metadata(bound, query)
        if answer is not None:
            columns = [(name, "bigint") for name in answer.names]
            result: Result = StaticResult(columns, [answer.row])
            return Outcome(result, tuple(getattr(answer, "reports", ())), bound.notes, bound)
        plans = [plan(scan, query) for scan in bound.scans]
        notes = bound.notes
        if verified:
            from icesql.read.verification import verify

            notes = (*notes, *verify(plans, query))
        engine, choice = self._engine(plans, query)
        result = engine.execute(bound, plans, query)
        notes = (*notes, *choice)
        return Outcome(result, tuple(each.report for each in plans), notes, bound)

    def _explain(self, statement: Any, query: QueryContext) -> Outcome:

        from icesql.engine.duckdb.relations.grouping import group_files
        from icesql.query.explain import as_json, as_text, describe
        from icesql.scan.planner import plan

        started = time.perf_counter()
        bound = self._bind(statement.query, query)
        bound_at = time.perf_counter()
        plans: list[ScanPlan] = [plan(replace(scan, explain=True), query) for scan in bound.scans]
        planned_at = time.perf_counter()
        labels = [
            [
                (group.label, len(group.tasks))
                for group in group_files(each.files, each.context, query.settings)
            ]
            for each in plans
        ]
        measured: dict[str, Any] | None = None
        if statement.analyze:
            engine, _ = self._engine(plans, query)
            result = engine.execute(bound, plans, query)
            try:
                rows = 0
                while chunk := result.fetch(10_000):
                    rows += len(chunk)
            finally:
                result.close()
            measured = {
                "bind_seconds": bound_at - started,
                "plan_seconds": planned_at - bound_at,
                "read_seconds": time.perf_counter() - planned_at,
                "rows": rows,
                "groups": result.groups,
            }
        name, why = _chosen(plans, query)
        described = describe(bound, plans, labels, query, measured=measured, engine=(name, *why))
        lines = as_json(described) if statement.format == "json" else as_text(described)
        shown = [(redact_urls(line),) for line in lines]
        result = StaticResult([("plan", "varchar")], shown)
        return Outcome(result, tuple(each.report for each in plans), bound.notes)

    # ------------------------------------------------------------------ engines

    def _engine(
        self, plans: Sequence[ScanPlan], query: QueryContext
    ) -> tuple[Engine, tuple[str, ...]]:
        """The engine that a query runs on, and why when it was chosen for it."""
        name, why = _chosen(plans, query)
        with self._lock:
            self.check_open()
            if name not in self._engines:
                self._engines[name] = self._start_engine(name)
            return self._engines[name], why

    def _start_engine(self, name: str) -> Engine:
        if name == "spark":
            from icesql.engine.spark.engine import SparkEngine

            return SparkEngine(self._spark)
        from icesql.engine.duckdb.engine import LocalEngine

        return LocalEngine()

    def columns(self, name: str) -> list[str]:
        """The columns of a table by its name, which is never read as other SQL."""
        from icesql.query.snapshot_selection import select_snapshot
        from icesql.sql.table_name import name_parts

        self.check_open()
        with self.without_secrets():
            table = self.names.open_table(name_parts(name))
            schema = select_snapshot(table, None, self.context()).schema
        return [column.name for column in schema.fields]

    def close(self) -> None:
        """End open results, engines and catalogs; nobody is waited for. Harmless when repeated."""
        closed, self._closed = self._closed, True
        if closed or not self.is_here:
            return
        for engine in list(self._engines.values()):
            engine.close()
        self._engines.clear()
        self.names.close()


def _chosen(plans: Sequence[ScanPlan], query: QueryContext) -> tuple[str, tuple[str, ...]]:
    """The name of the engine for a query, and the reason where ``auto`` chose it."""
    name = query.settings.engine
    if name != "auto":
        return name, ()
    size = sum(plan.report.projected_bytes for plan in plans)
    limit = query.settings.spark_threshold
    name = "spark" if size > limit else "local"
    relation = "more than" if name == "spark" else "at most"
    return name, (f"engine {name}: {size:,} bytes to read, {relation} spark_threshold {limit:,}",)
