"""Commits that change rows: files appended, replaced or deleted, partitions overwritten.

Source: Java ``OverwriteFiles``, ``RowDelta``, ``ReplacePartitions``, ``RewriteFiles``, each with
the checks that Spark's writers enable; ``StreamingDelete`` for whole files, to which icesql adds a
check for new rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final, Literal, Unpack

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.branches import Branch
from icesql.commit.conflicts import Isolation, Matching, Since, Validation, unchanged, validate
from icesql.commit.file_changes import (
    ChangeOptions,
    CommitResult,
    FileChanges,
    SchemaChange,
    data_of,
)
from icesql.commit.snapshot_operation import Plan, SnapshotOperation, Validate
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
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
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.pruning.partition_evaluator import manifest_may_match, partition_mask
from icesql.scan.pruning.strict_evaluator import strict_mask

# ------------------------------------------------------------------ files appended


def commit_append(
    catalog: Catalog,
    table: Table,
    files: Sequence[DataFile],
    *,
    query: QueryContext | None = None,
    **options: Unpack[ChangeOptions],
) -> CommitResult:
    """Add data files as one snapshot of a branch; without files nothing is committed.

    A branch that does not exist is created. The commit owns the files: they are deleted if it
    fails. Appends never conflict with other commits: they are retried on the new state of the
    table. ``rows`` is the number of rows in the files, if known. The snapshot's summary has the
    keys of ``query.summary``.

    Raises CommitConflictError if all attempts lost, CommitStateUnknownError if it cannot be
    determined whether the commit was applied (the files stay then).
    """
    return commit_files(catalog, table, FileChanges("append", tuple(files), **options), query)


def commit_files(
    catalog: Catalog,
    table: Table,
    changes: FileChanges,
    query: QueryContext | None,
    *,
    validate: Validate | None = None,
    plan: Plan | None = None,
) -> CommitResult:
    """Commit changes of files that conflict only with the removal of the same files.

    ``validate`` can check for more conflicts, and ``plan`` plan the changes again, at each attempt.
    """
    if changes.has_no_files and changes.schema is None and plan is None:
        return CommitResult(table)
    context = query or QueryContext()
    operation = SnapshotOperation(table, changes, context, validate=validate, plan=plan)
    return operation.result(commit(catalog, table, operation, context))


# ------------------------------------------------------------------ rows changed


# Replaced partitions: all of their live files, data and deletes.


def partition_files(
    table: Table,
    head: Snapshot | None,
    wanted: Collection[tuple[int, tuple[Any, ...]]],
    query: QueryContext,
) -> tuple[DataFile, ...]:
    """The files of a snapshot in these partitions; files of other specs are left out."""
    if head is None or not wanted:
        return ()
    reader = ManifestReader(table, query)
    specs = {spec_id for spec_id, _ in wanted}
    listed = [each for each in reader.manifests_of(head) if each.partition_spec_id in specs]
    files = (entries.data_file(index) for entries, index in reader.live(listed))
    return tuple(each for each in files if partition_of(each) in wanted)


def commit_row_delta(
    catalog: Catalog,
    table: Table,
    *,
    added: Sequence[DataFile] = (),
    deletes: Sequence[DataFile] = (),
    removed: Sequence[DataFile] = (),
    referenced: Sequence[str] = (),
    start_id: int | None,
    command: Literal["delete", "update", "merge"] | None,
    row_filter: Predicate = ALWAYS_TRUE,
    isolation: Isolation = "serializable",
    query: QueryContext | None = None,
    **options: Unpack[ChangeOptions],
) -> CommitResult:
    """Add delete files or deletion vectors, and rows: a merge-on-read DELETE, UPDATE or MERGE.

    ``removed`` are the vectors and file-scoped position deletes that new ones replace (and data
    files that are removed as a whole); ``referenced`` are the paths of all data files of which rows
    are deleted. Conflicts: a referenced file that is gone, another vector for it, a removed data
    file of which rows were updated; for UPDATE and MERGE, also new deletes that may match or that
    apply to a removed file; with serializable isolation, also new rows that may match. ``rows`` is
    the change in the number of live rows, if known; see ``commit.live_rows``. Without files
    nothing is committed. Raises as ``commit_append``.

    Without a ``command`` files are replaced by files: a copy-on-write change. ``removed`` are data
    files from the scan of snapshot ``start_id``, and their deletion vectors; ``row_filter`` is the
    filter that was pushed into that scan. Of a removed file any deleted rows conflict (if no file
    is added, only updated ones).
    """
    vectors = [each.referenced_data_file for each in deletes if each.is_deletion_vector]
    wanted = Validation(
        start_id,
        row_filter,
        no_added_data=isolation == "serializable",
        no_new_deletes=command in ("update", "merge"),
        undeleted=data_of(removed),
        only_updates=not added if command is None else command == "delete",
        existing=frozenset(referenced),
        vectors_of=frozenset(each for each in vectors if each is not None),
    )
    both = {each.path for each in data_of(removed)} & {*referenced}
    if both:
        raise ProgrammingError(f"{min(both)} is removed, and rows of it are deleted, in one commit")
    operation = overwrite_operation(added, (*deletes, *data_of(removed)))
    changes = FileChanges(operation, (*added, *deletes), (*removed,), **options)
    return _commit(catalog, table, changes, wanted, query)


commit_overwrite: Final = partial(commit_row_delta, command=None)


def commit_replace_partitions(
    catalog: Catalog,
    table: Table,
    *,
    added: Sequence[DataFile],
    start_id: int | None,
    read: Predicate | None = None,
    branch: Branch = MAIN,
    schema: SchemaChange | None = None,
    query: QueryContext,
) -> CommitResult:
    """Replace the contents of partitions by new files: dynamic INSERT OVERWRITE.

    All live files, data and deletes, of the partitions (spec and tuple) of ``added`` are removed;
    they are looked up again at each attempt. The last writer of a partition wins, as in Spark.
    ``read`` is the filter of the rows of this table from which the new rows were computed, if any:
    changes of those rows conflict. Without files only ``schema`` is committed.
    """
    if not added and schema is None:
        return CommitResult(table)
    partitions = frozenset(map(partition_of, added))
    properties = {"replace-partitions": "true"}
    changes = FileChanges("overwrite", (*added,), branch=branch, summary=properties, schema=schema)

    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        if read is not None:
            validate(unchanged(start_id, read), Since(start_id, base, head, query))

    def plan(base: Table, head: Snapshot | None) -> FileChanges:
        return replace(changes, removed=partition_files(base, head, partitions, query))

    return commit_files(catalog, table, changes, query, validate=check, plan=plan)


def commit_rewrite(
    catalog: Catalog,
    table: Table,
    *,
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    start_id: int,
    keeps_age: bool = True,
    branch: Branch = MAIN,
    query: QueryContext | None = None,
    meanwhile: Plan | None = None,
) -> CommitResult:
    """Replace files by others with the same rows: compaction.

    ``removed`` are the data files that were rewritten with their deletes applied, and their
    deletion vectors. With ``keeps_age`` the new data has the sequence number of snapshot
    ``start_id`` (format version 1 has none): a later equality delete applies to it as to the old
    data, and does not conflict, unless the rows move from one partition spec to another.
    ``meanwhile`` adapts the files to other writers' commits at each attempt (branch and sequence
    number are set here), and raises if it cannot; without it, any deleted row of the removed files
    is a conflict.
    """
    start = table.metadata.snapshots[start_id]
    keeps_age = keeps_age and table.metadata.format_version > 1
    wanted = Validation(
        start_id,
        undeleted=data_of(removed),
        same_age=data_of(added) if keeps_age else None,
    )
    number = start.sequence_number if keeps_age else None
    changes = FileChanges("replace", (*added,), (*removed,), branch, sequence_number=number, rows=0)
    held = [each.record_count for each in data_of(removed)]
    if min(held, default=0) >= 0 and sum(f.record_count for f in changes.added_data) > sum(held):
        raise ProgrammingError("a rewrite adds more rows than it removes")
    if meanwhile is None:
        return _commit(catalog, table, changes, wanted, query)

    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        _check_lineage(table, base, head, start_id, changes)

    def plan(base: Table, head: Snapshot | None) -> FileChanges:
        return replace(meanwhile(base, head), branch=branch, sequence_number=number)

    return commit_files(catalog, table, changes, query, validate=check, plan=plan)


def _commit(
    catalog: Catalog,
    table: Table,
    changes: FileChanges,
    wanted: Validation,
    query: QueryContext | None,
) -> CommitResult:
    def check(base: Table, head: Snapshot | None, query: QueryContext) -> None:
        _check_lineage(table, base, head, wanted.start_id, changes)
        validate(wanted, Since(wanted.start_id, base, head, query))

    return commit_files(catalog, table, changes, query, validate=check)


def _check_lineage(
    found: Table, base: Table, head: Snapshot | None, start_id: int | None, changes: FileChanges
) -> None:
    """Raise CommitConflictError if rewritten rows would lose their row ids.

    The new files do not contain row ids and last-updated sequence numbers if they were written for
    format version 2, or before the first commit after an upgrade gave the rows their ids.
    """
    planned, version = found.metadata, base.metadata.format_version
    start = None if start_id is None else planned.snapshot(start_id)
    if not changes.added_data or version < 3 or start is None or start.first_row_id is not None:
        return
    if planned.format_version < 3 or (head is not None and head.first_row_id is not None):
        raise CommitConflictError(
            f"{base.name} was upgraded to format version {version}, and its rows got ids since the "
            "statement read them; nothing was changed, run the statement again"
        )


def overwrite_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> str:
    """The operation of a commit that adds data files, and removes some or adds deletes."""
    if not removed:
        return "append"
    return "overwrite" if added else "delete"


# ------------------------------------------------------------------ files deleted by a predicate


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
