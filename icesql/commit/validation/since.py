"""Finds the files added to and removed from a branch since one of its snapshots was scanned.

Source: Java ``MergingSnapshotProducer.validationHistory``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.files import FileKey, file_key
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, rows_changed
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.manifest_reader import ManifestReader

APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
DELETE: Final = "delete"
REPLACE: Final = "replace"


class Changed(Frozen):
    """Indexes in ``entries`` of the files that snapshots of the range added and removed.

    ``operation`` is that of the snapshot whose list has the manifest; None if it records none.
    """

    operation: str | None
    entries: ManifestEntries
    added: Sequence[int]
    removed: Sequence[int]

    def by(self, operations: Collection[str]) -> bool:
        """True if the operation is one of these, or unknown."""
        return self.operation is None or self.operation in operations


class Since:
    """Changes of a branch of ``base`` between snapshot ``start_id`` and ``head``.

    ``start_id`` None: the branch was empty. ``number`` is the sequence number of the start; if it
    is None, it is taken from the base's metadata, or 0. ``own`` are snapshots of the same change,
    with the parent of each; they are skipped. Files that a snapshot lists without having added or
    removed them do not count. Raises CommitConflictError if the start is no longer an ancestor of
    the head, since the changes cannot be determined then.
    """

    def __init__(
        self,
        start_id: int | None,
        base: Table,
        head: Snapshot | None,
        query: QueryContext,
        *,
        number: int | None = None,
        own: Mapping[int, int | None] = MappingProxyType({}),
    ) -> None:
        self.base = base
        self.key_of = base.storage.same_file_key
        self.snapshots = _since(base, head, start_id, own)
        if number is None:
            start = None if start_id is None else base.metadata.snapshot(start_id)
            number = 0 if start is None else start.sequence_number
        self.number = number
        self._ids = frozenset(each.id_in_manifests for each in self.snapshots)
        self._reader = ManifestReader(base, query)

    def changed(
        self, content: ManifestContent, operations: Collection[str] | None = None
    ) -> Iterator[Changed]:
        """The changes of snapshots of these operations (None: all), manifest by manifest."""
        listed = [
            (each.operation, manifest)
            for each in self.snapshots
            if operations is None or each.operation is None or each.operation in operations
            for manifest in self._reader.manifests_of(each)
            if manifest.content is content
            and manifest.added_snapshot_id in (each.id_in_manifests, None)
        ]
        read = self._reader.entries_of([manifest for _, manifest in listed])
        for (operation, _), (_, entries) in zip(listed, read, strict=True):
            own = [n for n, each in enumerate(entries.snapshot_id) if each in self._ids]
            added = [n for n in own if entries.status[n] == ADDED]
            removed = [n for n in own if entries.status[n] == DELETED]
            if added or removed:
                yield Changed(operation, entries, added, removed)

    @cached_property
    def gone(self) -> frozenset[str]:
        """The keys of the data files that were removed."""
        return frozenset(
            self.key_of(each.entries.path[index])
            for each in self.changed(ManifestContent.DATA)
            for index in each.removed
        )

    def deletes(self) -> tuple[list[DataFile], set[FileKey]]:
        """The delete files and vectors that were added, and the keys of those that were removed."""
        new: list[DataFile] = []
        removed: set[FileKey] = set()
        for each in self.changed(ManifestContent.DELETES):
            new += map(each.entries.data_file, each.added)
            removed.update(file_key(each.entries.data_file(index)) for index in each.removed)
        return new, removed

    def as_old(self, file: DataFile) -> DataFile:
        """The file with its sequence number, but at most that of the start, as for new files."""
        return replace(file, sequence_number=min(file.sequence_number, self.number))

    def lost_delete(
        self, came: DeleteIndex, files: Sequence[DataFile], made: Sequence[DataFile] | None
    ) -> str | None:
        """The first problem with deletes in ``came`` that would not apply to the same rows.

        ``made`` are the files that replace ``files``, with the sequence number of the start; None
        if they have a later one, so that no delete applies to them. None if there is no problem.
        """
        specs = self.base.metadata.specs
        for each in files:
            for delete in came.deletes_of(self.as_old(each)):
                # Rows stay in their partition unless they move to another spec.
                stays = (
                    made is not None
                    and delete.content is FileContent.EQUALITY_DELETES
                    and (
                        specs[delete.spec_id].is_unpartitioned
                        or all(file.spec_id == each.spec_id for file in made)
                    )
                )
                if not stays:
                    return f"rows of {each.path}, which it rewrites, were deleted"
        for file in made or ():
            if all(each.spec_id == file.spec_id for each in files):
                continue
            # Rows moved into a partition whose deletes would wrongly apply to them.
            for delete in came.deletes_of(self.as_old(file)):
                if not specs[delete.spec_id].is_unpartitioned:
                    return f"rows of the partition that gets {file.path} were deleted"
        return None


def _since(
    table: Table, head: Snapshot | None, start_id: int | None, own: Mapping[int, int | None]
) -> list[Snapshot]:
    """The snapshots after the start, newest first. Only the start and own ones may be expired."""
    found: list[Snapshot] = []
    current = None if head is None else head.snapshot_id
    seen: set[int] = set()
    while current is not None and current != start_id:
        if current in seen:
            raise CorruptFileError(table.metadata_location, "snapshots are their own ancestors")
        seen.add(current)
        if current in own:
            current = own[current]
            continue
        snapshot = table.metadata.snapshot(current)
        if snapshot is None:
            raise rows_changed(
                f"what happened to {table.name} since the statement read it is not known any "
                f"more: snapshot {current} is expired; run the statement again"
            )
        found.append(snapshot)
        current = snapshot.parent_snapshot_id
    if current is None and start_id is not None:
        raise rows_changed(
            f"the snapshot {start_id} that the statement read is not part of {table.name} any "
            "more; run the statement again"
        )
    return found
