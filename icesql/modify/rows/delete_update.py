"""DELETE, TRUNCATE and UPDATE: a query finds the rows and their new values.

Their files are rewritten or get delete files, in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from msgspec.structs import replace

from icesql.commit.branches import Branch, start_of
from icesql.commit.rows import commit_delete_where
from icesql.context import QueryContext
from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.maintain.live_rows import live_rows
from icesql.modify.rows.assignments import Assigned, StoredVariants, assigned, has_variants
from icesql.modify.rows.commit import commit_files, row_target
from icesql.modify.rows.new_files import NewRows, RowBatch, empty_batch
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import find_target, target_of
from icesql.modify.tasks.run import change_by_query
from icesql.scan.planner import plan_snapshot, whole_files
from icesql.sql.trees import exp
from icesql.sql.writes.statements import Delete, Update
from icesql.storage.new_files import check_writable
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.context import QueryContext
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


# ------------------------------------------------------------------ UPDATE


_PLACE = ("_file", "_pos")
_ROW_ID = "_row_id"


def update(statement: Update, services: StatementServices) -> Modified:
    """Assign new values to the rows for which the condition is true, all at once.

    Each row keeps its row id in version 3 and moves to the partition of its new values. Raises
    ColumnNotFoundError and ProgrammingError for bad assignments, ProgrammingError if several rows
    of FROM match one row, DataError, TypeMismatchError and IntegrityError for values that do not
    fit, CommitConflictError; then nothing is changed.
    """
    catalog, table, branch = find_target(statement.table, services)
    made = assigned(statement.assigned, table.metadata.schema, _names(statement))
    index = target_of(statement.rows, statement.table).index
    lineage = table.metadata.format_version > 2
    rows = UpdatedRows(made, len(statement.assigned), lineage, statement.table.offset)
    read = _with_columns(statement.rows, index, rows.columns)
    place = catalog, table, branch
    done = change_by_query(read, index, rows, place, "update", services)
    return done.modified(done.written.gone)


def _names(statement: Update) -> list[tuple[str, ...]]:
    """The qualifiers that may precede a column of the table."""
    if statement.alias is not None:
        return [(statement.alias,)]
    parts = statement.table.parts
    return [parts[start:] for start in range(len(parts))]


class UpdatedRows(Frozen):
    """Updates the rows of the query: ``values`` expressions were assigned to columns ``made``,
    by a statement with the table's name at ``offset``."""

    made: Assigned
    values: int
    lineage: bool
    offset: int | None

    once: ClassVar[bool] = True

    @property
    def places(self) -> list[str]:
        """The columns that locate a row."""
        return [*_PLACE, _ROW_ID] if self.lineage else [*_PLACE]

    @property
    def columns(self) -> list[str]:
        """The columns that precede the values."""
        return [*self.places, *(each.name for each in self.made.old)]

    def begin(
        self,
        schema: pa.Schema,
        tables: Sequence[TemporaryTable],
        files_of: FilesOf,
        query: QueryContext,
    ) -> _Rows:
        """Start converting batches of this schema."""
        if len(schema) != len(self.columns) + self.values:
            raise UnsupportedSqlError("several values for one column", offset=self.offset)
        old = enumerate(self.made.old, len(self.places))
        variants = {place: each for place, each in old if has_variants(each)}
        opened = _Rows(self, StoredVariants(files_of, variants, query))
        sources, empty = self.made.sources, opened.changed(empty_batch(schema))
        row_id = len(sources) if self.lineage else None
        return replace(opened, new=NewRows(sources, row_id, empty.schema))


class _Rows(Frozen):
    """Turns batches of the query into deleted and new rows."""

    rows: UpdatedRows
    stored: StoredVariants
    new: NewRows | None = None

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        for batch in given:
            if batch.num_rows:
                yield RowBatch(batch.column(0), batch.column(1), self.changed(batch))

    def matches(self) -> bytes:
        return b""

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new rows, followed by ``_row_id`` if rows have lineage."""
        first = len(self.rows.places)
        made = self.rows.made.rows(self.stored.put_into(batch, 0, 1), first)
        return made.append_column(_ROW_ID, batch.column(first - 1)) if self.rows.lineage else made


def _with_columns(query: Query, index: int, columns: Sequence[str]) -> Query:
    """Select columns of the query's table number ``index`` before the query's own columns."""
    tree = query.tree.copy()
    assert isinstance(tree, exp.Select)
    table = next(each for each in tree.find_all(exp.Table) if each.name == f"__scan_{index}")
    own = [exp.column(name, table=table.alias, quoted=True) for name in columns]
    tree.set("expressions", [*own, *tree.expressions])
    return replace(query, tree=tree)
