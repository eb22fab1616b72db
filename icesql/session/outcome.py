"""The outcome of one statement in the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from icesql.engine.static import StaticResult

if TYPE_CHECKING:
    from icesql.engine.protocol import Result
    from icesql.modify.modified import Modified
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.scan.report import ScanReport
    from icesql.scan.table_scan import TableScan

Parameters = Sequence[Any] | Mapping[str, Any] | None


class Outcome(Struct, frozen=True):
    """Outcome of one statement: result (if it has rows), plans of its scans, notes.

    ``scans`` are the tables that it read, each at its snapshot. ``modified`` is what a statement
    that changes tables has done.
    """

    result: Result | None = None
    plans: tuple[ScanPlan, ...] = ()
    notes: tuple[str, ...] = ()
    bound: BoundQuery | None = None
    scans: tuple[TableScan, ...] = ()
    modified: Modified | None = None

    @property
    def reports(self) -> tuple[ScanReport, ...]:
        """One for each scan."""
        return tuple(each.report for each in self.plans)

    @classmethod
    def of_change(cls, modified: Modified) -> Outcome:
        """The outcome of a statement that changes tables: one row if it concerns rows."""
        notes = (modified.note,) if modified.note else ()
        if modified.rows is None:
            return cls(modified.answer, notes=notes, modified=modified)
        columns = [(name, "bigint") for name in ("rows", "files", "bytes", "snapshot_id")]
        snapshot_id = None if modified.pending else modified.snapshot_id
        row = (modified.rows, modified.files, modified.bytes, snapshot_id)
        return cls(StaticResult(columns, [row]), notes=notes, modified=modified)
