"""The services of a session for statements that change tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from icesql.query.session_state import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from icesql.commit.transaction import Transaction
    from icesql.context import QueryContext
    from icesql.engine.engines import Engines
    from icesql.engine.protocol import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.query.bound import BoundQuery
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.scan.table_scan import TableScan
    from icesql.sql.statement import Query

    Scans = tuple[TableScan, ...]
    # Gives the scans that are read in the place of those that a query was bound to.
    Narrow = Callable[[Scans], Scans]


class ChangedState(SessionState, Protocol):
    """The state of a session, of which statements begin and end the transaction."""

    transaction: Transaction | None
    autocommit: bool


class StatementServices(Protocol):
    """The session for one statement: its state, its context, and answers to queries.

    ``dialect`` is the spelling of the statement; "" is the default. Queries raise what
    ``Session.execute`` raises. Whoever is given a Result closes it.
    """

    state: ChangedState
    query: QueryContext
    dialect: str
    engines: Engines

    def run(self, read: Query) -> tuple[Result, Scans]:
        """The rows of a query, and what it reads, in the order of its text."""

    def run_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Result, Scans]:
        """The same on the local engine, with more tables, by their names in lower case."""

    def plan_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[BoundQuery, tuple[ScanPlan, ...]]:
        """The query that ``run_here`` would run, and what that would read. Runs nothing."""

    def columns_of(self, read: Query) -> tuple[ResultColumn, ...]:
        """The columns of the rows of a query, by the metadata of its tables: no file is opened."""

    def scans_of(self, read: Query) -> Scans:
        """The scans of a query. Runs nothing."""

    def scans_of_condition(self, text: str) -> Scans:
        """The scans of ``SELECT … FROM … WHERE …``. Runs nothing.

        Raises ProgrammingError for a text that is or has more than that.
        """
