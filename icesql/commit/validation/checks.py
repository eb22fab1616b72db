"""Checks a ``Validation`` against the head of a branch.

Source: Java ``MergingSnapshotProducer.validate…`` methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from icesql.commit.validation.since import APPEND, DELETE, OVERWRITE, REPLACE, Changed, Since
from icesql.commit.validation.validation import Validation
from icesql.errors import rows_changed
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.delete_pruning import may_delete_matching_rows
from icesql.scan.pruning.metrics_evaluator import metrics_mask
from icesql.scan.pruning.partition_evaluator import partition_mask
from icesql.scan.spec_scan import SpecScans

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
