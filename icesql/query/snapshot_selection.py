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
from icesql.frozen import Frozen
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
    from icesql.iceberg.metadata.table_metadata import TableMetadata
    from icesql.iceberg.schema import Schema
    from icesql.sql.time_travel import TimeTravel

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAIN = "main"
# Some writers use ids of 128 bits.
_LONGEST_ID = 40


class SelectedSnapshot(Frozen):
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
    return _Selection(table, table.metadata, query).select(travel)


def by_schema(table: Table, selected: SelectedSnapshot, wanted: str) -> SelectedSnapshot:
    """The same with the columns of the snapshot ("snapshot") or of the table ("current")."""
    if wanted == "current":
        return replace(selected, schema=table.metadata.schema)
    if wanted == "snapshot" and selected.snapshot is not None:
        return replace(selected, schema=table.metadata.schema_of(selected.snapshot))
    return selected


def at_instant(travel: TimeTravel | None, query: QueryContext) -> TimeTravel | None:
    """``travel`` with its time, if it has one, folded to an instant. Raises SqlSyntaxError."""
    if isinstance(travel, AtTime):
        from icesql.query.time_travel import fold_instant

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


class _Selection(Struct):
    """Selects snapshots of one table."""

    table: Table
    metadata: TableMetadata
    query: QueryContext

    def select(self, travel: TimeTravel | None) -> SelectedSnapshot:
        """See ``select_snapshot``."""
        travel = at_instant(travel, self.query)
        match travel:
            case None if self.query.settings.snapshot_pinned and self.metadata.snapshots:
                return self._pinned()
            case None if self._wap_branch() is not None:
                return self._by_version(str(self.query.settings.wap_branch))
            case None:
                current = self.metadata.current_snapshot
                return SelectedSnapshot(
                    current, self.metadata.schema, MAIN if current else None, None
                )
            case SnapshotId(id=snapshot_id):
                snapshot = self.metadata.snapshot(snapshot_id)
                if snapshot is None:
                    raise self._not_found(f"snapshot {snapshot_id}", str(snapshot_id))
                return self._by_snapshot(snapshot)
            case VersionText(text=text, may_be_time=may_be_time):
                return self._by_version(text, may_be_time=may_be_time)
            case AsOf(epoch_us=epoch_us, text=text):
                return self._by_instant(epoch_us, text)
            case Before():
                return self._before(travel)
            case Back():
                return self._back(travel)
            case BranchAt():
                return self._branch_at(travel)
            case _:
                raise InternalError(f"time travel of an unknown kind: {travel!r}")

    def _wap_branch(self) -> SnapshotRef | None:
        """The session's branch for writes before an audit, if the table allows it, else None."""
        name = self.query.settings.wap_branch
        takes_part = self.metadata.properties.get("write.wap.enabled", "false").lower() == "true"
        ref = self.metadata.refs.get(name) if name is not None and takes_part else None
        return ref if ref is not None and ref.kind == "branch" else None

    def _pinned(self) -> SelectedSnapshot:
        """The snapshot at the branch, tag or time that is set for the session."""
        ref, micros = self.query.settings.snapshot_ref, self.query.settings.snapshot_micros
        shown = f"SNAPSHOT TIME {self.query.settings.snapshot_time}"
        if ref is not None:
            if is_back(ref) and micros is None and ref not in self.metadata.refs:
                found = self._earlier(self.metadata.current_snapshot, -int(ref))
            elif micros is None:
                found = self._by_version(ref)
            else:
                found = self._branch_at(BranchAt(ref, AsOf(micros, shown)))
            return replace(
                found, note=f"{found.note}; snapshot_ref {ref}, until RESET snapshot_ref"
            )
        assert micros is not None
        found = self._by_instant(micros, shown)
        return replace(found, note=f"{found.note}; {shown}, until RESET SNAPSHOT TIME")

    def _before(self, travel: Before) -> SelectedSnapshot:
        at = at_instant(travel.travel, self.query)
        if isinstance(at, AsOf):
            return self._by_instant(at.epoch_us - 1, f"before {at.text}")
        return self._earlier(self.select(at).snapshot, 1)

    def _back(self, travel: Back) -> SelectedSnapshot:
        # Some writers use negative snapshot ids.
        exact = self.metadata.snapshot(-travel.commits) if travel.ref is None else None
        if exact is not None:
            return self._by_snapshot(exact)
        head = None if travel.ref is None else VersionText(travel.ref)
        return self._earlier(self.select(head).snapshot, travel.commits)

    def _earlier(self, snapshot: Snapshot | None, commits: int) -> SelectedSnapshot:
        """The ancestor of a snapshot, ``commits`` commits before it."""
        found, left = snapshot, commits
        while left and found is not None:
            parent = found.parent_snapshot_id
            found = None if parent is None else self.metadata.snapshot(parent)
            left -= 1
        if found is None:
            of = f" before snapshot {snapshot.snapshot_id}" if snapshot is not None else ""
            raise self._not_found(f"snapshot {commits} commits{of}")
        return self._by_snapshot(found)

    def _branch_at(self, travel: BranchAt) -> SelectedSnapshot:
        """The last commit of a branch at or before a time."""
        from icesql.scan.changes import ancestors
        from icesql.sql.positions import unsupported

        at = travel.time
        assert isinstance(at, AsOf)
        if travel.branch == MAIN:
            return self._by_instant(at.epoch_us, at.text)
        head = self._by_version(travel.branch).snapshot
        ref = self.metadata.refs.get(travel.branch)
        if ref is not None and ref.kind != "branch":
            hint = f"use VERSION AS OF '{travel.branch}'"
            raise unsupported(f'the tag "{travel.branch}" at a time', None, hint)
        for snapshot in reversed(ancestors(self.table, head)):
            if snapshot.timestamp_ms * 1000 <= at.epoch_us:
                return self._by_snapshot(snapshot, travel.branch)
        shown = instant_text(at.epoch_us // 1000, self.query)
        what = f'snapshot of branch "{travel.branch}" as of {at.text} ({shown})'
        raise self._not_found(what)

    def _by_version(self, text: str, *, may_be_time: bool = False) -> SelectedSnapshot:
        if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= _LONGEST_ID:
            snapshot = self.metadata.snapshot(int(text))
            if snapshot is not None:
                return self._by_snapshot(snapshot)
        ref = self.metadata.refs.get(text)
        if ref is None:
            if text == MAIN:
                # Metadata of version 1 may have no refs; main is then the current snapshot.
                current = self.metadata.current_snapshot
                note = self._note(current, MAIN) if current else None
                return SelectedSnapshot(current, self.metadata.schema, MAIN, note)
            if back := re.fullmatch(r"(.+)~(\d{0,18})", text):
                named = MAIN if back[1].upper() == "HEAD" else back[1]
                return self._back(Back(int(back[2] or 1), named))
            if may_be_time:
                from icesql.query.constants.times import time_of_digits

                at = time_of_digits(text, self.query)
                if at is not None:
                    return self._by_instant(at, text)
            if text.upper() == "HEAD":
                return self._by_version(MAIN)
            what = f'snapshot or ref "{text}"' if text.isdigit() else f'branch or tag "{text}"'
            raise self._not_found(what, text)
        snapshot = self.metadata.snapshot(ref.snapshot_id)
        if snapshot is None:
            what = f'snapshot {ref.snapshot_id} of {ref.kind} "{text}"'
            raise self._not_found(what, text)
        schema = self.metadata.schema if ref.kind == "branch" else self.metadata.schema_of(snapshot)
        return SelectedSnapshot(snapshot, schema, text, self._note(snapshot, text))

    def _by_instant(self, epoch_us: int, text: str) -> SelectedSnapshot:
        current = self.metadata.current_snapshot
        # Commit times are whole milliseconds, so the instant can be rounded down.
        timestamp_ms = epoch_us // 1000
        snapshot = self.metadata.snapshot_as_of(timestamp_ms)
        if snapshot is None:
            what = f"snapshot as of {text} ({instant_text(timestamp_ms, self.query)})"
            raise self._not_found(what)
        last_ms = max(
            (entry.timestamp_ms for entry in self.metadata.snapshot_log),
            default=snapshot.timestamp_ms,
        )
        ref = MAIN if current is not None and current.snapshot_id == snapshot.snapshot_id else None
        note, instant = self._note(snapshot, ref), None
        if timestamp_ms > last_ms and ref == MAIN:
            instant = instant_text(timestamp_ms, self.query)
            note += f" (the current snapshot: {instant} is after the last commit)"
        return SelectedSnapshot(snapshot, self.metadata.schema_of(snapshot), ref, note, instant)

    def _by_snapshot(self, snapshot: Snapshot, ref: str | None = None) -> SelectedSnapshot:
        refs = self.metadata.refs.items()
        names = [name for name, each in refs if each.snapshot_id == snapshot.snapshot_id]
        named = ref or (MAIN if MAIN in names else min(names, default=None))
        return SelectedSnapshot(
            snapshot, self.metadata.schema_of(snapshot), ref, self._note(snapshot, named)
        )

    def _note(self, snapshot: Snapshot, ref: str | None) -> str:
        return f"{self.table.name} → snapshot {_snapshot_text(snapshot, ref, self.query)}"

    def _not_found(self, what: str, wanted: str = "") -> SnapshotNotFoundError:
        candidates = [*self.metadata.refs, *(str(each) for each in self.metadata.snapshots)]
        in_order = sorted(self.metadata.snapshots.values(), key=lambda each: each.timestamp_ms)
        reach = [
            f"{each.snapshot_id} at {instant_text(each.timestamp_ms, self.query)}"
            for each in (in_order[:1] + in_order[-1:])
        ]
        return SnapshotNotFoundError(
            what,
            table=self.table.name,
            similar=similar_names(wanted, candidates) if wanted else (),
            oldest=reach[0] if reach else None,
            newest=reach[-1] if reach else None,
            hint="" if reach else "the table has no snapshot yet",
        )
