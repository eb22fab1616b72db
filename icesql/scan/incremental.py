"""The files that each snapshot of a history added: the base of incremental and streaming reads.

Source: Iceberg Java ``IncrementalAppendScan``, ``MicroBatches`` and ``SparkMicroBatchStream``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, SnapshotNotFoundError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.manifest_reader import ManifestReader

if TYPE_CHECKING:
    from icesql.catalog.table import Table

APPEND: Final = "append"
REPLACE: Final = "replace"
OVERWRITE: Final = "overwrite"
DELETE: Final = "delete"

_ADDED: Final = 1


def ancestors(table: Table, snapshot: Snapshot | None) -> tuple[Snapshot, ...]:
    """The history that led to ``snapshot``, oldest first, itself included; as far as it is kept."""
    return tuple(table.metadata.ancestry(snapshot))[::-1]


def snapshots_after(table: Table, start_id: int, end: Snapshot) -> tuple[Snapshot, ...]:
    """The snapshots that led from ``start_id``, itself excluded, to ``end``, oldest first.

    ``start_id`` may be expired as long as the snapshot that followed it is kept. Raises
    SnapshotNotFoundError if it is not an ancestor of ``end``, or rows after it may be lost.
    """
    history = ancestors(table, end)
    for position, snapshot in enumerate(history):
        if snapshot.snapshot_id == start_id:
            return history[position + 1 :]
    if history and history[0].parent_snapshot_id == start_id:
        return history
    is_cut = bool(history) and history[0].parent_snapshot_id is not None
    raise SnapshotNotFoundError(
        f"snapshot {start_id} in the history of snapshot {end.snapshot_id}",
        table=table.name,
        oldest=str(history[0].snapshot_id) if history else None,
        newest=str(end.snapshot_id),
        hint="it was rolled back or belongs to a branch"
        if start_id in table.metadata.snapshots and not is_cut
        else "it, or what followed it, is expired or never was",
    )


def operation_of(snapshot: Snapshot, table: str) -> str:
    """APPEND, REPLACE, OVERWRITE or DELETE: the effect of a snapshot on earlier rows.

    Only APPEND and REPLACE (the same rows in other files) leave them as they were. A snapshot
    without an operation may have done anything, so it is OVERWRITE, as in Java. Raises
    UnsupportedTableError for an operation that the specification does not have.
    """
    operation = (snapshot.operation or OVERWRITE).lower()
    if operation not in (APPEND, REPLACE, OVERWRITE, DELETE):
        raise UnsupportedTableError(
            f"an incremental read of snapshot {snapshot.snapshot_id}, "
            f"whose operation is {snapshot.operation}",
            table=table,
        )
    return operation


def added_files(table: Table, snapshot: Snapshot, query: QueryContext) -> tuple[DataFile, ...]:
    """The data files that ``snapshot`` added, in the order of its manifests.

    Files that it only carried on, and deletes, are left out. The order never changes, so that a
    position in it can be remembered. Raises CorruptFileError, also for a snapshot whose summary
    counts more added files than its manifests, StorageError, and UnsupportedTableError for
    encrypted files.
    """
    if table.planning is not None:
        raise UnsupportedTableError(
            "incremental reads where the catalog plans the scans", table=table.name
        )
    reader = ManifestReader(table, query)
    stored_id = snapshot.id_in_manifests
    own = [
        manifest
        for manifest in reader.manifests_of(snapshot)
        if manifest.content is ManifestContent.DATA
        and manifest.added_snapshot_id in (stored_id, None)
    ]

    added = tuple(
        entries.data_file(index)
        for _, entries in reader.entries_of(own)
        for index in range(entries.count)
        if entries.status[index] == _ADDED and entries.snapshot_id[index] == stored_id
    )
    recorded = whole_number(snapshot.summary.get("added-data-files"))
    if recorded is not None and recorded > len(added):
        raise CorruptFileError(
            snapshot.manifest_list or table.metadata_location,
            f"snapshot {snapshot.snapshot_id} says that it added {recorded} data files, but its "
            f"manifests name {len(added)} of that snapshot",
        )
    for file in added:
        if file.key_metadata:
            raise UnsupportedTableError(
                "encryption (a file is encrypted)", table=table.name, path=file.path
            )
    return added
