"""DELETE and TRUNCATE: a query finds the rows; their files are rewritten or get delete files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from msgspec.structs import replace

from icesql.commit.delete_where import commit_delete_where
from icesql.commit.snapshots.branches import Branch, start_of
from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.maintain.live_rows import live_rows
from icesql.modify.modified import Modified
from icesql.modify.rows.changes import NewRows, RowBatch
from icesql.modify.rows.commit import commit_files
from icesql.modify.rows.target import row_target
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target, target_of
from icesql.modify.tasks.run import change_by_query
from icesql.scan.planner import plan_snapshot, whole_files
from icesql.sql.trees import exp
from icesql.sql.writes.statements import Delete
from icesql.storage.new_file import check_writable
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.modify.rows.new_files import FilesOf
    from icesql.query.views.temporary import TemporaryTable
    from icesql.sql.statement import Query


def delete(statement: Delete, services: StatementServices) -> Modified:
    """Remove the rows for which the condition is true, or all rows.

    Raises CommitConflictError if other writers changed these files, or added rows that may match,
    since the query read the table; then nothing is changed.
    """
    catalog, table, branch = find_target(statement.table, services)
    if statement.rows is None:
        return _delete_all(catalog, table.identifier, branch, services)
    with statement.rows.sources.placing():
        index = target_of(statement.rows, statement.table, statement.rows.sources).index
        if len(statement.rows.references) == 1 and not statement.rows.only_text:
            whole = _delete_files(statement.rows, catalog, branch, services)
            if whole is not None:
                return whole
        place = catalog, table, branch
        done = change_by_query(statement.rows, index, DeletedRows(), place, "delete", services)
    return done.modified(done.written.gone)


class DeletedRows(Frozen):
    """Deletes the rows whose files and positions the query returns."""

    new: NewRows | None = None

    once: ClassVar[bool] = False

    def begin(
        self,
        schema: pa.Schema,
        tables: Sequence[TemporaryTable],
        files_of: FilesOf,
        query: QueryContext,
    ) -> DeletedRows:
        """Start converting batches of this schema."""
        return self

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        """The rows to delete."""
        for batch in given:
            yield RowBatch(batch.column(0), batch.column(1))

    def matches(self) -> bytes:
        """Empty: a DELETE has no source."""
        return b""


def _delete_files(
    rows: Query, catalog: Catalog, branch: Branch, services: StatementServices
) -> Modified | None:
    """Remove whole files without reading them; None if some may have rows to keep."""
    (scan,) = services.scans_of(_counting(rows))
    if not scan.counts or services.query.settings.verify == "full":
        return None
    found = whole_files(scan, services.query)
    if found is None:
        return None
    target = row_target(catalog, scan, command="delete", branch=branch, alone=True)
    check_writable(scan.table.storage)
    tasks = tuple(replace(each, residual=ALWAYS_TRUE) for each in found.files)
    count = live_rows(tasks, found.context, services.query)
    vectors = (each for task in tasks for each in task.deletes if each.is_deletion_vector)
    gone = Written(removed=(*(task.data_file for task in tasks), *vectors), gone=count)
    return commit_files(target, gone, services, whole=True).modified(count)


def _delete_all(
    catalog: Catalog, identifier: tuple[str, ...], branch: Branch, services: StatementServices
) -> Modified:
    table = catalog.load(identifier)
    check_writable(table.storage)
    start_id = start_of(table.metadata, branch)
    snapshot = None if start_id is None else table.metadata.snapshots[start_id]
    count = rows_at(table, snapshot, services.query)
    done = commit_delete_where(
        catalog,
        table,
        ALWAYS_TRUE,
        start_id=start_id,
        branch=branch,
        rows=-count,
        query=services.query,
    )
    return Modified(count, snapshot_id=done.snapshot_id)


def rows_at(table: Table, snapshot: Snapshot | None, query: QueryContext) -> int:
    """The number of live rows of a table at a snapshot."""
    planned = plan_snapshot(table, snapshot, query)
    return live_rows(planned.files, planned.context, query)


def _counting(query: Query) -> Query:
    """The query with COUNT(*) in place of its select list."""
    tree = query.tree.copy()
    assert isinstance(tree, exp.Select)
    if query.translated:
        # Functions of other dialects are plain names until binding translates them.
        counted: exp.Expr = exp.Anonymous(this="count", expressions=[exp.Star()])
    else:
        counted = exp.Count(this=exp.Star())
    tree.set("expressions", [counted])
    return replace(query, tree=tree, user_text=None, spark=None)
