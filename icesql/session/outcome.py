"""The state of a session between statements, and the outcome of one: its result, or an error."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.catalog.search_path import SearchPath
from icesql.engine.result import StaticResult
from icesql.errors import (
    TOO_MANY_FILES,
    Error,
    OperationalError,
    ProgrammingError,
    ScanLimitError,
)
from icesql.frozen import Frozen
from icesql.query.views.temporary import Temporary

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

    from icesql.access import Access
    from icesql.catalog.table import Catalog
    from icesql.commit.transaction import Transaction
    from icesql.config import Settings
    from icesql.engine.result import Result
    from icesql.modify.services import Modified
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan, TableScan
    from icesql.scan.report import ScanReport
    from icesql.sql.cursor import Constant
    from icesql.sql.macro import Macros
    from icesql.storage.cache import BoundedCache


Parameters = Sequence[Any] | Mapping[str, Any] | None


class Outcome(Frozen):
    """Outcome of one statement: result (if it has rows), plans of its scans, notes.

    ``scans`` are the tables that it read, each at its snapshot. ``modified`` describes the change
    made by a statement that changes tables.
    """

    result: Result | None = None
    plans: tuple[ScanPlan, ...] = ()
    notes: tuple[str, ...] = ()
    bound: BoundQuery | None = None
    scans: tuple[TableScan, ...] = ()
    modified: Modified | None = None

    @property
    def rows(self) -> Result:
        """The result of a statement that has rows."""
        assert self.result is not None
        return self.result

    @property
    def reports(self) -> tuple[ScanReport, ...]:
        """The scan reports, one for each scan."""
        return tuple(each.report for each in self.plans)

    @classmethod
    def of_change(cls, modified: Modified) -> Outcome:
        """The outcome of a statement that changes tables: one row if it changes rows."""
        notes = (modified.note,) if modified.note else ()
        if modified.rows is None:
            return cls(modified.answer, notes=notes, modified=modified)
        columns = [(name, "bigint") for name in ("rows", "files", "bytes", "snapshot_id")]
        snapshot_id = None if modified.pending else modified.snapshot_id
        row = (modified.rows, modified.files, modified.bytes, snapshot_id)
        return cls(StaticResult(columns, [row]), notes=notes, modified=modified)


# The state of a session between statements.


class State:
    """Names, settings and everything else that statements keep for later statements.

    Lower folders see it as ``query.session_state.SessionState`` and ``modify.services``.
    """

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        cache: BoundedCache,
        access: Access,
        settings: Settings,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.access = access
        # RESET returns to the defaults.
        self.defaults = self.settings = settings
        # The transaction opened by BEGIN, and whether a change without one is committed at once.
        self.transaction: Transaction | None = None
        self.autocommit = True
        self.names = SearchPath(open_catalog, cache, access, properties, lambda: self.transaction)
        # The constants of SET VARIABLE, by name in lower case.
        self.variables: dict[str, exp.Expression | Constant] = {}
        self.temporary = Temporary()
        # Macros by name in lower case.
        self.macros: Macros = {}
        # The texts of PREPARE by name.
        self.prepared: dict[str, str] = {}

    def close(self) -> None:
        """Roll back an open transaction, and close the catalogs."""
        self.names.refuse()
        if self.transaction is not None:
            self.transaction.rollback()
        self.names.close()


# ------------------------------------------------------------------ errors of other libraries


_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)


def own_error(error: Exception) -> Error | None:
    """icesql's error for another library's; None for its own and for those of caller's objects."""
    if isinstance(error, Error):
        return None
    if isinstance(error, OSError) and error.errno in _NO_MORE_FILES:
        return OperationalError(TOO_MANY_FILES)
    if isinstance(error, MemoryError):
        return ScanLimitError("out of memory: lower memory_limit or read fewer columns and rows")
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        from icesql.engine.duckdb.errors import translate

        return translate(error, ())
    from icesql.iceberg.metadata.json_fields import Malformed

    return ProgrammingError(f"refused: {error}") if isinstance(error, Malformed) else None
