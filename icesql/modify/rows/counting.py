"""How many rows files have that are not deleted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import FileContent
from icesql.read.deletes.delete_relations import DeleteRelations
from icesql.read.task import read_file
from icesql.scan.tasks.task import FileScanTask, ScanContext


def live_rows(tasks: Sequence[FileScanTask], context: ScanContext, query: QueryContext) -> int:
    """The rows of whole files without those that are deleted.

    Metadata says how many a file has, and the positions of deletes which of them are gone. A file
    is read only where that is unknown, or for the columns of equality deletes.
    """
    relations = DeleteRelations(context, tasks, query)
    nothing = replace(context, projection=replace(context.projection, fields=()))
    total = 0
    for task in tasks:
        query.check()
        by_values = any(each.content is FileContent.EQUALITY_DELETES for each in task.deletes)
        if by_values or task.data_file.record_count < 0:
            total += sum(batch.num_rows for batch in read_file(task, nothing, query, relations))
            continue
        gone = relations.position_array(task)
        total += task.data_file.record_count - (0 if gone is None else len(gone))
    return total
