"""The services that a session gives to statements that change tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from icesql.query.session_state import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from icesql.commit.transaction import Transaction
    from icesql.context import QueryContext
    from icesql.engine.engines import Engines
    from icesql.engine.result_reader import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.query.bound import BoundQuery
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.scan.table_scan import TableScan
    from icesql.sql.statement import Query

    Scans = tuple[TableScan, ...]
    # Gives the scans to read in place of those that a query was bound to.
    Narrow = Callable[[Scans], Scans]


class ChangedState(SessionState, Protocol):
    """The state of a session, in which statements begin and end the transaction."""

    transaction: Transaction | None
    autocommit: bool


class StatementServices(Protocol):
    """The session for one statement: its state, its context, and a way to run queries.

    ``dialect`` is the statement's SQL dialect; "" is the default. Queries raise what
    ``Session.execute`` raises. The caller closes each Result.
    """

    state: ChangedState
    query: QueryContext
    dialect: str
    engines: Engines

    def run(self, read: Query) -> tuple[Result, Scans]:
        """Run a query; return its rows, and its scans in the order of the text."""

    def run_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Result, Scans]:
        """As ``run`` on the local engine, with more tables, by their names in lower case."""

    def plan_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[BoundQuery, tuple[ScanPlan, ...]]:
        """The bound query that ``run_here`` would run, and its plans. Runs nothing."""

    def columns_of(self, read: Query) -> tuple[ResultColumn, ...]:
        """The result columns of a query, by the metadata of its tables: no file is opened."""

    def scans_of(self, read: Query) -> Scans:
        """The scans of a query. Runs nothing."""

    def scans_of_condition(self, text: str) -> Scans:
        """The scans of ``SELECT … FROM … WHERE …``. Runs nothing.

        Raises ProgrammingError for any other text.
        """
