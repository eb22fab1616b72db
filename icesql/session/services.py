"""The services of the session for statements that change tables; see ``modify.services``."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icesql.context import QueryContext
    from icesql.engine.result_reader import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.modify.services import ChangedState, Narrow, Scans
    from icesql.query.bound import BoundQuery
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.session.pipeline import Pipeline
    from icesql.sql.statement import Query

# The clauses of a query that consists only of a condition.
_OF_CONDITION: Final = frozenset({"expressions", "from_", "where"})


class Services:
    """``modify.services.StatementServices`` for one statement."""

    def __init__(self, pipeline: Pipeline, query: QueryContext) -> None:
        self._pipeline, self.query = pipeline, query
        self.state: ChangedState = pipeline.state
        self.dialect, self.engines = pipeline.dialect or "", pipeline.engines

    def run(self, read: Query) -> tuple[Result, Scans]:
        """The rows of a query, and its scans, in the order of its text."""
        outcome = self._pipeline.run(read, self.query)
        return outcome.rows, outcome.scans

    def run_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Result, Scans]:
        """The same on the local engine, with additional tables by name in lower case."""
        statement, bound, query = self._here(read, tables, narrow)
        outcome = self._pipeline.run_bound(statement, bound, query)
        return outcome.rows, outcome.scans

    def plan_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[BoundQuery, tuple[ScanPlan, ...]]:
        """The query that ``run_here`` would run, and its plans. Runs nothing."""
        statement, bound, query = self._here(read, tables, narrow)
        with statement.placing():
            return bound, self._pipeline.plan(bound, query)

    def columns_of(self, read: Query) -> tuple[ResultColumn, ...]:
        """The result columns of a query, from metadata of its tables: no file is opened."""
        statement, bound = self._pipeline.bind(replace(read, for_explain=True), self.query)
        bound = replace(bound, scans=tuple(replace(each, limit=0) for each in bound.scans))
        with closing(self._pipeline.run_bound(statement, bound, self.query).rows) as result:
            return result.columns

    def scans_of(self, read: Query) -> Scans:
        """The scans of a query. Runs nothing."""
        return self._pipeline.bind(read, self.query)[1].scans

    def scans_of_condition(self, text: str) -> Scans:
        """The scans of ``SELECT … FROM … WHERE …``. Runs nothing.

        Raises ProgrammingError for a text with anything more than that.
        """
        from icesql.query.pushdown.select_keys import has_only
        from icesql.sql.statement import Query

        read = self._pipeline.parse(text)
        match read:
            case [Query(tree=tree) as condition] if has_only(tree, _OF_CONDITION):
                return self.scans_of(condition)
        raise ProgrammingError("it is more than a condition")

    def _here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Query, BoundQuery, QueryContext]:
        # Only the local engine reads tables in memory, also with ``auto``.
        settings = replace(self.query.settings, engine="local")
        query = replace(self.query, tables={**self.query.tables, **tables}, settings=settings)
        statement, bound = self._pipeline.bind(read, query)
        return statement, replace(bound, scans=narrow(bound.scans)), query
