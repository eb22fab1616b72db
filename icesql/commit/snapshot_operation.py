"""Makes a new snapshot of a branch: manifests, manifest list, summary, and updates.

Source: Java ``SnapshotProducer``, ``MergingSnapshotProducer`` and ``SnapshotSummary``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from icesql.catalog.table import Table
from icesql.commit.branches import (
    Staged,
    branch_head,
    engine_summary,
    moved_ref,
    new_snapshot_id,
    start_of,
)
from icesql.commit.conflicts import check_planned
from icesql.commit.file_changes import CommitResult, FileChanges, data_of, file_key
from icesql.commit.live_rows import LiveRows
from icesql.commit.manifests.existing import ManifestFilter, ManifestMerge
from icesql.commit.manifests.store import (
    AddedManifests,
    HeldManifest,
    ManifestStore,
    OwnFiles,
    check_carried,
)
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, StorageError, UnsupportedTableError, rows_changed
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.writer import UNASSIGNED, ListHeader
from icesql.iceberg.metadata.changes.updates import AddSnapshot, SetSnapshotRef, Update
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.new_files import remove_file
from icesql.write.options import partition_path

# ------------------------------------------------------------------ its summary


_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
_PARTITION_PREFIX: Final = "partitions."


def counts(
    files: Iterable[tuple[Literal["added", "removed"], DataFile, str]],
    duplicates: int,
    partition_limit: int,
) -> dict[str, str]:
    """The counts of added and removed files as summary keys; zeros are left out.

    Each file comes with the path of its partition. ``duplicates`` are removed files that the table
    listed more than once, ``partition_limit`` is the largest number of partitions that get their
    own counts.
    """
    whole: Counter[str] = Counter()
    partitions: dict[str, Counter[str]] = {}
    for verb, file, partition in files:
        for each in (whole, partitions.setdefault(partition, Counter())):
            each.update(_counted(file, verb))
    whole["deleted-duplicate-files"] = duplicates
    found = {key: str(number) for key, number in whole.items() if number > 0}
    found["changed-partition-count"] = str(len(partitions))
    if 0 < len(partitions) <= partition_limit:
        found["partition-summaries-included"] = "true"
        for path, each in partitions.items():
            if path:
                text = ",".join(f"{key}={number}" for key, number in each.items() if number)
                found[_PARTITION_PREFIX + path] = text
    return found


def totals(previous: Mapping[str, str] | None, counted: Mapping[str, str]) -> dict[str, str]:
    """The totals after a snapshot; ``previous`` is the summary of the branch's head.

    None starts at zero. A total that the head lacks, or that would be negative, is unknown and left
    out.
    """
    found = {}
    for total, (plus, minus) in _TOTALS.items():
        before = whole_number(previous.get(total)) if previous is not None else 0
        if before is None:
            continue
        after = before + int(counted.get(plus, 0)) - int(counted.get(minus, 0))
        if after >= 0:
            found[total] = str(after)
    return found


def _counted(file: DataFile, verb: str) -> dict[str, int]:
    rows = file.record_count
    if file.content is FileContent.DATA:
        gone = "deleted" if verb == "removed" else verb
        return {
            f"{gone}-data-files": 1,
            f"{gone}-records": rows,
            f"{verb}-files-size": file.file_size_in_bytes,
        }
    size = file.file_size_in_bytes
    if file.is_deletion_vector and file.content_size_in_bytes is not None:
        size = file.content_size_in_bytes  # the Puffin file contains other vectors, too
    found = {f"{verb}-delete-files": 1, f"{verb}-files-size": size}
    if file.content is FileContent.EQUALITY_DELETES:
        return {**found, f"{verb}-equality-delete-files": 1, f"{verb}-equality-deletes": rows}
    kind = f"{verb}-dvs" if file.is_deletion_vector else f"{verb}-position-delete-files"
    return {**found, kind: 1, f"{verb}-position-deletes": rows}


# ------------------------------------------------------------------ the snapshot


# Checks other writers' commits since the change was planned, up to the new snapshot's parent.
Validate = Callable[[Table, Snapshot | None, QueryContext], None]
# Plans the file changes again at each attempt, from the new snapshot's parent.
Plan = Callable[[Table, Snapshot | None], FileChanges]


class SnapshotOperation:
    """Adds and removes the files of ``changes``; an ``Operation`` of ``commit.attempts``.

    The operation owns the files to add: a failed commit deletes them, unless they are borrowed.
    """

    def __init__(
        self,
        table: Table,
        changes: FileChanges,
        query: QueryContext,
        *,
        validate: Validate | None = None,
        plan: Plan | None = None,
    ) -> None:
        # The table's state when the statement read it, for which its files were written.
        self.found = table
        self._query, self._validate, self._plan = query, validate, plan
        self._own = OwnFiles(table.storage)
        self._id = new_snapshot_id(table.metadata.snapshots)
        self._store = ManifestStore(table, self._id, self._own, query)
        self._changes, self._added = changes, AddedManifests(changes)
        # The paths added by all attempts: any attempt may turn out to be the applied one.
        self._ever_added: dict[str, None] = {}
        self._oldest_data = 0
        self._take(changes)
        self._merge = ManifestMerge()
        self._removed: list[DataFile] = []
        self.summary: dict[str, str] = {}

    def _take(self, changes: FileChanges) -> None:
        """Use these changes. Manifests of added files are kept while these files are the same."""
        if changes.added != self._changes.added:
            self._added = AddedManifests(changes)
        self._changes = changes
        if not changes.borrowed:
            self._ever_added.update(dict.fromkeys(each.path for each in changes.added))
        data = data_of(changes.removed)
        deletes = [each for each in changes.removed if each.content is not FileContent.DATA]
        self._gone = {each.path for each in data}
        self._data = ManifestFilter(data)
        self._deletes = ManifestFilter(deletes, also=self._applies_to_nothing)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot's id, the same in every attempt; None if only columns are added."""
        return None if self._plan is None and self._is_nothing else self._id

    @property
    def _is_nothing(self) -> bool:
        """True if no snapshot is needed. A new table may get a snapshot without files."""
        can_be = self._plan is not None or self._changes.schema is not None
        return can_be and self._changes.has_no_files

    @property
    def reapplies(self) -> bool:
        """True if it can be made again from any later state, even in a transaction."""
        return self._validate is None and self._plan is None and not self._changes.removed

    # ------------------------------------------------------------------ attempts

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """As ``Operation.updates``."""
        columns: Sequence[Update] = ()
        if self._changes.schema is not None:
            base, columns = self._changes.schema.applied(base, now_ms)
        metadata, changes = base.metadata, self._changes
        self._check(metadata)
        check_planned(self.found, base, changes.branch, changes.added_data)
        head, parent = branch_head(metadata, self._changes.branch)
        if self._validate is not None:
            self._validate(base, parent, self._query)
        if self._plan is not None:
            self._take(self._plan(base, parent))
        self._store.rebase(metadata)
        found = self._manifests(base, parent)
        if found is None:
            self.summary = {}
            return columns
        manifests, replaced, duplicates = found
        version = metadata.format_version
        number = metadata.last_sequence_number + 1 if version > 1 else 0
        first_row_id = (metadata.next_row_id or 0) if version > 2 else None
        header = ListHeader(
            version, self._id, None if parent is None else parent.snapshot_id, number, first_row_id
        )
        path, listed, rows = self._store.write_list(manifests, attempt, header)
        self.summary = self._summarized(head, listed, replaced, duplicates)
        snapshot = Snapshot(
            self._id,
            header.parent_snapshot_id,
            number,
            now_ms,
            path,
            operation=self._changes.operation,
            summary=self.summary,
            schema_id=metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=rows if version > 2 else None,
        )
        self._store.keep(snapshot, listed, parent)
        branch = self._changes.branch
        if isinstance(branch, Staged):
            return *columns, AddSnapshot(snapshot)
        moved = moved_ref(metadata, branch, self._id)
        return *columns, AddSnapshot(snapshot), SetSnapshotRef(branch, moved)

    def result(self, after: Table) -> CommitResult:
        """The result of the commit, with the table after it."""
        if not self.summary:
            return CommitResult(after)
        return CommitResult(after, self._id, {"operation": self._changes.operation, **self.summary})

    def succeeded(self, table: Table) -> None:
        """Delete the files of lost attempts, if the snapshot can be read."""
        snapshot = table.metadata.snapshot(self._id)
        if snapshot is None or snapshot.manifest_list is None:
            return
        self._store.rebase(table.metadata)
        try:
            used = self._store.manifests_of(snapshot)
            paths = self._unused_paths(used)
        except StorageError:
            return  # another writer has expired the snapshot; unused files are left as orphans
        self._own.keep_only([snapshot.manifest_list, *(each.manifest_path for each in used)])
        for path in paths:
            remove_file(self._own.storage, path)

    def _unused_paths(self, manifests: Sequence[ManifestFile]) -> list[str]:
        """Files that some attempt would have added, but that are not in these manifests."""
        if len(self._ever_added) == len({each.path for each in self._changes.added}):
            return []  # all attempts added the same files
        own = [each for each in manifests if each.added_snapshot_id in (self._id, None)]
        used = {path for _, entries in self._store.read(own) for path in entries.path}
        return [each for each in self._ever_added if each not in used]

    def failed(self) -> None:
        """Delete all files that this commit wrote, and the files to add that it owns."""
        self._own.keep_only(())
        for path in self._ever_added:
            remove_file(self._own.storage, path)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that ``failed`` would delete."""
        return (*self._ever_added, *self._own.paths)

    # ------------------------------------------------------------------ manifests

    def _check(self, metadata: TableMetadata) -> None:
        """Raise if the files cannot be committed to the table's current format."""
        version, changes = metadata.format_version, self._changes
        if metadata.encryption_keys or metadata.properties.get("encryption.key-id"):
            raise UnsupportedTableError("writing encrypted tables")
        if changes.added_deletes and version < 2:
            raise UnsupportedTableError("deleting single rows in format version 1")
        for each in changes.added_deletes:
            is_vector = each.is_deletion_vector
            if each.content is FileContent.POSITION_DELETES and is_vector != (version > 2):
                raise CommitConflictError(
                    f"the table has format version {version} now, in which position deletes are "
                    f"{'vectors' if version > 2 else 'files'}; run the statement again"
                )

    def _manifests(
        self, base: Table, parent: Snapshot | None
    ) -> tuple[list[ManifestFile], int, int] | None:
        """The manifests to list, the number of replaced old ones, and of repeated removals.

        None if no snapshot is needed.
        """
        if self._is_nothing:
            return None
        store, old, metadata = self._store, self._store.manifests_of(parent), base.metadata
        data = self._data.apply(store, _of(old, ManifestContent.DATA))
        self._drop_deletes_older_than(data, metadata)
        deletes = self._deletes.apply(
            store, _of(old, ManifestContent.DELETES), self._may_hold_useless
        )
        self._removed = [file for each in (*data, *deletes) for file in each.removed]
        duplicates = self._check_removed()
        kept = []
        for content, filtered in (
            (ManifestContent.DATA, data),
            (ManifestContent.DELETES, deletes),
        ):
            live = [each for each in filtered if self._stays(each)]
            kept += self._merge.apply(store, [*self._added.of(store, content), *live])
        self._check_all(base, parent, old, kept)
        listed = [each.manifest for each in kept]
        paths = {each.manifest_path for each in listed}
        return (
            listed,
            sum(each.manifest_path not in paths and each.has_live_files for each in old),
            duplicates,
        )

    def _check_all(
        self,
        base: Table,
        parent: Snapshot | None,
        old: Sequence[ManifestFile],
        kept: Sequence[HeldManifest],
    ) -> None:
        """Raise if the manifests are not the old ones with exactly the statement's changes."""
        changes, store, removed = self._changes, self._store, self._removed
        added = [*map(file_key, changes.added_data), *map(file_key, changes.added_deletes)]
        check_carried(store, old, kept, added=added, removed=removed)
        planned = start_of(self.found.metadata, changes.branch)
        moved = planned != (None if parent is None else parent.snapshot_id)
        LiveRows(base, store, changes, removed, old, kept).check(moved=moved)

    def _stays(self, held: HeldManifest) -> bool:
        return held.manifest.has_live_files or held.manifest.added_snapshot_id == self._id

    def _drop_deletes_older_than(
        self, data: Iterable[HeldManifest], metadata: TableMetadata
    ) -> None:
        """Find the oldest sequence number of data, below which deletes apply to nothing."""
        numbers = [metadata.last_sequence_number]
        if self._changes.sequence_number is not None:
            # Rewritten rows keep their sequence number, so later deletes still apply to them.
            numbers.append(self._changes.sequence_number)
        for each in data:
            number = each.manifest.min_sequence_number
            if number != UNASSIGNED and self._stays(each) and each.manifest.has_live_files:
                numbers.append(number)
        oldest = min(numbers)
        if oldest != self._oldest_data:
            self._oldest_data = oldest
            self._deletes.forget()

    def _may_hold_useless(self, manifest: ManifestFile) -> bool:
        if not manifest.has_live_files:
            return False
        return bool(self._gone) or 0 < manifest.min_sequence_number < self._oldest_data

    def _applies_to_nothing(self, file: DataFile) -> bool:
        """True for deletes older than all live data, or of a data file that is removed now."""
        if file.referenced_data_file in self._gone:
            return True
        return 0 < file.sequence_number < self._oldest_data

    def _check_removed(self) -> int:
        """The number of repeated removals of a file. Raises if a file to remove is gone."""
        found = Counter(map(file_key, self._removed))
        missing = self._changes.removed_keys - found.keys()
        if missing:
            raise rows_changed(
                f"the file {min(missing)[0]} is no longer part of the table: another commit "
                "rewrote or deleted it; run the statement again"
            )
        read = Counter(map(file_key, data_of(self._changes.removed)))
        for key, times in read.items():
            if found[key] > times:
                raise rows_changed(
                    f"the file {key[0]} is part of the table {found[key]} times, and this change "
                    f"has read it {times} times; run the statement again"
                )
        return len(self._removed) - len(found)

    # ------------------------------------------------------------------ summary

    def _summarized(
        self,
        head: Snapshot | None,
        listed: Sequence[ManifestFile],
        replaced: int,
        duplicates: int,
    ) -> dict[str, str]:
        # A removed file that was listed twice counts twice, as it did in the totals.
        changed: tuple[tuple[Literal["added", "removed"], Sequence[DataFile]], ...] = (
            ("added", (*self._changes.added_data, *self._changes.added_deletes)),
            ("removed", self._removed),
        )
        files = ((verb, each, self._path(each)) for verb, some in changed for each in some)
        counted = counts(files, duplicates, self._store.settings.partition_limit)
        created = sum(each.added_snapshot_id == self._id for each in listed)
        branch = self._changes.branch
        return {
            **self._query.summary,
            **self._changes.summary,
            **({"wap.id": branch.wap_id} if isinstance(branch, Staged) else {}),
            **counted,
            **totals(None if head is None else head.summary, counted),
            "manifests-created": str(created),
            "manifests-kept": str(len(listed) - created),
            "manifests-replaced": str(replaced),
            **engine_summary(),
        }

    def _path(self, file: DataFile) -> str:
        spec, types = self._store.spec(file.spec_id)
        return partition_path(spec, self._store.metadata.file_schema, types, file.partition)


def _of(manifests: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [each for each in manifests if each.content is content]
