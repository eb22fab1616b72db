"""The commits of a range of changes, and the scan that compares their snapshots."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from icesql.errors import ColumnNotFoundError, SnapshotNotFoundError, similar_names
from icesql.iceberg.metadata_columns import BLAME_COLUMNS, CHANGE_COLUMNS
from icesql.query.snapshot_selection import SelectedSnapshot, at_instant, select_snapshot
from icesql.query.travel.common_schema import common_schema
from icesql.scan.changes import ChangeScan, Commit, change_schema
from icesql.scan.incremental import APPEND, ancestors, snapshots_after
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.time_travel import AsOf, AtTime, TimeTravel

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.schema import Schema
    from icesql.iceberg.types import NestedField
    from icesql.sql.change_range import ChangeRange


def change_scan(
    table: Table, wanted: ChangeRange, query: QueryContext
) -> tuple[TableScan, SelectedSnapshot]:
    """The scan of the changes in the schema of the range's end, and the selected end.

    Raises SnapshotNotFoundError if snapshots of the range are expired or its end does not descend
    from its start, ColumnNotFoundError for a key, UnsupportedSqlError for updates without keys.
    """
    end = select_snapshot(table, _moment(wanted.end, wanted.includes_end, query), query)
    last = end.snapshot
    if not wanted.includes_end and not isinstance(wanted.end, AsOf | AtTime | None):
        last = _parent(table, last)
    commits: tuple[Commit, ...]
    if wanted.direct:
        first = select_snapshot(table, at_instant(wanted.start, query), query)
        same = first.snapshot and last and first.snapshot.snapshot_id == last.snapshot_id
        commits = () if same or last is None else (Commit(first.snapshot, last),)
        end = replace(end, schema=common_schema(end.schema, first.schema))
    elif wanted.blame:
        commits = _known(table, last)
    else:
        commits = _commits(table, wanted, last, query)
    updates = wanted.compute_updates
    keys = _keys(end.schema, commits, wanted) if updates or wanted.blame else ()
    if wanted.blame:
        updates = bool(keys)  # by row ids, every changed row would have to be read
        end = replace(end, note=_blame_note(table, commits, end.note))
    changes = ChangeScan(commits, wanted.deduplication, updates, keys)
    columns: tuple[NestedField, ...] = CHANGE_COLUMNS
    if wanted.direct:
        columns = CHANGE_COLUMNS[:1]
    elif wanted.blame:
        columns = (*CHANGE_COLUMNS, *BLAME_COLUMNS)
    schema = change_schema(end.schema, columns)
    return TableScan(table, last, schema, schema, ref=end.ref, changes=changes), end


def _commits(
    table: Table, wanted: ChangeRange, last: Snapshot | None, query: QueryContext
) -> tuple[Commit, ...]:
    history = _history(table, wanted, last, query)
    before = None
    if history and history[0].parent_snapshot_id is not None:
        before = table.metadata.snapshot(history[0].parent_snapshot_id)
    made = []
    for each in history:
        if not wanted.appends_only or (each.operation or "").lower() == APPEND:
            made.append(Commit(before, each))
        before = each
    return tuple(made)


def _known(table: Table, last: Snapshot | None) -> tuple[Commit, ...]:
    """All known commits; for the first one only its rows if its parent is expired."""
    history = ancestors(table, last)
    if not history:
        return ()
    first = Commit(None, history[0], first_known=history[0].parent_snapshot_id is not None)
    return (first, *(Commit(*pair) for pair in pairwise(history)))


def _blame_note(table: Table, commits: tuple[Commit, ...], note: str | None) -> str | None:
    first = commits[0] if commits else None
    if first is None or not first.first_known or first.after is None:
        return note
    expired = (
        f"{table.name}: commits before snapshot {first.after.snapshot_id} are expired; rows that "
        'were there by then are "present"'
    )
    return expired if note is None else f"{note}; {expired}"


def _history(
    table: Table, wanted: ChangeRange, last: Snapshot | None, query: QueryContext
) -> tuple[Snapshot, ...]:
    """The snapshots of the range, oldest first."""
    if last is None:
        return ()
    start = _moment(wanted.start, not wanted.includes_start, query)
    if start is None:
        return _from_the_beginning(table, last)
    try:
        first = select_snapshot(table, start, query).snapshot
    except SnapshotNotFoundError:
        # The table was empty before the first commit, if that commit is still known.
        log = table.metadata.snapshot_log
        if not isinstance(start, AsOf) or any(
            entry.timestamp_ms <= start.epoch_us // 1000 for entry in log
        ):
            raise
        return _from_the_beginning(table, last)
    assert first is not None
    if wanted.includes_start and not isinstance(start, AsOf):
        if first.parent_snapshot_id is None:
            return _from_the_beginning(table, last)
        after = snapshots_after(table, first.parent_snapshot_id, last)
        if not after or after[0].snapshot_id != first.snapshot_id:
            snapshots_after(table, first.snapshot_id, last)  # raises the reason
        if table.metadata.snapshot(first.parent_snapshot_id) is None:
            raise _expired(table, first)
        return after
    return snapshots_after(table, first.snapshot_id, last)


def _from_the_beginning(table: Table, last: Snapshot) -> tuple[Snapshot, ...]:
    history = ancestors(table, last)
    if history[0].parent_snapshot_id is not None:
        raise _expired(table, history[0])
    return history


def _expired(table: Table, oldest: Snapshot) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(
        f"snapshot {oldest.parent_snapshot_id}, the state before snapshot {oldest.snapshot_id}",
        table=table.name,
        oldest=str(oldest.snapshot_id),
        hint="it is expired, so what that commit changed is not known",
    )


def _moment(travel: TimeTravel | None, included: bool, query: QueryContext) -> TimeTravel | None:
    """The version; a time as it is, or 1 ms earlier if the bound is exclusive."""
    found = at_instant(travel, query)
    if isinstance(found, AsOf) and not included:
        return replace(found, epoch_us=(found.epoch_us // 1000) * 1000 - 1)
    return found


def _parent(table: Table, snapshot: Snapshot | None) -> Snapshot | None:
    if snapshot is None or snapshot.parent_snapshot_id is None:
        return None
    found = table.metadata.snapshot(snapshot.parent_snapshot_id)
    if found is None:
        raise _expired(table, snapshot)
    return found


def _keys(schema: Schema, commits: tuple[Commit, ...], wanted: ChangeRange) -> tuple[int, ...]:
    """The columns that identify versions of one row; none if row ids identify them.

    Raises UnsupportedSqlError if there are neither, and ColumnNotFoundError.
    """
    if not wanted.keys:
        states = [each for commit in commits for each in (commit.before, commit.after)]
        has_ids = all(each is None or each.first_row_id is not None for each in states)
        if wanted.blame or not has_ids:
            own = tuple(schema.identifier_field_ids)
            if own or wanted.blame:
                return own
            raise unsupported(
                "updates of a table without row ids and without identifier fields",
                wanted.offset,
                "name the columns that tell rows apart: KEYED BY (column, …)",
            )
        return ()
    found = []
    for name in wanted.keys:
        column = schema.find_column(name)
        if column is None:
            names = [each.name for each in schema.fields]
            raise ColumnNotFoundError(
                name, table=None, similar=similar_names(name, names), offset=wanted.offset
            )
        found.append(column.field_id)
    return tuple(found)
