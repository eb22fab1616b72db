"""Divide a scan into Spark's tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.scan.tasks import (
    CombinedScanTask,
    FileScanTask,
    adjust_split_size,
    merge_adjacent,
    pack_files,
    weight,
    without_metrics,
)

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

_MOST_ROUNDS: Final = 8
# Spark's default limit of executors, and its default number of tasks after an exchange.
_NO_LIMIT: Final = 2**31 - 1
_PARTITIONS: Final = 200


def parallelism(session: Any) -> int:
    """How many tasks Spark runs at once; 8 on Connect, where this is unknown."""
    from icesql.engine.spark.sessions import is_connect

    if is_connect(session):
        return 8
    return int(session.sparkContext.defaultParallelism)


def most_at_once(session: Any) -> int:
    """How many tasks Spark may run at once if it adds executors on demand.

    Without a limit, the number of tasks that it plans for an exchange.
    """

    def setting(name: str) -> str:
        return str(session.conf.get(name, None) or "")

    slots = parallelism(session)
    if setting("spark.dynamicAllocation.enabled").lower() != "true":
        return slots
    executors = setting("spark.dynamicAllocation.maxExecutors")
    if not executors.isdigit() or int(executors) == _NO_LIMIT:
        return max(slots, int(setting("spark.sql.shuffle.partitions") or _PARTITIONS))
    cores = int(setting("spark.executor.cores") or 1) // int(setting("spark.task.cpus") or 1)
    return max(slots, int(executors) * max(1, cores))


class SparkTasks:
    """The tasks of the scans of one query, by the index of the scan, packed once.

    ``slots`` is the number of tasks that run at once.
    """

    def __init__(self, plans: Sequence[ScanPlan], slots: int) -> None:
        self._plans, self.slots = plans, slots
        self._packed: dict[int, tuple[CombinedScanTask, ...]] = {}

    def __getitem__(self, scan: int) -> tuple[CombinedScanTask, ...]:
        """The tasks of a scan, with smaller ones if otherwise a worker would have none."""
        if scan not in self._packed:
            self._packed[scan] = _packed(self._plans[scan], self.slots)
        return self._packed[scan]

    def merged(self, scan: int, count: int | None) -> tuple[CombinedScanTask, ...]:
        """The tasks of a scan merged into ``count`` tasks; one task even for no files."""
        if count == 1:
            return (self.whole(scan),)
        tasks = self[scan]
        if count is None or count >= len(tasks):
            return tasks
        groups: list[list[FileScanTask]] = [[] for _ in range(count)]
        for at, task in enumerate(tasks):
            groups[at * count // len(tasks)].extend(task.tasks)
        merged = (tuple(merge_adjacent(sorted(group, key=_place))) for group in groups)
        return tuple(CombinedScanTask(group, tasks[0].context) for group in merged)

    def whole(self, scan: int) -> CombinedScanTask:
        """All files of a scan as one task."""
        plan = self._plans[scan]
        bare = (replace(task, data_file=without_metrics(task.data_file)) for task in plan.files)
        return CombinedScanTask(tuple(bare), plan.context)


def _place(task: FileScanTask) -> tuple[str, int]:
    return task.data_file.path, task.start


def _packed(plan: ScanPlan, slots: int) -> tuple[CombinedScanTask, ...]:
    """Tasks of about equal weight, whose number fills whole rounds of ``slots``.

    Keeps a split size that the user set, and keeps the packing if there are so many tasks that an
    uneven last round does not matter.
    """
    packing = plan.packing
    total = sum(weight(task, packing.open_file_cost) for task in plan.files)
    rounds = -(-total // (packing.target_size * slots))
    if plan.settings.split_target_size is not None or not 0 < rounds <= _MOST_ROUNDS:
        return plan.tasks
    wanted = rounds * slots
    if rounds == 1:
        wanted = min(slots, -(-total // adjust_split_size(total, slots, packing.target_size)))
    bare = [replace(task, data_file=without_metrics(task.data_file)) for task in plan.files]
    even = -(-total // wanted)
    groups: list[tuple[FileScanTask, ...]] = []
    for eighths in range(9):
        # Splits differ in size: the bins must be somewhat larger than the mean to hold all.
        target = even + even * eighths // 8
        groups = list(pack_files(bare, replace(packing, target_size=target)))
        if len(groups) <= wanted:
            break
    return tuple(CombinedScanTask(group, plan.context) for group in groups)
