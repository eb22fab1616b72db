"""DELETE and TRUNCATE: the rows are found by a query, and their files replaced or given deletes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from icesql.commit.delete_where import commit_delete_where
from icesql.commit.snapshots.branches import Branch, start_of
from icesql.errors import shifted
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.modify.engine_name import SUMMARY
from icesql.modify.modified import Modified, Work
from icesql.modify.rows.changes import RowBatch
from icesql.modify.rows.commit import change_rows
from icesql.modify.rows.reading import target_of
from icesql.modify.rows.target import row_target
from icesql.modify.targets import find_target
from icesql.sql.writes.statements import Delete
from icesql.storage.new_file import check_writable

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.engine.protocol import Result


def delete(statement: Delete, work: Work) -> Modified:
    """Remove the rows for which the condition is true, or all of them.

    Raises CommitConflictError where others changed these files, or added rows that may match,
    since the query read the table; then nothing is changed.
    """
    catalog, table, branch = find_target(statement.table, work)
    if statement.rows is None:
        return _delete_all(catalog, table.identifier, branch, work)
    with shifted(statement.shift):
        index = target_of(statement.rows, statement.table, statement.shift).index
        result, scans = work.ask_scanned(statement.rows)
        try:
            target = row_target(
                catalog, scans[index], command="delete", branch=branch, alone=len(scans) == 1
            )
            done = change_rows(target, _batches(result), work, once=False)
        finally:
            result.close()
    return done.modified(done.gone)


def _batches(result: Result) -> Iterator[RowBatch]:
    for batch in result.arrow_reader():
        yield RowBatch(batch.column(0), batch.column(1))


def _delete_all(
    catalog: Catalog, identifier: tuple[str, ...], branch: Branch, work: Work
) -> Modified:
    table = catalog.load(identifier)
    check_writable(table.storage)
    done = commit_delete_where(
        catalog,
        table,
        ALWAYS_TRUE,
        start_id=start_of(table.metadata, branch),
        branch=branch,
        summary=SUMMARY,
        query=work.query,
    )
    return Modified(int(done.summary.get("deleted-records", 0)), snapshot_id=done.snapshot_id)
