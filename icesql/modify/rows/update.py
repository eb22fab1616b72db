"""UPDATE: a query finds the rows and their new values, which are written as one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from msgspec.structs import replace

from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.modify.modified import Modified
from icesql.modify.rows.assignments import Assigned, assigned
from icesql.modify.rows.changes import NewRows, RowBatch, empty_batch
from icesql.modify.rows.stored_variants import StoredVariants, has_variants
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target, target_of
from icesql.modify.tasks.run import change_by_query
from icesql.sql.trees import exp
from icesql.sql.writes.statements import Update

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf
    from icesql.query.views.temporary import TemporaryTable
    from icesql.sql.statement import Query

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
