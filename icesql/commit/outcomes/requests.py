"""Requests that were sent and have no certain answer: see ``commit``.

Source: Java ``BaseMetastoreTableOperations.checkCommitStatus``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from icesql.catalog.table import Table
from icesql.catalog.writes.change import Conflict, TableChange, Unknown
from icesql.errors import AccessDeniedError, Error, StorageError
from icesql.iceberg.metadata.changes import requirements as r
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import apply_updates, is_changed
from icesql.iceberg.metadata.changes.snapshots import (
    has_lost_snapshots,
    has_snapshots,
    snapshot_ids,
)
from icesql.iceberg.metadata.table_metadata import TableMetadata, metadata_document
from icesql.storage.new_file import remove_file
from icesql.storage.open import METADATA_BYTES


class Sent:
    """One request about a table, made of ``base``; None makes the table.

    It may be applied, or be so later, until a look at the table says otherwise.
    """

    def __init__(
        self, base: Table | None, change: TableChange, outcome: Unknown | Conflict | None = None
    ) -> None:
        self.base, self.change = base, change
        self.location = outcome.location if isinstance(outcome, Unknown) else None
        # The server refused it, but what is between may have sent it twice.
        self.is_refused = isinstance(outcome, Conflict)
        self.snapshot_ids = snapshot_ids(change.updates)

    def is_applied(self, table: Table) -> bool:
        """Whether the current table includes the change, also below later ones."""
        metadata = table.metadata
        if self.base is None:
            made = {each.uuid for each in self.change.updates if isinstance(each, u.AssignUuid)}
            return metadata.table_uuid in made or any(
                each in metadata.snapshots for each in self.snapshot_ids
            )
        if not _is_same(self.base, table):
            return False
        # With the time: in a folder the name of a version may be given again.
        named = {(each.metadata_file, each.timestamp_ms) for each in metadata.metadata_log}
        named.add((table.metadata_location, metadata.last_updated_ms))
        if (self.location, self.change.now_ms) in named:
            return True
        if not self.snapshot_ids:
            with suppress(Error):  # it does not even fit any more
                return changes_nothing(table, self.change.updates, self.change.now_ms)
            return False
        return has_snapshots(metadata, self.base.metadata, self.snapshot_ids)

    def is_over(self, table: Table) -> bool:
        """Whether the table shows that it was not applied and cannot be any more.

        A table that stands where it stood, or is not there, shows nothing: a request may be late.
        """
        if self.is_refused:
            return not self._may_have_emptied(table.metadata)
        if not self.snapshot_ids:
            return False  # who else's the change is cannot be told; and nothing depends on it
        if self.base is None:
            return True
        base, now = self.base.metadata, table.metadata
        if not _is_same(self.base, table) or has_lost_snapshots(base, now):
            return False
        return any(_cannot_hold(each, now) for each in self.change.requirements)

    def _may_have_emptied(self, now: TableMetadata) -> bool:
        """Whether a branch is gone, or has begun anew, that a change without snapshots removes."""
        names = {each.name for each in self.change.updates if isinstance(each, u.RemoveSnapshotRef)}
        if self.base is None or self.snapshot_ids or not names:
            return False
        kept = {
            name: {ref.snapshot_id, *_ancestors(now, ref.snapshot_id)}
            for name, ref in now.refs.items()
        }
        old = self.base.metadata.refs
        return any(old[each].snapshot_id not in kept.get(each, ()) for each in names & {*old})


class OpenRequests:
    """The requests of one commit about one table whose outcome is open; false without any."""

    def __init__(self) -> None:
        self._open: list[Sent] = []
        # Whether the outcome of one was ever open, were it known by now.
        self.was_unknown = False
        self.reason = ""

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, sent: Sent, reason: str) -> None:
        """Add a request; ``reason`` says what is known of it."""
        self._open.append(sent)
        self.was_unknown |= not sent.is_refused
        self.reason = reason

    def are_applied(self, table: Table) -> bool:
        """Whether one of them is; those that cannot be any more are forgotten."""
        if any(each.is_applied(table) for each in self._open):
            return True
        over = [each for each in self._open if each.is_over(table)]
        self._open = [each for each in self._open if each not in over]
        for each in over:
            if each.location is not None:
                # The metadata file of a catalog's pointer that was not set.
                remove_file(each.change.storage, each.location)
        return False

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """Those that they add, each once."""
        return tuple(dict.fromkeys(each for sent in self._open for each in sent.snapshot_ids))

    def files(self, operation: object) -> tuple[str, ...]:
        """The files that ``operation`` and these requests wrote."""
        more = (each.location for each in self._open if each.location is not None)
        return (*dict.fromkeys((*files_of(operation), *more)),)


def changes_nothing(table: Table, updates: Sequence[u.Update], now_ms: int) -> bool:
    """Whether the table is the same after updates, where that can be seen from here."""
    document = table.document
    if document is None:
        try:
            data = table.storage.read(table.metadata_location, most=METADATA_BYTES)
        except (StorageError, AccessDeniedError):
            return False  # a catalog may keep the file to itself
        document = metadata_document(data, table.metadata_location)
    return not is_changed(document, apply_updates(document, updates, now_ms=now_ms))


def _is_same(base: Table, table: Table) -> bool:
    mine, theirs = base.metadata.table_uuid, table.metadata.table_uuid
    return (mine or "").lower() == (theirs or "").lower()


def _cannot_hold(requirement: r.Requirement, now: TableMetadata) -> bool:
    """Whether a requirement does not hold, and will not unless somebody rolls the table back."""
    match requirement:
        case r.AssertRefSnapshotId(name, snapshot_id):
            ref = now.refs.get(name)
            if ref is None or ref.snapshot_id == snapshot_id:
                return False
            if snapshot_id is None:
                return True
            # A head that was rolled back, or put elsewhere, may come back.
            return snapshot_id in _ancestors(now, ref.snapshot_id)
        case r.AssertLastAssignedFieldId(field_id):
            return now.last_column_id > field_id
        case r.AssertLastAssignedPartitionId(field_id):
            return now.last_partition_id > field_id
    return False


def _ancestors(now: TableMetadata, snapshot_id: int | None) -> set[int]:
    """The ancestors of a snapshot, as far as the metadata has them."""
    found: set[int] = set()
    while snapshot_id is not None and (snapshot := now.snapshot(snapshot_id)) is not None:
        snapshot_id = snapshot.parent_snapshot_id
        if snapshot_id is None or snapshot_id in found:
            break
        found.add(snapshot_id)
    return found


def files_of(operation: object) -> tuple[str, ...]:
    """The files that a failed operation would delete."""
    found: Iterable[str] = getattr(operation, "files", ())
    return tuple(found)
