"""The snapshots, refs and statistics of a table while updates are applied to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from icesql.errors import CommitConflictError, ProgrammingError
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.updates import AddSnapshot, Update
from icesql.iceberg.metadata.json_fields import as_list, as_object, whole_number
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.metadata.writing import ref_json, snapshot_json

# Whether snapshots that a change adds are, or were, part of a table, by its metadata alone.

_SOURCE: Final = "source-snapshot-id"


def snapshot_ids(updates: Iterable[Update]) -> tuple[int, ...]:
    """The ids of the snapshots that updates add."""
    return tuple(each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshot))


def has_snapshots(now: TableMetadata, base: TableMetadata, ids: Sequence[int]) -> bool:
    """Whether a table has, or had since ``base``, one of these snapshots.

    An expired one is found as the parent or the source of another.
    """
    if any(each in now.snapshots for each in ids):
        return True
    if any(each.snapshot_id in ids for each in now.snapshot_log):
        return True
    texts = {str(each) for each in ids}
    return any(
        each.parent_snapshot_id in ids or each.summary.get(_SOURCE) in texts
        for key, each in now.snapshots.items()
        if key not in base.snapshots
    )


def has_lost_snapshots(base: TableMetadata, now: TableMetadata) -> bool:
    """Whether a snapshot with an unknown id may have been added since ``base`` and removed again.

    Sequence numbers count snapshots; in format version 1 each names its parent.
    """
    came = [each for key, each in now.snapshots.items() if key not in base.snapshots]
    if base.format_version > 1:
        numbers = {each.sequence_number for each in came}
        last = now.last_sequence_number
        return any(each not in numbers for each in range(base.last_sequence_number + 1, last + 1))
    known = {*base.snapshots, *now.snapshots, *(() if base.snapshots else (None,))}
    return any(each.parent_snapshot_id not in known for each in came)


# The logs of table metadata: earlier metadata files, and earlier snapshots of ``main``.
#
# Source: Iceberg spec, "Table Metadata Fields"; Java ``TableMetadata.Builder``.

_PREVIOUS_VERSIONS: Final = "write.metadata.previous-versions-max"
_DEFAULT_PREVIOUS: Final = 100


def next_metadata_log(
    log: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    base_location: str | None,
    base_updated_ms: int,
) -> list[Mapping[str, Any]]:
    """The log of the next version: the newest entries, and after them the base's file.

    ``properties`` are those of the next version. Without a base file nothing is added.
    """
    if base_location is None:
        return [*log]
    most = max(_number(properties.get(_PREVIOUS_VERSIONS), _DEFAULT_PREVIOUS), 1)
    kept = [*log][len(log) - (most - 1) :] if len(log) > most - 1 else [*log]
    return [*kept, {"timestamp-ms": base_updated_ms, "metadata-file": base_location}]


def next_snapshot_log(
    log: Sequence[dict[str, Any]],
    *,
    snapshots: Set[int],
    passed: Set[int],
    removed: bool,
    current: int | None,
    now_ms: int,
) -> list[dict[str, Any]]:
    """The log without the snapshots that main only ``passed`` in this change.

    An entry of a removed snapshot and all entries before it are dropped: the snapshots of main in
    between are not known any more. The last entry is always the current snapshot.
    """
    found: list[dict[str, Any]] = []
    for entry in log:
        snapshot_id = entry.get("snapshot-id")
        if snapshot_id in snapshots:
            if snapshot_id not in passed:
                found.append(entry)
        elif removed:
            found.clear()
    if current is not None and (not found or found[-1].get("snapshot-id") != current):
        # The writer kept no log; Java opens no table whose log ends with another snapshot.
        found.append({"timestamp-ms": now_ms, "snapshot-id": current})
    return found


def _number(text: str | None, default: int) -> int:
    found = whole_number(text)
    return default if found is None else found


Document = dict[str, Any]
_STATISTICS: Final = ("statistics", "partition-statistics")


def listed(node: Mapping[str, Any], key: str) -> list[Document]:
    """The objects of an array, none when the key is absent or null. Raises Malformed."""
    found = as_list(node.get(key) or [], key)
    if set(map(type, found)) <= {dict}:  # there are thousands
        return [*found]
    return [as_object(each, key) for each in found]


class SnapshotChanges:
    """The snapshots in the JSON of a table, changed by updates."""

    def __init__(self, node: Mapping[str, Any], now_ms: int) -> None:
        self._now_ms = now_ms
        self.last_sequence_number: int = node.get("last-sequence-number", 0)
        self.next_row_id: int = node.get("next-row-id") or 0
        self._snapshots = listed(node, "snapshots")
        self._known = {each["snapshot-id"]: each for each in self._snapshots}
        current = node.get("current-snapshot-id")
        self._refs = dict(as_object(node.get("refs") or {}, "refs"))
        if current in self._known and MAIN not in self._refs:
            self._refs[MAIN] = {"snapshot-id": current, "type": "branch"}
        self._log = listed(node, "snapshot-log")
        self._files = {key: listed(node, key) for key in _STATISTICS}
        self._added: dict[int, Snapshot] = {}
        self._passed: set[int] = set()
        self._has_removed = self._main_changed = False

    def apply(self, update: u.Update, version: int) -> None:
        """Apply one update to a table of a format version."""
        match update:
            case u.AddSnapshot(snapshot):
                self._add(snapshot, version)
            case u.SetSnapshotRef(name, ref):
                self._set_ref(name, ref)
            case u.RemoveSnapshotRef(name):
                self._refs.pop(name, None)
            case u.RemoveSnapshots(snapshot_ids):
                self._remove(set(snapshot_ids))
            case u.SetStatistics(file):
                self._replace("statistics", file["snapshot-id"], dict(file))
            case u.RemoveStatistics(snapshot_id):
                self._replace("statistics", snapshot_id)
            case u.SetPartitionStatistics(file):
                self._replace("partition-statistics", file["snapshot-id"], dict(file))
            case u.RemovePartitionStatistics(snapshot_id):
                self._replace("partition-statistics", snapshot_id)
            case _:
                raise TypeError(f"{update!r} is no update of table metadata")

    def finished(self, version: int) -> Document:
        """The fields of the document about snapshots, except the sequence number."""
        current = self._refs.get(MAIN, {}).get("snapshot-id")
        if self._main_changed or self._has_removed:
            self._log = next_snapshot_log(
                self._log,
                snapshots=self._known.keys(),
                passed=self._passed - {current},
                removed=self._has_removed,
                current=current,
                now_ms=self._now_ms,
            )
        return {
            "current-snapshot-id": (None if version >= 3 else -1) if current is None else current,
            "refs": self._refs,
            "snapshots": self._snapshots,
            **self._files,
            "snapshot-log": self._log,
        }

    def _add(self, snapshot: Snapshot, version: int) -> None:
        if snapshot.snapshot_id in self._known:
            raise CommitConflictError(f"the table has a snapshot {snapshot.snapshot_id} already")
        last = self.last_sequence_number
        has_parent = snapshot.parent_snapshot_id is not None
        if version > 1 and snapshot.sequence_number <= last and has_parent:
            raise CommitConflictError(
                f"sequence number {snapshot.sequence_number} is not above {last}, the table's last"
            )
        if version >= 3:
            if snapshot.first_row_id is None or snapshot.added_rows is None:
                raise ProgrammingError("a snapshot of format version 3 has row ids")
            if snapshot.first_row_id < self.next_row_id:
                raise CommitConflictError(
                    f"row ids from {snapshot.first_row_id} on are taken up to {self.next_row_id}"
                )
            self.next_row_id = snapshot.first_row_id + snapshot.added_rows
        self.last_sequence_number = max(last, snapshot.sequence_number)
        made = snapshot_json(snapshot)
        self._snapshots.append(made)
        self._known[snapshot.snapshot_id] = made
        self._added[snapshot.snapshot_id] = snapshot

    def _set_ref(self, name: str, ref: SnapshotRef) -> None:
        if ref.snapshot_id not in self._known:
            raise CommitConflictError(
                f"cannot set {ref.kind} {name!r}: the table has no snapshot {ref.snapshot_id}"
            )
        if name == MAIN and ref.kind != "branch":
            raise ProgrammingError("main is a branch and cannot be a tag")
        known = self._refs.get(name)
        self._refs[name] = ref_json(ref)
        if name != MAIN or (known is not None and known["snapshot-id"] == ref.snapshot_id):
            return
        if known is not None and known["snapshot-id"] in self._added:
            self._passed.add(known["snapshot-id"])
        added = self._added.get(ref.snapshot_id)
        when = self._now_ms if added is None else added.timestamp_ms
        self._log = [*self._log, {"timestamp-ms": when, "snapshot-id": ref.snapshot_id}]
        self._main_changed = True

    def _replace(self, key: str, snapshot_id: int, *files: Document) -> None:
        """Replace the statistics files of a snapshot."""
        self._files[key] = [*_not_of(self._files[key], {snapshot_id}), *files]

    def _remove(self, ids: set[int]) -> None:
        if not ids & self._known.keys():
            return
        self._snapshots = _not_of(self._snapshots, ids)
        self._known = {key: each for key, each in self._known.items() if key not in ids}
        self._refs = {k: each for k, each in self._refs.items() if each["snapshot-id"] not in ids}
        self._files = {key: _not_of(files, ids) for key, files in self._files.items()}
        self._has_removed = True


def _not_of(those: Sequence[Document], ids: set[int]) -> list[Document]:
    return [each for each in those if each.get("snapshot-id") not in ids]
