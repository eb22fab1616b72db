"""Deletes whole files by a predicate, without reading them: by metadata all their rows match.

Source: Java ``StreamingDelete`` and ``ManifestFilterManager``; icesql also checks for new rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.append import commit_files
from icesql.commit.change import CommitResult
from icesql.commit.files import FileChanges
from icesql.commit.rows import overwrite_operation
from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch
from icesql.commit.validation.checks import Matching, validate
from icesql.commit.validation.since import Since
from icesql.commit.validation.validation import Validation, unchanged
from icesql.context import QueryContext
from icesql.errors import CommitConflictError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.expressions.projection import strict
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.pruning.manifest_evaluator import manifest_may_match
from icesql.scan.pruning.partition_evaluator import partition_mask
from icesql.scan.pruning.strict_evaluator import strict_mask


class MatchedFiles(Frozen):
    """Live data files of which all rows match a predicate, and paths of those that may match."""

    whole: tuple[DataFile, ...] = ()
    partly: tuple[str, ...] = ()


def matched_files(
    table: Table, snapshot: Snapshot | None, predicate: Predicate, query: QueryContext
) -> MatchedFiles:
    """The data files of a snapshot that may match a predicate, by partition and metrics alone.

    Deleted rows count as rows. ``predicate`` is the exact condition on rows, with SQL's rules for
    NULL; it refers to fields of the current schema.
    """
    if snapshot is None:
        return MatchedFiles()
    matching = Matching(table.metadata, predicate)
    specs = matching.specs
    reader = ManifestReader(table, query)
    kept = [
        each
        for each in reader.manifests_of(snapshot)
        if each.content is ManifestContent.DATA
        and each.has_live_files
        and manifest_may_match(each, specs.of(each).predicate, specs.of(each).types_by_id)
    ]
    whole: list[DataFile] = []
    partly: list[str] = []
    for manifest, entries in reader.entries_of(kept):
        concerned = matching.files(entries, entries.live_indexes)
        spec = specs.of(manifest).spec
        sure = _surely(table.metadata.schema, entries, predicate, spec, concerned)
        whole += [entries.data_file(index) for index in concerned if index in sure]
        partly += [entries.path[index] for index in concerned if index not in sure]
    return MatchedFiles(tuple(whole), tuple(partly))


def _surely(
    schema: Schema,
    entries: ManifestEntries,
    predicate: Predicate,
    spec: PartitionSpec,
    concerned: Sequence[int],
) -> set[int]:
    if predicate is ALWAYS_TRUE:
        return {*concerned}
    by_partition = partition_mask(entries, strict(predicate, spec, schema), spec, concerned)
    left = [index for index in concerned if not by_partition[index]]
    by_metrics = strict_mask(entries, predicate, schema, left)
    return {index for index in concerned if by_partition[index] or by_metrics[index]}


def commit_delete_where(
    catalog: Catalog,
    table: Table,
    predicate: Predicate,
    *,
    added: Sequence[DataFile] = (),
    start_id: int | None,
    read: Predicate | None = None,
    branch: Branch = MAIN,
    rows: int | None = None,
    schema: SchemaChange | None = None,
    query: QueryContext,
) -> CommitResult:
    """Remove all files of which every row satisfies ``predicate``, and add others.

    A DELETE by metadata; with ``added``, INSERT OVERWRITE by a filter. The files are looked up
    again at each attempt, so files that a compaction wrote meanwhile are removed, too. Conflicts: a
    file of which only some rows may match (it would need a rewrite); rows added since snapshot
    ``start_id`` that may match; ``read`` as in ``commit_replace_partitions``. If nothing is removed
    or added, nothing is committed. ``rows`` is the change in the number of live rows of that
    snapshot, if known. ``schema`` is as for ``commit_append``.
    """
    wanted = Validation(start_id, predicate, no_added_data=True)

    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        since = Since(start_id, base, head, query)
        validate(wanted, since)
        if read is not None:
            validate(unchanged(start_id, read), since)

    def plan(base: Table, head: Snapshot | None) -> FileChanges:
        found = matched_files(base, head, predicate, query)
        if found.partly:
            raise CommitConflictError(
                f"only some rows of {found.partly[0]} match, which cannot be deleted as a whole; "
                "run the statement again"
            )
        operation = overwrite_operation(added, found.whole)
        as_read = (None if head is None else head.snapshot_id) == start_id
        counted = rows if as_read else None
        return replace(changes, removed=found.whole, operation=operation, rows=counted)

    changes = FileChanges("delete", (*added,), branch=branch, schema=schema)
    return commit_files(catalog, table, changes, query, validate=check, plan=plan)
