"""The services that a session gives to statements that change tables, and their outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from icesql.config import Settings
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.query.session_state import SessionState

if TYPE_CHECKING:
    from icesql.engine.result import Result
    from icesql.write.written import Written


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from icesql.commit.transaction import Transaction
    from icesql.context import QueryContext
    from icesql.engine.engines import Engines
    from icesql.engine.result import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.query.bound import BoundQuery
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan, TableScan
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


# ------------------------------------------------------------------ outcome


PENDING: Final = "not committed yet"


class Modified(Frozen):
    """The number of rows that a statement added, removed or changed; None if it changes no rows.

    ``files`` and ``bytes`` count the data files that it wrote. ``snapshot_id`` is None if no
    snapshot was created: nothing was to be done, or only metadata changed. ``note`` is for the
    user. ``answer`` holds the rows that the statement itself returns, as CALL does. ``pending``: a
    transaction is open, and others do not see the change before its COMMIT. ``evolved``: the table
    got columns, even if no row was added.
    """

    rows: int | None = None
    files: int = 0
    bytes: int = 0
    snapshot_id: int | None = None
    note: str = ""
    answer: Result | None = None
    pending: bool = False
    evolved: bool = False

    @classmethod
    def of(cls, written: Written, snapshot_id: int | None) -> Modified:
        """The outcome of the commit of written rows."""
        return cls(written.rows, len(written.files), written.bytes, snapshot_id)

    @property
    def message(self) -> str:
        """Such as ``12 files, 3.4 M rows, 96 MB, snapshot 812…``; "" if ``rows`` is None."""
        if self.rows is None:
            return ""
        if self.snapshot_id is None:
            what = "columns changed" if self.evolved else "nothing to commit"
            return f"{_count(self.rows, 'row')}, {what}"
        parts = [_count(self.rows, "row")]
        if self.files:
            parts = [_count(self.files, "file"), *parts, in_bytes(self.bytes)]
        return ", ".join((*parts, PENDING if self.pending else f"snapshot {self.snapshot_id}"))


def in_bytes(number: int) -> str:
    """A size such as ``96 MB``, in units of 1,000."""
    amount, units = float(number), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}" if amount < 1000 else f"{amount:,.0f} {units[0]}"


def _count(number: int, what: str) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if number >= size:
            return f"{number / size:.1f} {unit} {what}s"
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def check_present(settings: Settings) -> None:
    """Raise ProgrammingError if the session is set to read tables at a past time or at a ref.

    A statement would change another state of the table than the session sees.
    """
    if not settings.snapshot_pinned:
        return
    pinned = {"SNAPSHOT TIME": settings.snapshot_time, "snapshot_ref": settings.snapshot_ref}
    names = [name for name, value in pinned.items() if value is not None]
    at = ", ".join(f"{name} = '{pinned[name]}'" for name in names)
    branch = " (a branch is written to as table.branch_x)" if "snapshot_ref" in names else ""
    raise ProgrammingError(
        f"this session reads tables as they were ({at}); "
        f"{' and '.join(f'RESET {name}' for name in names)} before rows are changed or tables "
        f"altered{branch}; CREATE TABLE new_name AS SELECT … saves rows of then"
    )
