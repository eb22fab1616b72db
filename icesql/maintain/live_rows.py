"""Count the live rows of data files beneath their deletes, reading only what is necessary."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import FileContent
from icesql.read.deletes.scan_deletes import DeleteRelations
from icesql.read.task import read_file
from icesql.scan.tasks import FileScanTask, ScanContext


def live_rows(tasks: Sequence[FileScanTask], context: ScanContext, query: QueryContext) -> int:
    """The number of rows of whole files, without deleted rows.

    Uses the record counts in metadata and the positions in delete files. Reads a data file
    only if its count is unknown, or for the columns of equality deletes.
    """
    relations = DeleteRelations(context, tasks, query)
    nothing = replace(context, projection=replace(context.projection, fields=()))
    total = 0
    for task in tasks:
        query.check()
        if is_read(task):
            total += sum(batch.num_rows for batch in read_file(task, nothing, query, relations))
            continue
        gone = relations.positions(task)
        total += task.data_file.record_count - (0 if gone is None else len(gone))
    return total


def is_read(task: FileScanTask) -> bool:
    """True if only the data file shows how many of its rows are live."""
    by_values = any(each.content is FileContent.EQUALITY_DELETES for each in task.deletes)
    return by_values or task.data_file.record_count < 0
