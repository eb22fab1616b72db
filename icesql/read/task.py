"""Read scan tasks: live rows of a task as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icesql.context import QueryContext
from icesql.read.delete_relations import DeleteRelations
from icesql.scan.task import CombinedScanTask, FileScanTask, ScanContext


def read_task(
    task: CombinedScanTask, query: QueryContext | None = None
) -> Iterator[pa.RecordBatch]:
    """Live rows of ``task``: at most 65,536 rows a batch, rows of each file in file order.

    Columns follow the projection of the task's context in ``arrow_schema``'s types.
    """
    query = query or QueryContext()
    relations = DeleteRelations(task.context, task.tasks, query)
    for file_task in task.tasks:
        yield from read_file(file_task, task.context, query, relations)


def read_file(
    task: FileScanTask,
    context: ScanContext,
    query: QueryContext,
    relations: DeleteRelations | None = None,
) -> Iterator[pa.RecordBatch]:
    """Live rows of one file task, in file order; empty batches are left out.

    ``relations`` shares loaded deletes between the files of a scan; None loads those of this task.
    """
    raise NotImplementedError
