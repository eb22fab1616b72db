"""Reads what commits changed: files that each snapshot added, and the rows of CHANGES and DIFF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import (
    CorruptFileError,
    ProgrammingError,
    SnapshotNotFoundError,
    UnsupportedTableError,
)
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import keep_columns
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import BLAME_COLUMNS, CHANGE_COLUMNS, Schema
from icesql.iceberg.types import NestedField
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.plan import TableScan
from icesql.scan.tasks import FileScanTask

if TYPE_CHECKING:
    from icesql.catalog.table import Table


# Snapshots whose operation means that no row changed.
_REPLACE: Final = "replace"

Deduplication = Literal["none", "dropCarryovers", "netChanges"]


class Commit(Frozen):
    """A state of a table and the one before it, None for an empty table.

    ``first_known``: earlier snapshots are expired, so the rows may be of any commit up to this one.
    """

    before: Snapshot | None
    after: Snapshot | None
    first_known: bool = False


class ChangeScan(Frozen):
    """The changes that a query reads, by commit, oldest first.

    ``keys`` are the columns that make two rows versions of one; without any it is ``_row_id``.
    ``compute_updates``: a deleted and an inserted row of one key are an update.
    """

    commits: tuple[Commit, ...]
    deduplication: Deduplication = "dropCarryovers"
    compute_updates: bool = False
    keys: tuple[int, ...] = ()


class CommitFiles(Frozen):
    """The files that differ: only before, only after, and in both with other deletes."""

    commit: Commit
    removed: tuple[FileScanTask, ...]
    added: tuple[FileScanTask, ...]
    before: tuple[FileScanTask, ...]
    after: tuple[FileScanTask, ...]

    @property
    def tasks(self) -> tuple[FileScanTask, ...]:
        """All of them."""
        return (*self.removed, *self.added, *self.before, *self.after)


class ChangePlan(Frozen):
    """The commits that changed rows; ``row_schema`` are the columns that make up a row."""

    changes: ChangeScan
    row_schema: Schema
    commits: tuple[CommitFiles, ...]


def change_schema(schema: Schema, columns: Sequence[NestedField] = CHANGE_COLUMNS) -> Schema:
    """A table's columns with those that describe the change of a row."""
    return Schema((*schema.fields, *columns), schema_id=schema.schema_id)


def plan_changes(scan: TableScan, changes: ChangeScan, query: QueryContext) -> ChangePlan:
    """The files to read for ``changes``. Raises what planning raises."""
    from icesql.scan.planner import plan

    own = {column.field_id for column in (*CHANGE_COLUMNS, *BLAME_COLUMNS)}
    row_schema = Schema(
        tuple(column for column in scan.schema.fields if column.field_id not in own),
        schema_id=scan.schema.schema_id,
    )
    columns = _trusted_columns(row_schema, changes)
    row_filter = keep_columns(scan.row_filter, columns)
    conditions = tuple(each for each in scan.file_conditions if columns.issuperset(each.field_ids))
    bare = replace(
        scan, schema=row_schema, projection=row_schema, row_filter=row_filter, limit=None,
        file_conditions=conditions, explain=False, extremes=(), changes=None,
    )  # fmt: skip
    planned: dict[int | None, tuple[FileScanTask, ...]] = {None: ()}

    def files_of(snapshot: Snapshot | None) -> tuple[FileScanTask, ...]:
        key = None if snapshot is None else snapshot.snapshot_id
        if key not in planned:
            planned[key] = plan(replace(bare, snapshot=snapshot), query).files
        return planned[key]

    found = []
    # Where no row is wanted, the columns are.
    for commit in changes.commits if scan.limit != 0 else ():
        query.check()
        if commit.after is not None and _is_no_change(commit.after, changes):
            continue
        files = _compared(commit, files_of(commit.before), files_of(commit.after))
        if files.tasks:
            found.append(files)
    return ChangePlan(changes, row_schema, tuple(found))


def _is_no_change(snapshot: Snapshot, changes: ChangeScan) -> bool:
    """Whether a snapshot only rewrote files; False if two states are compared."""
    return (snapshot.operation or "").lower() == _REPLACE and len(changes.commits) > 1


def _trusted_columns(schema: Schema, changes: ChangeScan) -> frozenset[int]:
    """By what rows may be left out: every row is deleted, inserted and kept for itself alone.

    Where versions of a row are paired, the other one may have other values, but for its keys.
    """
    return frozenset(changes.keys if changes.compute_updates else schema.field_by_id)


def _compared(
    commit: Commit, before: Sequence[FileScanTask], after: Sequence[FileScanTask]
) -> CommitFiles:
    """The files that only one state has, or both with different deletes.

    Raises ProgrammingError if rows were deleted in a file that is listed more than once.
    """
    old, new = _by_path(before), _by_path(after)
    removed: list[FileScanTask] = []
    added: list[FileScanTask] = []
    both: list[tuple[FileScanTask, FileScanTask]] = []
    for path, listed in old.items():
        left = new.pop(path, [])
        for task in listed:
            same = next((each for each in left if _deletes(each) == _deletes(task)), None)
            if same is not None:
                left.remove(same)
            elif left:
                both.append((task, left.pop(0)))
            else:
                removed.append(task)
        added += left
        if len(listed) > 1 and any(task.data_file.path == path for task, _ in both):
            raise ProgrammingError(
                f"{path} is listed {len(listed)} times, and rows of it were deleted: which ones "
                "changed cannot be distinguished"
            )
    added += (task for listed in new.values() for task in listed)
    return CommitFiles(
        commit,
        removed=tuple(removed),
        added=tuple(added),
        before=tuple(task for task, _ in both),
        after=tuple(task for _, task in both),
    )


def _by_path(tasks: Sequence[FileScanTask]) -> dict[str, list[FileScanTask]]:
    """The files by their paths: a table may list one more than once."""
    found: dict[str, list[FileScanTask]] = {}
    for each in tasks:
        found.setdefault(each.data_file.path, []).append(each)
    return found


def _deletes(task: FileScanTask) -> frozenset[tuple[str, int | None]]:
    return frozenset((each.path, each.content_offset) for each in task.deletes)


def commit_columns(commit: Commit) -> tuple[int, int]:
    """The id and the time (µs since 1970) of the snapshot that made the change."""
    made = commit.after or commit.before
    assert made is not None
    return made.snapshot_id, made.timestamp_ms * 1000


# Keys of summaries that name the program and its run; each engine writes its own.
_ENGINE: Final = ("engine-name", "engine-version")
_JOBS: Final = (
    "spark.app.id",
    "flink.job-id",
    "trino_query_id",
    "job-id",
    "job_id",
    "query-id",
    "dbt.invocation-id",
)


def who_committed(commit: Commit) -> dict[int, str | None]:
    """By the ids of BLAME's columns: the operation, the engine and the job of a summary."""
    made = commit.after or commit.before
    assert made is not None
    summary = made.summary
    engine = " ".join(summary[key] for key in _ENGINE if summary.get(key))
    job = next((summary[key] for key in _JOBS if summary.get(key)), None)
    found = (made.operation, engine or None, job)
    return {column.field_id: value for column, value in zip(BLAME_COLUMNS, found, strict=True)}


# ------------------------------------------------------------------ added files
# Source: Iceberg Java ``IncrementalAppendScan``, ``MicroBatches`` and ``SparkMicroBatchStream``.


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
