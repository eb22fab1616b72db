"""How a scan is divided between Spark's tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icesql.scan.packing import adjust_split_size, pack_files
from icesql.scan.task import CombinedScanTask, without_metrics

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan


def parallelism(session: Any) -> int:
    """How many tasks Spark runs at once, as far as it is known."""
    from icesql.engine.spark.session import is_connect

    if is_connect(session):
        return 8
    return int(session.sparkContext.defaultParallelism)


def spark_tasks(plan: ScanPlan, slots: int) -> tuple[CombinedScanTask, ...]:
    """The plan's tasks, smaller ones where a scan would not give every worker something.

    A size that the user set stays. Source: Java ``TableScanUtil.adjustSplitSize``.
    """
    if plan.settings.split_target_size is not None:
        return plan.tasks
    packing = plan.packing
    size = sum(task.length for task in plan.files)
    target = adjust_split_size(size, slots, packing.target_size)
    if target == packing.target_size:
        return plan.tasks
    bare = (replace(task, data_file=without_metrics(task.data_file)) for task in plan.files)
    groups = pack_files(bare, replace(packing, target_size=target))
    return tuple(CombinedScanTask(group, plan.context) for group in groups)


def whole_task(plan: ScanPlan) -> CombinedScanTask:
    """All files of a plan as one task."""
    bare = (replace(task, data_file=without_metrics(task.data_file)) for task in plan.files)
    return CombinedScanTask(tuple(bare), plan.context)
