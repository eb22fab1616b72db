"""Plan a batch read of ``format("icesql")``: accept filters, and pack a scan into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from icesql.datasource.table import ReadRequest, predicate_of
from icesql.engine.spark.worker import ScanJob, pack
from icesql.errors import ProgrammingError, SnapshotNotFoundError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.scan.incremental import ancestors, snapshots_after
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.scan.tasks.task import CombinedScanTask


class BatchPlanning:
    """Plans one read of a table; the table is loaded once, so the read is consistent."""

    def __init__(self, request: ReadRequest) -> None:
        request.options.check_batch()
        self._request = request
        self._filter: Predicate = ALWAYS_TRUE

    @cached_property
    def _table(self) -> Table:
        return self._request.table()

    def push(self, filters: Sequence[Any]) -> None:
        """Prune by these filters of PySpark; Spark evaluates all of them again.

        This needs the option push-filters: Spark up to 4.3 reuses the partitions that one filter
        left for every other scan of the DataFrame, in the same query and in later ones, so
        ``df.where("x = 1").union(df.where("x = 2"))`` would lose rows.
        """
        if self._request.options.push_filters and self._request.fixed is not None:
            self._filter = predicate_of(filters, self._request.fixed.projection)

    def partitions(self) -> list[bytes]:
        """One packed job for each combined task."""
        return [pack(ScanJob(task)) for task in self._tasks()]

    def _tasks(self) -> Sequence[CombinedScanTask]:
        request, table = self._request, self._table
        if request.options.start_snapshot_id is not None:
            columns = request.columns_now(table, table.metadata.schema)
            end = self._end(request.options.end_snapshot_id)
            snapshots = snapshots_after(table, request.options.start_snapshot_id, end)
            files = [file for each in snapshots for file in request.appended(table, each)]
            return request.whole_files(table, files, columns)
        snapshot, schema = request.selected(table)
        columns = request.columns_now(table, schema)
        scan = TableScan(table, snapshot, columns.schema, columns.projection, self._filter)
        return plan(scan, request.query()).tasks

    def _end(self, snapshot_id: int | None) -> Snapshot:
        """The last snapshot of an incremental read: the requested one, or the newest."""
        table = self._table
        head = self._request.head(table)
        if head is None:
            raise SnapshotNotFoundError(
                f"snapshot {self._request.options.start_snapshot_id}",
                table=table.name,
                hint="the table has no snapshot yet",
            )
        if snapshot_id is None:
            return head
        end = table.metadata.snapshot(snapshot_id)
        if end is None:
            raise SnapshotNotFoundError(
                f"snapshot {snapshot_id} (end-snapshot-id)",
                table=table.name,
                newest=str(head.snapshot_id),
            )
        if self._request.options.branch is not None and end not in ancestors(table, head):
            raise ProgrammingError(
                f"snapshot {snapshot_id} is not in branch {self._request.options.branch}"
            )
        return end
