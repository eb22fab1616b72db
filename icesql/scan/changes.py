"""The plan of CHANGES and DIFF: files with the rows that each commit of a range changed.

Two states of a table are compared by their plans. A file with the same deletes in both has no
changes and is not read. Source: Java's ``IncrementalChangelogScan`` for the columns; Java refuses
delete files there, which are compared row by row here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import keep_columns
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata_columns import BLAME_COLUMNS, CHANGE_COLUMNS
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import NestedField
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask

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
