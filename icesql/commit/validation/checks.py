"""Check a validation against the head of a branch.

Source: Java ``MergingSnapshotProducer.validate…`` methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.validation.history import APPEND, DELETE, OVERWRITE, REPLACE, History
from icesql.commit.validation.validation import Validation
from icesql.context import QueryContext
from icesql.errors import rows_changed
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.deletes.delete_index import DeleteIndex, partition_key
from icesql.scan.deletes.delete_pruning import may_delete_matching_rows
from icesql.scan.pruning.metrics_evaluator import metrics_mask
from icesql.scan.pruning.partition_evaluator import partition_mask
from icesql.scan.spec_scan import SpecScan

_ROWS: Final = (APPEND, OVERWRITE)
_GONE: Final = (OVERWRITE, REPLACE, DELETE)
_NEW_DELETES: Final = (OVERWRITE, DELETE)
_NO_NEW_ROWS: Final = (DELETE, REPLACE)


def validate(
    validation: Validation, table: Table, head: Snapshot | None, query: QueryContext
) -> None:
    """Raise CommitConflictError for concurrent changes that this one cannot follow."""
    start_id, row_filter = validation.start_id, validation.row_filter
    history = History(table, head, start_id, row_filter, query, own=validation.own)
    if not history.snapshots:
        return
    checks = _Checks(validation, history)
    if validation.no_added_data:
        checks.refuse_added_data()
    if validation.no_deleted_data or validation.existing:
        checks.refuse_deleted_data()
    if validation.no_new_deletes:
        checks.refuse_new_deletes()
    if validation.undeleted:
        checks.refuse_deletes_of_files()
    if validation.vectors_of:
        checks.refuse_other_vectors()


class _Checks:
    def __init__(self, validation: Validation, history: History) -> None:
        self._wanted, self._history = validation, history
        self._partitions = None
        if validation.partitions is not None:
            self._partitions = {
                (spec_id, partition_key(partition)) for spec_id, partition in validation.partitions
            }

    def refuse_added_data(self) -> None:
        """No data file was added that the statement might have matched."""
        for spec, _, entries, indexes in self._history.changed(_ROWS, ManifestContent.DATA):
            added = [n for n in indexes if entries.status[n] == ADDED]
            for index in self._matching(spec, entries, added):
                self._refuse(f"{entries.path[index]} was added, whose rows it may concern")

    def refuse_deleted_data(self) -> None:
        """No data file was removed that has to be there, or that might have matched."""
        wanted = self._wanted
        paths = wanted.existing
        operations = (OVERWRITE, REPLACE) if wanted.skip_deletes else _GONE
        if wanted.no_deleted_data:
            operations = _GONE
        for spec, _, entries, indexes in self._history.changed(operations, ManifestContent.DATA):
            gone = [n for n in indexes if entries.status[n] == DELETED]
            for index in gone:
                if entries.path[index] in paths:
                    self._refuse(f"{entries.path[index]}, of which it deletes rows, was removed")
            if wanted.no_deleted_data:
                for index in self._matching(spec, entries, gone):
                    self._refuse(f"{entries.path[index]} was removed, whose rows it may concern")

    def refuse_new_deletes(self) -> None:
        """No row was deleted that the statement might have matched."""
        wanted = self._wanted
        for spec, _, entries, indexes in self._history.changed(
            _NEW_DELETES, ManifestContent.DELETES
        ):
            added = [n for n in indexes if entries.status[n] == ADDED]
            kept = self._in_partitions(spec, entries, added)
            if wanted.row_filter is not ALWAYS_TRUE and wanted.partitions is None:
                schema = self._history.table.metadata.schema
                kept = may_delete_matching_rows(entries, kept, wanted.row_filter, schema)
            for index in kept:
                path = entries.path[index]
                self._refuse(f"{path} was added, which deletes rows that it may concern")

    def refuse_deletes_of_files(self) -> None:
        """No row was deleted of the files that go, whichever: new ones hold the rows of all.

        Deletes that the new files get as well, for their rows are as old as they were, are no
        conflict.
        """
        wanted = self._wanted
        start = self._history.table.metadata.snapshot(wanted.start_id or 0)
        number = 0 if start is None else start.sequence_number
        found = self._deletes_since(number)
        if not found:
            return
        # A file may have got several vectors, one after the other.
        key_of = self._history.table.storage.same_file_key
        vectors = {
            key_of(each.referenced_data_file or "") for each in found if each.is_deletion_vector
        }
        metadata = self._history.table.metadata
        others = [each for each in found if not each.is_deletion_vector]
        index = DeleteIndex(others, metadata.specs, metadata.file_schema, key_of)
        for each in wanted.undeleted:
            applied = index.deletes_of(_of_age(each, number))
            lost = [one for one in applied if not self._stays(one, each)]
            if lost or (vectors and key_of(each.path) in vectors):
                self._refuse(f"rows of {each.path}, which it rewrites, were deleted")
        if wanted.same_age is not None:
            self._refuse_deletes_of_others(wanted.same_age, index, number)

    def _deletes_since(self, number: int) -> list[DataFile]:
        """The deletes that came. Those as old as what they took the place of are no new ones."""
        left_out = {
            each.id_in_manifests
            for each in self._history.snapshots
            if self._wanted.only_updates and each.operation in _NO_NEW_ROWS
        }
        return [
            entries.data_file(index)
            for _, _, entries, indexes in self._history.changed(None, ManifestContent.DELETES)
            for index in indexes
            if entries.status[index] == ADDED
            and entries.sequence_number[index] > number
            and entries.snapshot_id[index] not in left_out
        ]

    def _stays(self, delete: DataFile, file: DataFile) -> bool:
        """Whether a delete of a file deletes the same rows in what takes its place."""
        made = self._wanted.same_age
        if made is None or delete.content is not FileContent.EQUALITY_DELETES:
            return False
        if self._history.table.metadata.specs[delete.spec_id].is_unpartitioned:
            return True
        # Rows stay in their partition unless it is another spec's.
        return all(each.spec_id == file.spec_id for each in made)

    def _refuse_deletes_of_others(
        self, made: Sequence[DataFile], index: DeleteIndex, number: int
    ) -> None:
        """Refuse where rows came into a partition whose deletes were not meant for them."""
        specs = self._history.table.metadata.specs
        for each in made:
            if all(old.spec_id == each.spec_id for old in self._wanted.undeleted):
                continue
            for delete in index.deletes_of(_of_age(each, number)):
                if not specs[delete.spec_id].is_unpartitioned:
                    self._refuse(f"rows of the partition that gets {each.path} were deleted")

    def refuse_other_vectors(self) -> None:
        """No file got a deletion vector meanwhile that gets one by this change."""
        key_of = self._history.table.storage.same_file_key
        files = {key_of(each) for each in self._wanted.vectors_of}
        for _, _, entries, indexes in self._history.changed(None, ManifestContent.DELETES):
            for index in indexes:
                if entries.status[index] == DELETED or entries.file_format[index] != "PUFFIN":
                    continue
                path = entries.data_file(index).referenced_data_file
                if path is not None and key_of(path) in files:
                    self._refuse(f"rows of {path} were deleted")

    # ------------------------------------------------------------------ matching

    def _matching(
        self, spec: SpecScan, entries: ManifestEntries, indexes: Sequence[int]
    ) -> list[int]:
        kept = self._in_partitions(spec, entries, indexes)
        wanted = self._wanted.row_filter
        if not kept or wanted is ALWAYS_TRUE or self._partitions is not None:
            return kept
        mask = metrics_mask(entries, wanted, self._history.table.metadata.schema, kept)
        return [index for index in kept if mask[index]]

    def _in_partitions(
        self, spec: SpecScan, entries: ManifestEntries, indexes: Sequence[int]
    ) -> list[int]:
        if self._partitions is not None:
            spec_id = spec.spec.spec_id
            return [
                index
                for index in indexes
                if (spec_id, partition_key(entries.partition[index])) in self._partitions
            ]
        if spec.predicate is ALWAYS_TRUE:
            return [*indexes]
        mask = partition_mask(entries, spec.predicate, spec.spec, indexes)
        return [index for index in indexes if mask[index]]

    def _refuse(self, what: str) -> NoReturn:
        raise rows_changed(
            f"another commit to {self._history.table.name} conflicts with this statement: {what}; "
            "nothing was changed, run the statement again"
        )


def _of_age(file: DataFile, number: int) -> DataFile:
    """The file as old as it is, or as the start is where it is younger, as new ones are."""
    return replace(file, sequence_number=min(file.sequence_number, number))
