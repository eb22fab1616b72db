"""UPDATE: the rows and their new values are found by a query, and written as one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from icesql.errors import UnsupportedSqlError
from icesql.modify.modified import Modified, Work
from icesql.modify.rows.assignments import Assigned, assigned
from icesql.modify.rows.changes import NewRows, RowBatch
from icesql.modify.rows.commit import change_rows
from icesql.modify.rows.reading import target_of, with_columns
from icesql.modify.rows.stored_variants import StoredVariants, has_variants
from icesql.modify.rows.target import check_same_columns, row_target
from icesql.modify.targets import find_target
from icesql.sql.writes.statements import Update

if TYPE_CHECKING:
    from icesql.catalog.table import Table

_PLACE = ("_file", "_pos")
_ROW_ID = "_row_id"


def update(statement: Update, work: Work) -> Modified:
    """Give the rows for which the condition is true new values, all at once.

    Each row keeps its row id in version 3 and goes to the partition of its new values. Raises
    ColumnNotFoundError and ProgrammingError for what is assigned, ProgrammingError where FROM has
    several rows for one, DataError, TypeMismatchError and IntegrityError for values that do not
    fit, CommitConflictError; then nothing is changed.
    """
    catalog, table, branch = find_target(statement.table, work)
    made = assigned(statement.assigned, table.metadata.schema, _names(statement))
    index = target_of(statement.rows, statement.table).index
    read = with_columns(statement.rows, index, _columns(made, table))
    result, scans = work.ask_scanned(read)
    try:
        scan = scans[index]
        check_same_columns(scan.table, table)
        target = row_target(catalog, scan, command="update", branch=branch, alone=len(scans) == 1)
        if len(result.columns) != len(_columns(made, table)) + len(statement.assigned):
            raise UnsupportedSqlError(
                "several values for one column", offset=statement.table.offset
            )
        lineage = table.metadata.format_version > 2
        first = len(_PLACE) + lineage
        variants = {
            first + place: each for place, each in enumerate(made.old) if has_variants(each)
        }
        stored = StoredVariants(scan.table, scan.snapshot, variants, work.query)
        new, reader = _Rows(made, lineage, stored), result.arrow_reader()
        described = new.described(reader.schema)
        done = change_rows(target, new.batches(reader), work, new=described)
    finally:
        result.close()
    return done.modified(done.gone)


def _names(statement: Update) -> list[tuple[str, ...]]:
    """What a column of the table may have before its name."""
    if statement.alias is not None:
        return [(statement.alias,)]
    parts = statement.table.parts
    return [parts[start:] for start in range(len(parts))]


def _columns(made: Assigned, table: Table) -> list[str]:
    lineage = (_ROW_ID,) if table.metadata.format_version > 2 else ()
    return [*_PLACE, *lineage, *(each.name for each in made.old)]


class _Rows:
    """Batches of the query as the rows that go and come."""

    def __init__(self, made: Assigned, lineage: bool, stored: StoredVariants) -> None:
        self._made, self._lineage, self._stored = made, lineage, stored
        self._first = len(_PLACE) + lineage

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        for batch in given:
            if batch.num_rows:
                yield RowBatch(batch.column(0), batch.column(1), self._rows(batch))

    def described(self, schema: pa.Schema) -> NewRows:
        """What the columns of the rows are, for batches of this schema."""
        sources = self._made.sources
        empty = pa.RecordBatch.from_arrays(
            [pa.nulls(0, each.type) for each in schema], schema=schema
        )
        return NewRows(
            sources, len(sources) if self._lineage else None, schema=self._rows(empty).schema
        )

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new rows, behind their columns ``_row_id``."""
        columns = self._stored.put_into(batch, 0, 1).columns
        end = self._first + len(self._made.old)
        rows = self._made.rows(columns[self._first : end], columns[end:])
        if not self._lineage:
            return rows
        names = [*rows.schema.names, _ROW_ID]
        return pa.RecordBatch.from_arrays([*rows.columns, columns[len(_PLACE)]], names=names)
