"""The one loader of a scan's deletes: positions per data file, and groups of equality keys.

Both local readers take their deletes from here: ``read/`` row by row, DuckDB as relations that it
anti-joins. Each delete file is read once, on first use.
"""

from __future__ import annotations

from collections.abc import Iterable

from icesql.context import QueryContext
from icesql.read.deletes.equality_keys import EqualityGroup, equality_groups
from icesql.read.deletes.positions import PositionDeletes
from icesql.scan.tasks.task import FileScanTask, ScanContext


class DeleteRelations(PositionDeletes):
    """The deletes of one scan, shared by all its tasks; safe for several threads.

    ``tasks`` are all tasks that will be read: deletes are taken from what the planner attached.
    """

    def __init__(
        self, context: ScanContext, tasks: Iterable[FileScanTask], query: QueryContext
    ) -> None:
        tasks = tuple(tasks)
        super().__init__(context, tasks, query)
        # One group per equality-id set and scope; for engines that join them themselves. A data row
        # is deleted when its key (NULL = NULL, NaN = NaN), and in a partitioned group its file's
        # partition ordinal, is in the group with a sequence number greater than the file's.
        self.equality_groups = equality_groups(context, tasks, query)

    def groups_for(self, task: FileScanTask) -> tuple[EqualityGroup, ...]:
        """The groups that may delete rows of the task."""
        return tuple(group for group in self.equality_groups if group.applies_to(task))
