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
from icesql.errors import CommitConflictError
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


def validate(
    validation: Validation, table: Table, head: Snapshot | None, query: QueryContext
) -> None:
    """Raise CommitConflictError where others did what the change relied on not to happen."""
    history = History(table, head, validation.start_id, validation.row_filter, query)
    if not history.snapshots:
        return
    checks = _Checks(validation, history)
    if validation.no_added_data:
        checks.refuse_added_data()
    if validation.no_deleted_data or validation.existing:
        checks.refuse_deleted_data()
    if validation.no_new_deletes or validation.undeleted:
        checks.refuse_new_deletes()
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
        """No row was deleted of the files that are rewritten, nor of what might have matched."""
        wanted, found = self._wanted, list[DataFile]()
        for spec, _, entries, indexes in self._history.changed(
            _NEW_DELETES, ManifestContent.DELETES
        ):
            added = [n for n in indexes if entries.status[n] == ADDED]
            kept = self._in_partitions(spec, entries, added)
            if wanted.row_filter is not ALWAYS_TRUE and wanted.partitions is None:
                schema = self._history.table.metadata.schema
                kept = may_delete_matching_rows(entries, kept, wanted.row_filter, schema)
            found += [entries.data_file(index) for index in kept]
        if found and wanted.no_new_deletes:
            self._refuse(f"{found[0].path} was added, which deletes rows that it may concern")
        if found and wanted.undeleted:
            self._refuse_deletes_of(wanted.undeleted, found)

    def _refuse_deletes_of(self, files: Sequence[DataFile], deletes: Sequence[DataFile]) -> None:
        if self._wanted.only_positions:
            deletes = [each for each in deletes if each.content is FileContent.POSITION_DELETES]
        # A file may have got several vectors, one after the other.
        vectors = {each.referenced_data_file for each in deletes if each.is_deletion_vector}
        metadata, storage = self._history.table.metadata, self._history.table.storage
        index = DeleteIndex(
            [each for each in deletes if not each.is_deletion_vector],
            metadata.specs,
            metadata.file_schema,
            storage.same_file_key,
        )
        start = metadata.snapshot(self._wanted.start_id or 0)
        number = 0 if start is None else start.sequence_number
        for each in files:
            of_start = replace(each, sequence_number=min(each.sequence_number, number))
            if each.path in vectors or index.deletes_of(of_start):
                self._refuse(f"rows of {each.path}, which it rewrites, were deleted")

    def refuse_other_vectors(self) -> None:
        """No file got a deletion vector meanwhile that gets one by this change."""
        for _, _, entries, indexes in self._history.changed(_GONE, ManifestContent.DELETES):
            for index in indexes:
                if entries.status[index] == DELETED or entries.file_format[index] != "PUFFIN":
                    continue
                file = entries.data_file(index)
                if file.referenced_data_file in self._wanted.vectors_of:
                    self._refuse(f"rows of {file.referenced_data_file} were deleted")

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
        raise CommitConflictError(
            f"another commit to {self._history.table.name} conflicts with this statement: {what}; "
            "nothing was changed, run the statement again"
        )
