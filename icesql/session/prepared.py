"""Prepared statements: reuse a query when the same text runs again.

A text is prepared when it runs for the second time, because most texts run once; over tables in an
object store at once, because preparing is cheap compared to their requests. One object holds its
parsed statement, its bound query, its plans and findings of the engine from earlier runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.engine.duckdb.prepared_run import PreparedRun
    from icesql.query.bound import BoundQuery
    from icesql.query.prepared_query import PreparedQuery
    from icesql.scan.plan import ScanPlan, TableScan
    from icesql.sql.statement import Query

_MOST_TEXTS: Final = 256
_LONGEST_TEXT: Final = 10_000
_MOST_BYTES: Final = 30_000_000
# A statement counts as a 64th of them at least, so that there are no more than 64.
_LEAST_BYTES: Final = _MOST_BYTES // 64
_NODE_BYTES: Final = 1_000
_FILE_BYTES: Final = 2_500
# The limit for the plans of one statement.
_MOST_FILES: Final = 2_000


class QueryText(Frozen):
    """A query as text, with its parsed statement or its prepared statement."""

    sql: str
    parameters: Any
    statement: Query | None = None
    prepared: PreparedStatement | None = None


class PreparedStatement:
    """One text: its statement and bound query, the latest plans, and findings of earlier runs.

    Plans are kept for queries without parameters, and are valid for the same state of the tables.
    """

    def __init__(self, sql: str, query: PreparedQuery, run: PreparedRun) -> None:
        self.sql, self.query, self.run = sql, query, run
        self._plans: tuple[ScanPlan, ...] = ()

    @property
    def size(self) -> int:
        """The approximate number of bytes in memory."""
        files = sum(1 + len(plan.files) for plan in self._plans)
        return max(self.query.nodes * _NODE_BYTES + files * _FILE_BYTES, _LEAST_BYTES)

    def plans(self, scans: Sequence[TableScan]) -> list[ScanPlan] | None:
        """The plans of these scans, if they are kept and the tables are the same, else None."""
        plans = self._plans
        if not plans or not all(
            _is_same(plan.scan.table, scan.table) for plan, scan in zip(plans, scans, strict=True)
        ):
            return None
        return list(plans)

    def keep_plans(self, plans: Sequence[ScanPlan]) -> bool:
        """Keep plans, except for queries with parameters, very many files or metadata tables."""
        if self.query.kinds:
            return False
        plain = all(each.metadata is None and each.planned_by is None for each in plans)
        if not plain or sum(1 + len(each.files) for each in plans) > _MOST_FILES:
            return False
        self._plans = tuple(plans)
        self.run.begin_plans()
        return True


class PreparedStatements:
    """The latest prepared statements of one session, by their texts. Thread-safe."""

    def __init__(self) -> None:
        self._texts = BoundedCache(_MOST_TEXTS)
        self._statements = BoundedCache(_MOST_BYTES)

    def find(self, sql: str, parameters: object) -> PreparedStatement | None:
        """The statement of a text that was prepared with values of the same types, else None."""
        found: PreparedStatement | None = self._statements.get(sql)
        return None if found is None or not found.query.takes(parameters) else found

    def note(
        self, text: QueryText, statement: Query, bound: BoundQuery, query: QueryContext
    ) -> PreparedStatement | None:
        """Count a text; prepare it when due, if it depends only on its text and metadata.

        It is due at its second use, or at once over tables in stores. Returns the prepared
        statement,
        else None.
        """
        key = hash(text.sql)
        if self._texts.get(key) is None:
            self._texts.put(key, key, 1)
            if not any(each.table.is_in_store for each in bound.scans):
                return None
        from icesql.engine.duckdb.prepared_run import PreparedRun
        from icesql.query.prepared_query import prepare

        short = len(text.sql) <= _LONGEST_TEXT
        found = prepare(text.parameters, statement, bound, query) if short else None
        if found is None:
            self._statements.remove(text.sql)
            return None
        made = PreparedStatement(text.sql, found, PreparedRun())
        self._statements.put(made.sql, made, made.size)
        return made

    def plan(
        self, prepared: PreparedStatement | None, scans: Sequence[TableScan], query: QueryContext
    ) -> list[ScanPlan]:
        """A plan for each scan. A prepared statement keeps them for the next use if possible."""
        from icesql.scan.planner import plan

        started = time.perf_counter()
        known = None if prepared is None else prepared.plans(scans)
        if known is not None:
            seconds = time.perf_counter() - started
            return [replace(each, planning_seconds=seconds) for each in known]
        plans = [plan(scan, query) for scan in scans]
        if prepared is not None and prepared.keep_plans(plans):
            kept: PreparedStatement | None = self._statements.get(prepared.sql)
            # A statement that was dropped meanwhile stays dropped.
            if kept is prepared:
                self._statements.put(prepared.sql, prepared, prepared.size)
        return plans

    def __len__(self) -> int:
        return len(self._statements)


def _is_same(known: Table, found: Table) -> bool:
    """Whether two loads of a local table gave the same metadata and access to its files.

    The prepared query has compared the names and locations of both.
    """
    return (
        known.metadata is found.metadata
        and known.storage.properties == found.storage.properties
        and found.storage.reroot is not None
        # A symbolic link in place of a folder may have changed.
        and found.storage.confine is None
        and found.planning is None
        and found.reports is None
    )
