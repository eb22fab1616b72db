"""Select the snapshot, schema and ref of a table for a reference.

A branch (and no travel at all) reads by the table's current schema, everything else by the schema
of its snapshot. Instants follow the snapshot log, which has the current snapshot at each time, so
rolled-back and staged snapshots never qualify. Source: semantics of Iceberg's TableScan and
Spark's VERSION AS OF.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from icesql.config import time_zone
from icesql.errors import InternalError, SnapshotNotFoundError, similar_names
from icesql.sql.time_travel import (
    AsOf,
    AtTime,
    Back,
    Before,
    BranchAt,
    SnapshotId,
    VersionText,
    is_back,
)

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
    from icesql.iceberg.schema import Schema
    from icesql.sql.time_travel import TimeTravel

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAIN = "main"
# Some writers use ids of 128 bits.
_LONGEST_ID = 40


class SelectedSnapshot(Struct, frozen=True):
    """``snapshot`` is None only for a table without snapshots; ``ref`` names the branch or tag.

    ``after_last_commit`` is the requested instant, if the last commit was before it.
    """

    snapshot: Snapshot | None
    schema: Schema
    ref: str | None
    note: str | None
    after_last_commit: str | None = None

    def text(self, query: QueryContext) -> str | None:
        """Such as ``812 (main) committed 2026-11-19 14:02:11 Europe/Berlin``."""
        snapshot = self.snapshot
        return None if snapshot is None else _snapshot_text(snapshot, self.ref, query)


def select_snapshot(
    table: Table, travel: TimeTravel | None, query: QueryContext
) -> SelectedSnapshot:
    """The snapshot of ``table`` that ``travel`` selects; ``note`` describes it after time travel.

    Raises SnapshotNotFoundError with the nearest refs and the oldest and newest snapshot, and
    SqlSyntaxError for a time that is not constant.
    """
    metadata = table.metadata
    travel = at_instant(travel, query)
    match travel:
        case None if query.settings.snapshot_pinned and metadata.snapshots:
            return _pinned(table, query)
        case None if _wap_branch(table, query) is not None:
            return _by_version(table, str(query.settings.wap_branch), query)
        case None:
            current = metadata.current_snapshot
            return SelectedSnapshot(current, metadata.schema, MAIN if current else None, None)
        case SnapshotId(id=snapshot_id):
            snapshot = metadata.snapshot(snapshot_id)
            if snapshot is None:
                raise _not_found(table, f"snapshot {snapshot_id}", str(snapshot_id), query)
            return _by_snapshot(table, snapshot, None, query)
        case VersionText(text=text, may_be_time=may_be_time):
            return _by_version(table, text, query, may_be_time=may_be_time)
        case AsOf(epoch_us=epoch_us, text=text):
            return _by_instant(table, epoch_us, text, query)
        case Before():
            return _before(table, travel, query)
        case Back():
            return _back(table, travel, query)
        case BranchAt():
            return _branch_at(table, travel, query)
        case _:
            raise InternalError(f"time travel of an unknown kind: {travel!r}")


def _wap_branch(table: Table, query: QueryContext) -> SnapshotRef | None:
    """The session's branch for writes before an audit, if the table allows it, else None."""
    name = query.settings.wap_branch
    takes_part = table.metadata.properties.get("write.wap.enabled", "false").lower() == "true"
    ref = table.metadata.refs.get(name) if name is not None and takes_part else None
    return ref if ref is not None and ref.kind == "branch" else None


def _pinned(table: Table, query: QueryContext) -> SelectedSnapshot:
    """The snapshot at the branch, tag or time that is set for the session."""
    ref, micros = query.settings.snapshot_ref, query.settings.snapshot_micros
    shown = f"SNAPSHOT TIME {query.settings.snapshot_time}"
    if ref is not None:
        if is_back(ref) and micros is None and ref not in table.metadata.refs:
            found = _earlier(table, table.metadata.current_snapshot, -int(ref), query)
        elif micros is None:
            found = _by_version(table, ref, query)
        else:
            found = _branch_at(table, BranchAt(ref, AsOf(micros, shown)), query)
        return replace(found, note=f"{found.note}; snapshot_ref {ref}, until RESET snapshot_ref")
    assert micros is not None
    found = _by_instant(table, micros, shown, query)
    return replace(found, note=f"{found.note}; {shown}, until RESET SNAPSHOT TIME")


def by_schema(table: Table, selected: SelectedSnapshot, wanted: str) -> SelectedSnapshot:
    """The same with the columns of the snapshot ("snapshot") or of the table ("current")."""
    if wanted == "current":
        return replace(selected, schema=table.metadata.schema)
    if wanted == "snapshot" and selected.snapshot is not None:
        return replace(selected, schema=table.metadata.schema_of(selected.snapshot))
    return selected


def _before(table: Table, travel: Before, query: QueryContext) -> SelectedSnapshot:
    at = at_instant(travel.travel, query)
    if isinstance(at, AsOf):
        return _by_instant(table, at.epoch_us - 1, f"before {at.text}", query)
    found = select_snapshot(table, at, query).snapshot
    return _earlier(table, found, 1, query)


def _back(table: Table, travel: Back, query: QueryContext) -> SelectedSnapshot:
    # Some writers use negative snapshot ids.
    exact = table.metadata.snapshot(-travel.commits) if travel.ref is None else None
    if exact is not None:
        return _by_snapshot(table, exact, None, query)
    head = None if travel.ref is None else VersionText(travel.ref)
    return _earlier(table, select_snapshot(table, head, query).snapshot, travel.commits, query)


def _earlier(
    table: Table, snapshot: Snapshot | None, commits: int, query: QueryContext
) -> SelectedSnapshot:
    """The ancestor of a snapshot, ``commits`` commits before it."""
    found, left = snapshot, commits
    while left and found is not None:
        parent = found.parent_snapshot_id
        found = None if parent is None else table.metadata.snapshot(parent)
        left -= 1
    if found is None:
        of = f" before snapshot {snapshot.snapshot_id}" if snapshot is not None else ""
        raise _not_found(table, f"snapshot {commits} commits{of}", "", query)
    return _by_snapshot(table, found, None, query)


def _branch_at(table: Table, travel: BranchAt, query: QueryContext) -> SelectedSnapshot:
    """The last commit of a branch at or before a time."""
    from icesql.scan.incremental import ancestors
    from icesql.sql.positions import unsupported

    at = travel.time
    assert isinstance(at, AsOf)
    if travel.branch == MAIN:
        return _by_instant(table, at.epoch_us, at.text, query)
    head = _by_version(table, travel.branch, query).snapshot
    ref = table.metadata.refs.get(travel.branch)
    if ref is not None and ref.kind != "branch":
        hint = f"use VERSION AS OF '{travel.branch}'"
        raise unsupported(f'the tag "{travel.branch}" at a time', None, hint)
    for snapshot in reversed(ancestors(table, head)):
        if snapshot.timestamp_ms * 1000 <= at.epoch_us:
            return _by_snapshot(table, snapshot, travel.branch, query)
    shown = instant_text(at.epoch_us // 1000, query)
    what = f'snapshot of branch "{travel.branch}" as of {at.text} ({shown})'
    raise _not_found(table, what, "", query)


def at_instant(travel: TimeTravel | None, query: QueryContext) -> TimeTravel | None:
    """``travel`` with its time, if it has one, folded to an instant. Raises SqlSyntaxError."""
    if isinstance(travel, AtTime):
        from icesql.query.travel.instant import fold_instant

        return AsOf(fold_instant(travel, query), travel.text)
    if isinstance(travel, BranchAt):
        return replace(travel, time=at_instant(travel.time, query))
    return travel


def pinned_time(travel: TimeTravel, query: QueryContext) -> str:
    """The text of a time for the setting ``snapshot_time``. Raises SqlSyntaxError."""
    found = at_instant(travel, query)
    if not isinstance(found, AsOf):
        raise InternalError(f"no time: {travel!r}")
    moment = datetime(1970, 1, 1) + timedelta(microseconds=found.epoch_us)
    return f"{moment.isoformat(' ')} UTC"


def _snapshot_text(snapshot: Snapshot, ref: str | None, query: QueryContext) -> str:
    """The text ``812 (main) committed 2026-11-19 14:02:11 Europe/Berlin``."""
    name = f" ({ref})" if ref else ""
    return f"{snapshot.snapshot_id}{name} committed {instant_text(snapshot.timestamp_ms, query)}"


def instant_text(timestamp_ms: int, query: QueryContext) -> str:
    """The text of an instant in the session's zone, with milliseconds unless they are zero."""
    try:
        local = session_time(timestamp_ms, query)
    except (OverflowError, ValueError):
        return f"{timestamp_ms} ms after 1970"
    fraction = f".{local.microsecond // 1000:03d}" if local.microsecond else ""
    return f"{local:%Y-%m-%d %H:%M:%S}{fraction} {query.settings.timezone}"


def session_time(timestamp_ms: int, query: QueryContext) -> datetime:
    """An instant in the session's zone. Raises OverflowError and ValueError."""
    at = _EPOCH + timedelta(milliseconds=timestamp_ms)
    return at.astimezone(time_zone(query.settings.timezone))


def _by_version(
    table: Table, text: str, query: QueryContext, *, may_be_time: bool = False
) -> SelectedSnapshot:
    metadata = table.metadata
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= _LONGEST_ID:
        snapshot = metadata.snapshot(int(text))
        if snapshot is not None:
            return _by_snapshot(table, snapshot, None, query)
    ref = metadata.refs.get(text)
    if ref is None:
        if text == MAIN:
            # Metadata of version 1 may have no refs; main is then the current snapshot.
            current = metadata.current_snapshot
            note = _note(table, current, MAIN, query) if current else None
            return SelectedSnapshot(current, metadata.schema, MAIN, note)
        if back := re.fullmatch(r"(.+)~(\d{0,18})", text):
            named = MAIN if back[1].upper() == "HEAD" else back[1]
            return _back(table, Back(int(back[2] or 1), named), query)
        if may_be_time:
            from icesql.query.constants.time_units import time_of_digits

            at = time_of_digits(text, query)
            if at is not None:
                return _by_instant(table, at, text, query)
        if text.upper() == "HEAD":
            return _by_version(table, MAIN, query)
        what = f'snapshot or ref "{text}"' if text.isdigit() else f'branch or tag "{text}"'
        raise _not_found(table, what, text, query)
    snapshot = metadata.snapshot(ref.snapshot_id)
    if snapshot is None:
        what = f'snapshot {ref.snapshot_id} of {ref.kind} "{text}"'
        raise _not_found(table, what, text, query)
    schema = metadata.schema if ref.kind == "branch" else metadata.schema_of(snapshot)
    return SelectedSnapshot(snapshot, schema, text, _note(table, snapshot, text, query))


def _by_instant(table: Table, epoch_us: int, text: str, query: QueryContext) -> SelectedSnapshot:
    metadata = table.metadata
    current = metadata.current_snapshot
    # Commit times are whole milliseconds, so the instant can be rounded down.
    timestamp_ms = epoch_us // 1000
    snapshot = metadata.snapshot_as_of(timestamp_ms)
    if snapshot is None:
        what = f"snapshot as of {text} ({instant_text(timestamp_ms, query)})"
        raise _not_found(table, what, "", query)
    last_ms = max(
        (entry.timestamp_ms for entry in metadata.snapshot_log),
        default=snapshot.timestamp_ms,
    )
    ref = MAIN if current is not None and current.snapshot_id == snapshot.snapshot_id else None
    note, instant = _note(table, snapshot, ref, query), None
    if timestamp_ms > last_ms and ref == MAIN:
        instant = instant_text(timestamp_ms, query)
        note += f" (the current snapshot: {instant} is after the last commit)"
    return SelectedSnapshot(snapshot, metadata.schema_of(snapshot), ref, note, instant)


def _by_snapshot(
    table: Table, snapshot: Snapshot, ref: str | None, query: QueryContext
) -> SelectedSnapshot:
    metadata = table.metadata
    named = ref or _ref_of(table, snapshot)
    return SelectedSnapshot(
        snapshot, metadata.schema_of(snapshot), ref, _note(table, snapshot, named, query)
    )


def _ref_of(table: Table, snapshot: Snapshot) -> str | None:
    refs = table.metadata.refs
    names = [name for name, ref in refs.items() if ref.snapshot_id == snapshot.snapshot_id]
    return MAIN if MAIN in names else min(names, default=None)


def _note(table: Table, snapshot: Snapshot, ref: str | None, query: QueryContext) -> str:
    return f"{table.name} → snapshot {_snapshot_text(snapshot, ref, query)}"


def _not_found(table: Table, what: str, wanted: str, query: QueryContext) -> SnapshotNotFoundError:
    metadata = table.metadata
    candidates = [*metadata.refs, *(str(each) for each in metadata.snapshots)]
    in_order = sorted(metadata.snapshots.values(), key=lambda each: each.timestamp_ms)
    reach = [
        f"{each.snapshot_id} at {instant_text(each.timestamp_ms, query)}"
        for each in (in_order[:1] + in_order[-1:])
    ]
    return SnapshotNotFoundError(
        what,
        table=table.name,
        similar=similar_names(wanted, candidates) if wanted else (),
        oldest=reach[0] if reach else None,
        newest=reach[-1] if reach else None,
        hint="" if reach else "the table has no snapshot yet",
    )
