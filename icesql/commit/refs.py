"""Creates, moves and drops branches and tags; rolls ``main`` back; picks snapshots.

Most functions return a callback for ``change_table``, which makes updates from current metadata.
Source: Java ``ManageSnapshots``, ``SetSnapshotOperation``, ``CherryPickOperation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.branches import moved_ref
from icesql.commit.file_changes import CommitResult, FileChanges, MakeUpdates, change_table
from icesql.commit.rows import commit_files
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError, SnapshotNotFoundError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes.updates import RemoveSnapshotRef, SetSnapshotRef, Update
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.scan.changes import added_files

Kind = Literal["branch", "tag"]


def create_ref(
    name: str,
    kind: Kind,
    *,
    snapshot_id: int | None = None,
    if_exists: Literal["fail", "keep", "replace"] = "fail",
    must_exist: bool = False,
    **retention: int,
) -> MakeUpdates:
    """Create a branch or tag at a snapshot, by default the head of main.

    ``must_exist`` is for REPLACE: a ref of its name must exist. ``retention`` are fields of
    ``SnapshotRef``; a replaced ref keeps those that are not given. Raises ProgrammingError if the
    name is taken, also by a ref of the other kind; SnapshotNotFoundError.
    """

    def updates(base: TableMetadata) -> Sequence[Update]:
        known = base.refs.get(name)
        if known is None:
            if must_exist:
                raise ProgrammingError(f"there is no {kind} {name!r} to replace")
        elif known.kind != kind:
            raise ProgrammingError(f"{name!r} is a {known.kind}, not a {kind}")
        elif if_exists == "keep":
            return ()
        elif if_exists == "fail" and not must_exist:
            raise ProgrammingError(f"{kind} {name!r} already exists")
        wanted = base.current_snapshot_id if snapshot_id is None else snapshot_id
        if wanted is None:
            raise ProgrammingError(f"cannot make {kind} {name!r}: the table has no snapshot yet")
        _snapshot(base, wanted)
        # As in Java, a replaced ref keeps the settings that are not given.
        before = known or SnapshotRef(wanted, kind)
        return (SetSnapshotRef(name, replace(before, snapshot_id=wanted, **retention)),)

    return updates


def create_branch_of_empty(
    catalog: Catalog, table: Table, name: str, retention: SnapshotRef, query: QueryContext
) -> CommitResult:
    """Create a branch of a table without snapshots, at an empty snapshot; main stays without one.

    Raises ProgrammingError if the name is taken.
    """

    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        if name in base.metadata.refs:
            raise ProgrammingError(f"{base.metadata.refs[name].kind} {name!r} already exists")

    operation = _EmptyBranch(table, FileChanges("append", branch=name), query, validate=check)
    operation.retention = retention
    return operation.result(commit(catalog, table, operation, query))


class _EmptyBranch(SnapshotOperation):
    """A first snapshot without files, and the branch with its retention."""

    retention: SnapshotRef

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        added, moved = super().updates(base, attempt, now_ms)
        assert isinstance(moved, SetSnapshotRef)
        ref = replace(self.retention, snapshot_id=self.snapshot_id)
        return added, SetSnapshotRef(moved.name, ref)


def drop_ref(name: str, kind: Kind, *, if_exists: bool = False) -> MakeUpdates:
    """Remove a branch or tag; never main. Raises ProgrammingError."""

    def updates(base: TableMetadata) -> Sequence[Update]:
        if name == MAIN:
            raise ProgrammingError("main cannot be dropped")
        known = base.refs.get(name)
        if known is None or known.kind != kind:
            if known is None and if_exists:
                return ()
            raise ProgrammingError(f"there is no {kind} {name!r}")
        return (RemoveSnapshotRef(name),)

    return updates


def rollback_to_snapshot(snapshot_id: int) -> MakeUpdates:
    """Set ``main`` back to one of its ancestors. Raises SnapshotNotFoundError."""

    def updates(base: TableMetadata) -> Sequence[Update]:
        if not is_ancestor(base, snapshot_id, base.current_snapshot_id):
            _snapshot(base, snapshot_id)
            raise ProgrammingError(
                f"snapshot {snapshot_id} did not lead to what the table is now; "
                "set_current_snapshot goes to any snapshot"
            )
        return _to(base, MAIN, snapshot_id)

    return updates


def step_back(branch: str, head: int, snapshot_id: int) -> MakeUpdates:
    """Set a branch from its head to an ancestor.

    Raises CommitConflictError if the branch has another head by now.
    """

    def updates(base: TableMetadata) -> Sequence[Update]:
        check_head(base, branch, head)
        _snapshot(base, snapshot_id)
        return _to(base, branch, snapshot_id)

    return updates


def head_of(metadata: TableMetadata, name: str) -> int | None:
    """The snapshot id of a branch or tag; None if the ref does not exist."""
    ref = metadata.refs.get(name)
    return None if ref is None else ref.snapshot_id


def check_head(metadata: TableMetadata, branch: str, head: int) -> None:
    """Raise CommitConflictError if a branch is at another snapshot than ``head``, or at none."""
    now = head_of(metadata, branch)
    if now != head:
        raise CommitConflictError(
            f"{branch} is not at snapshot {head}, which was to be taken back, but at {now}; "
            "nothing was changed, look again"
        )


def rollback_to_timestamp(timestamp_ms: int) -> MakeUpdates:
    """Set ``main`` back to its latest ancestor before an instant."""

    def updates(base: TableMetadata) -> Sequence[Update]:
        for each in base.ancestry(base.current_snapshot):
            if each.timestamp_ms < timestamp_ms:
                return _to(base, MAIN, each.snapshot_id)
        raise SnapshotNotFoundError(
            "a snapshot before that time", table=base.location, hint="none is kept"
        )

    return updates


def set_current_snapshot(snapshot_id: int) -> MakeUpdates:
    """Set ``main`` to any snapshot of the table. Raises SnapshotNotFoundError."""

    def updates(base: TableMetadata) -> Sequence[Update]:
        _snapshot(base, snapshot_id)
        return _to(base, MAIN, snapshot_id)

    return updates


def fast_forward(branch: str, to: str) -> MakeUpdates:
    """Move a branch to the head of another ref that descends from it, or create the branch there.

    Raises ProgrammingError if the branch has snapshots that the other ref lacks.
    """

    def updates(base: TableMetadata) -> Sequence[Update]:
        target, known = base.refs.get(to), base.refs.get(branch)
        if target is None:
            raise ProgrammingError(f"there is no branch or tag {to!r}")
        if known is not None and known.kind != "branch":
            raise ProgrammingError(f"{branch!r} is a tag, which does not move")
        if known is not None and not is_ancestor(base, known.snapshot_id, target.snapshot_id):
            raise ProgrammingError(
                f"cannot fast-forward {branch!r} to {to!r}: it has snapshots of its own"
            )
        return _to(base, branch, target.snapshot_id)

    return updates


def cherry_pick(
    catalog: Catalog, table: Table, snapshot_id: int, *, query: QueryContext | None = None
) -> CommitResult:
    """Apply a staged snapshot, or one of a branch, to ``main``.

    If its parent is the head of main, it becomes the head. Otherwise the files of an append are
    appended again. Raises ProgrammingError for other operations, and for a snapshot that main has
    already; SnapshotNotFoundError.
    """
    metadata, context = table.metadata, query or QueryContext()
    picked = _snapshot(metadata, snapshot_id)
    check_pick(table, picked)
    if picked.parent_snapshot_id == metadata.current_snapshot_id:
        return change_table(catalog, table, _forward_to(snapshot_id), query=context)
    files: tuple[DataFile, ...] = added_files(table, picked, context)
    properties = {"source-snapshot-id": str(snapshot_id)}
    if (wap_id := picked.summary.get("wap.id")) is not None:
        properties["published-wap-id"] = wap_id

    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        # Another session may have expired the snapshot and its files meanwhile, or picked it.
        _refuse_published(base, _snapshot(base.metadata, snapshot_id))

    # The files have the columns of the snapshot's schema.
    schema_id = picked.schema_id
    then = metadata if schema_id is None else replace(metadata, current_schema_id=schema_id)
    changes = FileChanges("append", files, summary=properties, borrowed=True)
    return commit_files(catalog, replace(table, metadata=then), changes, context, validate=check)


def check_pick(table: Table, picked: Snapshot) -> None:
    """Raise ProgrammingError if ``cherry_pick`` cannot apply a snapshot to ``main``."""
    _refuse_published(table, picked)
    follows = picked.parent_snapshot_id == table.metadata.current_snapshot_id
    if not follows and picked.operation != "append":
        raise ProgrammingError(
            f"snapshot {picked.snapshot_id} ({picked.operation}) does not follow the head of main; "
            "only appended rows can be brought to another state of the table"
        )


def _forward_to(snapshot_id: int) -> MakeUpdates:
    def updates(base: TableMetadata) -> Sequence[Update]:
        if _snapshot(base, snapshot_id).parent_snapshot_id != base.current_snapshot_id:
            raise ProgrammingError(
                f"main changed meanwhile, snapshot {snapshot_id} does not follow it any more; "
                "run the statement again"
            )
        return _to(base, MAIN, snapshot_id)

    return updates


def _refuse_published(table: Table, picked: Snapshot) -> None:
    wap_id = picked.summary.get("wap.id")
    for current in table.metadata.ancestry(table.metadata.current_snapshot):
        if current.snapshot_id == picked.snapshot_id:
            raise ProgrammingError(f"snapshot {picked.snapshot_id} is part of main already")
        if current.summary.get("source-snapshot-id") == str(picked.snapshot_id):
            raise ProgrammingError(
                f"snapshot {picked.snapshot_id} was picked already, as {current.snapshot_id}"
            )
        published = current.summary.get("wap.id"), current.summary.get("published-wap-id")
        if wap_id is not None and wap_id in published:
            raise ProgrammingError(f"wap.id {wap_id} was published already")


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int | None) -> bool:
    """True if a snapshot is an ancestor of another, or the same."""
    found = None if of is None else metadata.snapshot(of)
    return any(each.snapshot_id == snapshot_id for each in metadata.ancestry(found))


def _snapshot(metadata: TableMetadata, snapshot_id: int) -> Snapshot:
    found = metadata.snapshot(snapshot_id)
    if found is None:
        raise SnapshotNotFoundError(f"snapshot {snapshot_id}", table=metadata.location)
    return found


def _to(metadata: TableMetadata, branch: str, snapshot_id: int) -> Sequence[Update]:
    if head_of(metadata, branch) == snapshot_id:
        return ()
    return (SetSnapshotRef(branch, moved_ref(metadata, branch, snapshot_id)),)
