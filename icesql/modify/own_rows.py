"""Whether a statement that replaces rows of a table makes the new ones of the table itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.scan.table_scan import TableScan


def read_of(scans: Iterable[TableScan], table: Table, start_id: int | None) -> Predicate | None:
    """A predicate of the rows that scans read of the table as it is; None if they read none.

    ``start_id`` is the head of the branch that changes. A statement that names a time, a tag or
    another branch means these rows, whatever came since.
    """
    own = []
    for each in scans:
        found = None if each.snapshot is None else each.snapshot.snapshot_id
        # Or a newer one: the table was looked at before the query was.
        is_now = found == start_id or found not in table.metadata.snapshots
        if is_now and each.table.metadata.table_uuid == table.metadata.table_uuid:
            own.append(each)
    if not own:
        return None
    return own[0].row_filter if len(own) == 1 else ALWAYS_TRUE
