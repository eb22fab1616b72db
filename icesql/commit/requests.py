"""Requests that were sent and have no certain response: see ``commit``.

Source: Java ``BaseMetastoreTableOperations.checkCommitStatus``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from icesql.catalog.table import Table
from icesql.catalog.writes.change import Conflict, TableChange, Unknown
from icesql.errors import AccessDeniedError, Error, StorageError
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import apply_updates, is_changed
from icesql.iceberg.metadata.changes.snapshots import (
    has_lost_snapshots,
    has_snapshots,
    snapshot_ids,
)
from icesql.iceberg.metadata.table_metadata import TableMetadata, metadata_document
from icesql.storage.new_files import remove_file
from icesql.storage.open import METADATA_BYTES


class Sent:
    """One request to change a table, made from ``base``; None creates the table.

    It may have been applied, or may still be applied, until the table's state excludes that.
    """

    def __init__(
        self, base: Table | None, change: TableChange, outcome: Unknown | Conflict | None = None
    ) -> None:
        self.base, self.change = base, change
        self.location = outcome.location if isinstance(outcome, Unknown) else None
        # The server refused it, but a proxy may have sent it twice.
        self.is_refused = isinstance(outcome, Conflict)
        self.snapshot_ids = snapshot_ids(change.updates)

    def is_applied(self, table: Table) -> bool:
        """True if the current table includes the change, possibly under later ones."""
        metadata = table.metadata
        if self.base is None:
            made = {each.uuid for each in self.change.updates if isinstance(each, u.AssignUuid)}
            return metadata.table_uuid in made or any(
                each in metadata.snapshots for each in self.snapshot_ids
            )
        if not is_same_table(self.base, table):
            return False
        # Compared with its time, because a folder can reuse the name of a version.
        named = {(each.metadata_file, each.timestamp_ms) for each in metadata.metadata_log}
        named.add((table.metadata_location, metadata.last_updated_ms))
        if (self.location, self.change.now_ms) in named:
            return True
        if not self.snapshot_ids:
            with suppress(Error):  # the change no longer fits the table
                return changes_nothing(table, self.change.updates, self.change.now_ms)
            return False
        return has_snapshots(metadata, self.base.metadata, self.snapshot_ids)

    def is_over(self, table: Table) -> bool:
        """True if the table shows that the request was not and cannot be applied any more.

        An unchanged or missing table shows nothing: a request may arrive late.
        """
        if self.is_refused:
            return not self._may_have_emptied(table.metadata)
        if not self.snapshot_ids:
            return False  # any writer may have made such a change, and no files depend on it
        if self.base is None:
            return True
        base, now = self.base.metadata, table.metadata
        if not is_same_table(self.base, table) or has_lost_snapshots(base, now):
            return False
        return any(_cannot_hold(each, now) for each in self.change.requirements)

    def _may_have_emptied(self, now: TableMetadata) -> bool:
        """True if a branch that the change (without snapshots) removes is gone or was recreated."""
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
    """The requests of one commit to one table whose outcome is open; falsy if there are none."""

    def __init__(self) -> None:
        self._open: list[Sent] = []
        # True if the outcome of a request was ever unknown, even if it is known by now.
        self.was_unknown = False
        self.reason = ""

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, sent: Sent, reason: str) -> None:
        """Add a request; ``reason`` describes its response or failure."""
        self._open.append(sent)
        self.was_unknown |= not sent.is_refused
        self.reason = reason

    def are_applied(self, table: Table) -> bool:
        """True if one of them is applied; requests that no longer can be are removed."""
        if any(each.is_applied(table) for each in self._open):
            return True
        over = [each for each in self._open if each.is_over(table)]
        self._open = [each for each in self._open if each not in over]
        for each in over:
            if each.location is not None:
                # The catalog's pointer was never set to this metadata file.
                remove_file(each.change.storage, each.location)
        return False

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of snapshots that the requests add, each once."""
        return tuple(dict.fromkeys(each for sent in self._open for each in sent.snapshot_ids))

    def files(self, operation: object) -> tuple[str, ...]:
        """The files that ``operation`` and the open requests wrote."""
        more = (each.location for each in self._open if each.location is not None)
        return (*dict.fromkeys((*files_of(operation), *more)),)


def document_of(table: Table) -> Mapping[str, Any]:
    """The JSON of the table's metadata. Raises StorageError if its file is gone."""
    if table.document is not None:
        return table.document
    data = table.storage.read(table.metadata_location, most=METADATA_BYTES)
    return metadata_document(data, table.metadata_location)


def changes_nothing(table: Table, updates: Sequence[u.Update], now_ms: int) -> bool:
    """True if the updates would not change the table; False if its metadata is not readable."""
    try:
        document = document_of(table)
    except (StorageError, AccessDeniedError):
        return False  # only the catalog may be able to read the file
    return not is_changed(document, apply_updates(document, updates, now_ms=now_ms))


def is_same_table(base: Table, table: Table) -> bool:
    """True if both are states of one table."""
    mine, theirs = base.metadata.table_uuid, table.metadata.table_uuid
    return (mine or "").lower() == (theirs or "").lower()


def _cannot_hold(requirement: u.Requirement, now: TableMetadata) -> bool:
    """True if a requirement fails, and will until the table is rolled back."""
    match requirement:
        case u.AssertRefSnapshotId(name, snapshot_id):
            ref = now.refs.get(name)
            if ref is None or ref.snapshot_id == snapshot_id:
                return False
            if snapshot_id is None:
                return True
            # If the head was rolled back or moved elsewhere, it may come back.
            return snapshot_id in _ancestors(now, ref.snapshot_id)
        case u.AssertLastAssignedFieldId(field_id):
            return now.last_column_id > field_id
        case u.AssertLastAssignedPartitionId(field_id):
            return now.last_partition_id > field_id
    return False


def _ancestors(now: TableMetadata, snapshot_id: int) -> set[int | None]:
    """The ids of a snapshot's ancestors; the oldest may have expired."""
    return {each.parent_snapshot_id for each in now.ancestry(now.snapshot(snapshot_id))}


def files_of(operation: object) -> tuple[str, ...]:
    """The files that a failed operation would delete."""
    found: Iterable[str] = getattr(operation, "files", ())
    return tuple(found)
