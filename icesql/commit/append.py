"""Append data files to a branch of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.change import CommitResult
from icesql.commit.files import ChangeOptions, FileChanges
from icesql.commit.snapshot_operation import Plan, SnapshotOperation, Validate
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile


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
