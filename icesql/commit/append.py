"""Append data files to a branch of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.change import CommitResult
from icesql.commit.files import FileChanges
from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshot_operation import SnapshotOperation, Validate
from icesql.commit.snapshots.branches import Branch
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import MAIN

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def commit_append(
    catalog: Catalog,
    table: Table,
    files: Sequence[DataFile],
    *,
    branch: Branch = MAIN,
    summary: Mapping[str, str] = NOTHING,
    rows: int | None = None,
    schema: SchemaChange | None = None,
    query: QueryContext | None = None,
) -> CommitResult:
    """Add data files as one snapshot of a branch; without files nothing is committed.

    A branch that does not exist is made. The files belong to the commit: they are deleted when it
    fails. Appends never conflict with other commits: they are tried again from what those left.
    ``summary`` are further keys of the snapshot's summary, ``rows`` is how many the files hold, if
    that was counted. ``schema`` are columns that come with them, also where there are no files.

    Raises CommitConflictError when all attempts lost, CommitStateUnknownError when nobody can
    know whether it was applied (the files stay then).
    """
    properties = dict(summary)
    changes = FileChanges(
        "append", tuple(files), branch=branch, summary=properties, rows=rows, schema=schema
    )
    return commit_files(catalog, table, changes, query)


def commit_files(
    catalog: Catalog,
    table: Table,
    changes: FileChanges,
    query: QueryContext | None,
    *,
    validate: Validate | None = None,
) -> CommitResult:
    """Commit changes of files that conflict with nothing but the removal of the same files.

    ``validate`` may know of more, at each attempt.
    """
    if changes.is_empty:
        return CommitResult(table)
    context = query or QueryContext()
    operation = SnapshotOperation(table, changes, context, validate=validate)
    after = commit(catalog, table, operation, context)
    return operation.result(after)
