"""INSERT statements that replace rows: OVERWRITE of partitions, REPLACE WHERE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icesql.commit.change import CommitResult
from icesql.commit.delete_where import commit_delete_where, matched_files
from icesql.commit.rows import commit_replace_partitions
from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch, start_of
from icesql.errors import DataError, UnsupportedSqlError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.modify.insert import column_sources
from icesql.modify.modified import Modified
from icesql.modify.partition_clause import FixedValue
from icesql.modify.rows.changes import NewRows, RowBatch
from icesql.modify.rows.commit import change_rows
from icesql.modify.rows.target import row_target
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target, read_of
from icesql.sql.writes.statements import Insert
from icesql.storage.uncommitted import Uncommitted

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.engine.result_reader import Result
    from icesql.scan.table_scan import TableScan

Target = tuple["Catalog", "Table", Branch]


def overwrite(
    statement: Insert,
    target: Target,
    values: Sequence[FixedValue],
    files: Sequence[DataFile],
    scans: Sequence[TableScan],
    services: StatementServices,
    schema: SchemaChange | None,
) -> CommitResult:
    """Commit the files of new rows in place of the rows that the statement replaces.

    If the new rows were computed from the table's own, by ``scans``, the rows read must not have
    changed since: additions would be lost, and deleted rows would reappear.
    Raises UnsupportedSqlError for a file of an older partition spec that also holds rows to keep.
    """
    catalog, table, branch = target
    metadata = table.metadata
    start_id = start_of(metadata, branch)
    head = None if start_id is None else metadata.snapshot(start_id)
    read = read_of(scans, table, start_id)
    with Uncommitted(table.storage) as new:
        new.take(each.path for each in files)
        dynamic = _is_dynamic(statement, metadata, services, bool(files))
        wanted = reduce(lambda all, each: all & _is(each), values, ALWAYS_TRUE)
        if not dynamic and values:
            partly = matched_files(table, head, wanted, services.query).partly
            if partly:
                raise UnsupportedSqlError(
                    f"INSERT OVERWRITE of a partition where {partly[0]}, written by an older "
                    "partitioning, may hold rows of others, too",
                    hint="INSERT INTO t REPLACE WHERE does it row by row",
                    offset=statement.table.offset,
                )
        new.hand_over()
    commit: Callable[..., CommitResult] = commit_replace_partitions
    if not dynamic:
        commit = partial(commit_delete_where, predicate=wanted)
    return commit(
        catalog,
        table,
        added=files,
        start_id=start_id,
        read=read,
        branch=branch,
        schema=schema,
        query=services.query,
    )


def _is_dynamic(
    statement: Insert, metadata: TableMetadata, services: StatementServices, has_rows: bool
) -> bool:
    """As in Spark: static if PARTITION gives all values, or for a table without partitions.

    A table without partitions counts as one partition, which stays unchanged if there are no new
    rows.
    """
    if services.query.settings.partition_overwrite_mode != "dynamic":
        return False
    live = [each for each in metadata.spec.fields if each.transform.lower() != "void"]
    fixed = [each for each in statement.partition if each.value is not None]
    if not live:
        return not has_rows
    return len(fixed) < len(live)


def _is(given: FixedValue) -> Predicate:
    term = Term(given.field.field_id, given.field.name)
    if given.value is None:
        return Leaf(Operation.IS_NULL, term)
    if given.value != given.value:
        return Leaf(Operation.IS_NAN, term)
    return Leaf(Operation.EQ, term, given.value)


# ------------------------------------------------------------------ REPLACE WHERE


def replace_where(statement: Insert, services: StatementServices) -> Modified:
    """Remove the rows that satisfy the condition and add those of the query, in one commit.

    Raises DataError for a new row that does not satisfy the condition; then nothing is changed.
    """
    replaced = statement.replaced
    assert replaced is not None
    catalog, _, branch = find_target(statement.table, services)
    with replaced.sources.placing():
        gone, scans = services.run(replaced)
    with closing(gone):
        with statement.query.sources.placing():
            coming, sources = services.run(statement.query)
        with closing(coming):
            target = row_target(catalog, scans[0], command="delete", branch=branch, alone=False)
            if len(scans) == 1 and read_of(sources, target.table, target.start_id) is None:
                target = replace(target, row_filter=scans[0].row_filter)
            reader = coming.arrow_reader()
            names = [each.name for each in coming.columns[:-1]]
            places = column_sources(statement, target.metadata.schema, names)
            new = NewRows(places, schema=reader.schema.remove(len(names)))
            done = change_rows(target, _both(gone, reader), services, new=new, once=False)
    return done.modified(done.written.rows)


def _both(gone: Result, reader: pa.RecordBatchReader) -> Iterator[RowBatch]:
    for batch in gone.arrow_reader():
        yield RowBatch(batch.column(0), batch.column(1))
    seen = 0
    for batch in reader:
        last = batch.num_columns - 1
        fits = pc.fill_null(batch.column(last), False)
        if fits.false_count:
            row = seen + fits.index(False).as_py() + 1
            raise DataError(
                f"row {row} does not satisfy the condition of REPLACE WHERE: it would come again "
                "each time; put the same condition into the query, or widen it"
            )
        seen += batch.num_rows
        yield RowBatch(rows=batch.remove_column(last))
