"""Checks a change for conflicts with other writers' commits since it was planned.

Source: Java ``MergingSnapshotProducer.validate…`` and ``validationHistory``;
``BaseOverwriteFiles``, ``BaseRowDelta``, ``BaseReplacePartitions``; Spark's ``SparkWrite`` and
``SparkPositionDeltaWrite``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, NoReturn

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.branches import Branch, branch_head
from icesql.commit.file_changes import FileKey, file_key
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, CorruptFileError, rows_changed
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.schema import Schema
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.delete_pruning import may_delete_matching_rows
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.pruning.metrics_evaluator import metrics_mask
from icesql.scan.pruning.partition_evaluator import partition_mask
from icesql.scan.spec_scan import SpecScans

# ------------------------------------------------------------------ files changed since a snapshot


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


# ------------------------------------------------------------------ state that a change relied on


Isolation = Literal["serializable", "snapshot"]


def unchanged(start_id: int | None, read: Predicate) -> Validation:
    """Check that no row for which ``read`` may be true was changed."""
    return Validation(start_id, read, no_added_data=True, no_deleted_data=True, no_new_deletes=True)


class Validation(Frozen):
    """Changes that a branch must not have had since snapshot ``start_id`` was scanned.

    ``start_id`` None means that the branch was empty then. ``row_filter`` is the filter that was
    pushed into the scan (fields of the current schema by id). All rows that the statement matched
    satisfy it, so that files which cannot match it are irrelevant.

    - ``no_added_data``: no rows were added that the statement would have read (serializable).
    - ``no_deleted_data``: no data file was removed that may match.
    - ``no_new_deletes``: no delete file was added that may match.
    - ``undeleted``: files to remove, of which no row must have been deleted, whether it may match
      or not: the files that replace them contain the old rows. ``only_updates``: all of their rows
      are removed, so that deletes by commits without new rows do not count. ``same_age``: the new
      files, if they have the sequence number of the start; an equality delete that applies to them,
      too, does not count.
    - ``existing``: paths of data files that must still exist; with ``only_updates``, except those
      that a whole-file delete removed.
    - ``vectors_of``: data files that get a deletion vector, and must not have got another one.
    """

    start_id: int | None
    row_filter: Predicate = ALWAYS_TRUE
    no_added_data: bool = False
    no_deleted_data: bool = False
    no_new_deletes: bool = False
    undeleted: tuple[DataFile, ...] = ()
    only_updates: bool = False
    same_age: tuple[DataFile, ...] | None = None
    existing: frozenset[str] = frozenset()
    vectors_of: frozenset[str] = frozenset()


# ------------------------------------------------------------------ checks


# The files of manifests that may have rows of a predicate.


class Matching:
    """A predicate on fields of the current schema, by the partitions and metrics of files."""

    def __init__(self, metadata: TableMetadata, predicate: Predicate) -> None:
        self._schema, self._predicate = metadata.schema, predicate
        self.specs = SpecScans(predicate, metadata.schema, metadata)

    def files(self, entries: ManifestEntries, indexes: Sequence[int]) -> list[int]:
        """Those of ``indexes`` whose files may have a row of the predicate."""
        kept = self.in_partitions(entries, indexes)
        if not kept or self._predicate is ALWAYS_TRUE:
            return kept
        mask = metrics_mask(entries, self._predicate, self._schema, kept)
        return [index for index in kept if mask[index]]

    def in_partitions(self, entries: ManifestEntries, indexes: Sequence[int]) -> list[int]:
        """As ``files``, by the partitions alone."""
        if self._predicate is ALWAYS_TRUE:
            return [*indexes]
        spec = self.specs[entries.spec_id]
        if spec.predicate is ALWAYS_TRUE:
            return [*indexes]
        mask = partition_mask(entries, spec.predicate, spec.spec, indexes)
        return [index for index in indexes if mask[index]]


_ROWS: Final = (APPEND, OVERWRITE)
_GONE: Final = (OVERWRITE, REPLACE, DELETE)
_NEW_DELETES: Final = (OVERWRITE, DELETE)
_NO_NEW_ROWS: Final = (DELETE, REPLACE)


def validate(validation: Validation, since: Since) -> None:
    """Raise CommitConflictError for concurrent changes that conflict with this one."""
    if not since.snapshots:
        return
    checks = _Checks(validation, since)
    checks.check_data()
    checks.check_deletes()


class _Checks:
    def __init__(self, validation: Validation, since: Since) -> None:
        self._wanted, self._since = validation, since
        self._matching = Matching(since.base.metadata, validation.row_filter)

    def check_data(self) -> None:
        """Refuse added or removed data files that may match, and removed ones that are needed."""
        wanted = self._wanted
        rows = _ROWS if wanted.no_added_data else ()
        gone: tuple[str, ...] = ()
        if wanted.no_deleted_data or wanted.existing:
            is_all = wanted.no_deleted_data or not wanted.only_updates
            gone = _GONE if is_all else (OVERWRITE, REPLACE)
        if not rows and not gone:
            return
        for each in self._since.changed(ManifestContent.DATA, {*rows, *gone}):
            entries = each.entries
            if rows and each.by(rows):
                for index in self._matching.files(entries, each.added):
                    self._refuse(f"{entries.path[index]} was added, whose rows it may concern")
            if not gone or not each.by(gone):
                continue
            for index in each.removed:
                if entries.path[index] in wanted.existing:
                    self._refuse(f"{entries.path[index]}, of which it deletes rows, was removed")
            if wanted.no_deleted_data:
                for index in self._matching.files(entries, each.removed):
                    self._refuse(f"{entries.path[index]} was removed, whose rows it may concern")

    def check_deletes(self) -> None:
        """Refuse new deletes that may match, or that apply to a file of this change."""
        wanted = self._wanted
        of_files = bool(wanted.undeleted or wanted.vectors_of)
        if not of_files and not wanted.no_new_deletes:
            return
        operations = None if of_files else _NEW_DELETES
        key_of = self._since.key_of
        vectors_of = {key_of(each) for each in wanted.vectors_of}
        new: list[DataFile] = []
        for each in self._since.changed(ManifestContent.DELETES, operations):
            if wanted.no_new_deletes and each.by(_NEW_DELETES):
                self._refuse_matching(each)
            for index in each.added if vectors_of else ():
                if each.entries.file_format[index] == "PUFFIN":
                    path = each.entries.data_file(index).referenced_data_file
                    if path is not None and key_of(path) in vectors_of:
                        self._refuse(f"rows of {path} were deleted")
            if wanted.undeleted:
                new += self._newer(each)
        if new:
            self._refuse_deletes_of_files(new)

    def _refuse_matching(self, changed: Changed) -> None:
        """Refuse added deletes that may match."""
        wanted, entries = self._wanted, changed.entries
        kept = self._matching.in_partitions(entries, changed.added)
        if wanted.row_filter is not ALWAYS_TRUE:
            schema = self._since.base.metadata.schema
            kept = may_delete_matching_rows(entries, kept, wanted.row_filter, schema)
        for index in kept:
            path = entries.path[index]
            self._refuse(f"{path} was added, which deletes rows that it may concern")

    def _newer(self, changed: Changed) -> list[DataFile]:
        """The new deletes; rewritten ones, which keep an old sequence number, are not new."""
        left_out = {
            each.id_in_manifests
            for each in self._since.snapshots
            if self._wanted.only_updates and each.operation in _NO_NEW_ROWS
        }
        entries = changed.entries
        return [
            entries.data_file(index)
            for index in changed.added
            if entries.sequence_number[index] > self._since.number
            and entries.snapshot_id[index] not in left_out
        ]

    def _refuse_deletes_of_files(self, new: Sequence[DataFile]) -> None:
        """Refuse any deletes of rows in removed files: the new files contain those rows.

        Deletes that apply to the new files as well, because rows keep their sequence number, are no
        conflict.
        """
        # A file may have got several vectors, one after another.
        key_of = self._since.key_of
        vectors = {
            key_of(each.referenced_data_file or "") for each in new if each.is_deletion_vector
        }
        for each in self._wanted.undeleted:
            if vectors and key_of(each.path) in vectors:
                self._refuse(f"rows of {each.path}, which it rewrites, were deleted")
        others = [each for each in new if not each.is_deletion_vector]
        index = DeleteIndex.of(self._since.base, others)
        lost = self._since.lost_delete(index, self._wanted.undeleted, self._wanted.same_age)
        if lost is not None:
            self._refuse(lost)

    def _refuse(self, what: str) -> NoReturn:
        raise rows_changed(
            f"another commit to {self._since.base.name} conflicts with this statement: {what}; "
            "nothing was changed, run the statement again"
        )


# ------------------------------------------------------------------ files of an older state
# An append can be applied to any later state of the table. But its files refer to column ids and
# to a partition spec, whose meaning may have changed: CREATE OR REPLACE TABLE keeps the uuid, and
# other engines then give a new column the id of the old column of its name, even if the type
# differs.


_REPLACED: Final = "it was replaced by another table"


def check_planned(found: Table, base: Table, branch: Branch, added: Collection[DataFile]) -> None:
    """Raise CommitConflictError if files made for ``found`` do not fit ``base``, the current state.

    ``added`` are the data files of new rows. Renamed, widened, added or dropped columns are no
    problem; a replaced table is, whatever its columns.
    """
    problem = _problem(found.metadata, base.metadata, branch, added)
    if problem is not None:
        raise CommitConflictError(
            f"{base.name} changed since the statement looked at it: {problem}; nothing was "
            "changed, run the statement again"
        )


def _problem(
    planned: TableMetadata, base: TableMetadata, branch: Branch, added: Collection[DataFile]
) -> str | None:
    if planned is base:
        return None
    is_named = isinstance(branch, str) and branch != MAIN
    if is_named and branch in planned.refs and branch not in base.refs:
        return f"the branch {branch!r} was dropped"
    problem = _of_types(planned.schema, base.schema)
    if problem is not None or not added:
        return problem
    return (
        _of_specs(planned, base, added)
        or _of_required(planned.schema, base.schema)
        or _of_history(planned, base, branch)
    )


def _of_types(planned: Schema, base: Schema) -> str | None:
    """The problem if a column of both schemas has an incompatible type or another parent."""
    for field_id, field in planned.field_by_id.items():
        now = base.field_by_id.get(field_id)
        if now is None:
            continue
        same_place = planned.parent_by_id.get(field_id) == base.parent_by_id.get(field_id)
        if not same_place or not is_readable(field.type, now.type):
            name = planned.name_by_id[field_id]
            return f'the column "{name}" was {field.type} and is {now.type}'
    return None


def is_readable(old: t.IcebergType, new: t.IcebergType) -> bool:
    """True if values of one type can be read as another; children are checked as fields."""
    if isinstance(old, t.PrimitiveType) or isinstance(new, t.PrimitiveType):
        return is_widening(old, new)
    return type(old) is type(new)


def _of_required(planned: Schema, base: Schema) -> str | None:
    """The problem if a column is required now and the new rows may lack a value for it."""
    for field_id, now in base.field_by_id.items():
        if not now.required:
            continue
        before = planned.field_by_id.get(field_id)
        if before is None:
            parent = base.parent_by_id.get(field_id)
            is_written = parent is None or parent in planned.field_by_id
            lacks = is_written and now.initial_default in (t.MISSING, None)
        else:
            lacks = not before.required
        if lacks:
            return f'the column "{base.name_by_id[field_id]}" is NOT NULL'
    return None


def _of_specs(planned: TableMetadata, base: TableMetadata, added: Iterable[DataFile]) -> str | None:
    """The problem if a partition spec of the files is gone, or its id means another spec."""
    for spec_id in {each.spec_id for each in added}:
        before, now = planned.specs.get(spec_id), base.specs.get(spec_id)
        if now is None or (before is not None and before.fields != now.fields):
            return f"its partition spec {spec_id} is gone, or another one"
    return None


def _of_history(planned: TableMetadata, base: TableMetadata, branch: Branch) -> str | None:
    """The problem if REPLACE TABLE has restarted the branch.

    If the history does not show that, because the branch was empty or snapshots are expired, a
    missing column is the problem: rows of a replaced table would be reduced to NULLs.
    """
    _, start = branch_head(planned, branch)
    _, current = branch_head(base, branch)
    if start is not None and current is None:
        return _REPLACED
    for each in base.ancestry(None if start is None else current):
        # Not restarted: it was rolled back, or set to a snapshot that existed at planning time.
        if each.snapshot_id in planned.snapshots:
            return None
        if each.parent_snapshot_id is None:
            return _REPLACED
        if start is not None and each.parent_snapshot_id == start.snapshot_id:
            return None
    for field_id, name in planned.schema.name_by_id.items():
        if field_id not in base.schema.field_by_id:
            return f'the column "{name}" is gone'
    return None
