"""The scans of a query as views of a Spark session, each read the way that costs least."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import icesql.errors
from icesql.context import QueryContext
from icesql.engine.footer import FooterCache
from icesql.engine.spark_dialect import spark_sql
from icesql.engine.spark_types import spark_schema
from icesql.engine.spark_worker import ScanJob, pack
from icesql.iceberg.metadata_columns import POS
from icesql.iceberg.schema import Schema
from icesql.scan.packing import adjust_split_size, pack_files
from icesql.scan.task import CombinedScanTask

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.scan.plan import ScanPlan

TASKS: Final = "tasks"


class Scans:
    """Views ``__scan_<i>_<nonce>`` over the scans of one query; ``drop`` takes them away."""

    def __init__(
        self,
        session: Any,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        nonce: str,
        footers: FooterCache,
    ) -> None:
        self._session, self._plans, self._query = session, plans, query
        self._nonce, self._footers = nonce, footers
        self._views: list[str] = []
        self.groups: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()

    def prepare(self, tree: exp.Expr) -> str:
        """Make the views that a qualified tree needs, and the SQL over them."""
        names = {f"__scan_{i}": f"__scan_{i}_{self._nonce}" for i in range(len(self._plans))}
        sql = spark_sql(tree, names, self._query.settings.timezone)
        for index, plan in enumerate(self._plans):
            self._query.check()
            name = names[f"__scan_{index}"]
            if name in sql:
                self._view(name, self._task_frame(plan))
                self.groups = (*self.groups, *(TASKS for _ in plan.files))
        return sql

    def _view(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(name)
        self._views.append(name)

    def _task_frame(self, plan: ScanPlan) -> Any:
        context = plan.context
        if not context.projection.fields:
            context = replace(context, projection=Schema((POS,)))
        jobs = [
            ScanJob(CombinedScanTask(task.tasks, context))
            for task in spark_tasks(plan, parallelism(self._session))
        ]
        return job_frame(self._session, jobs, spark_schema(context.projection))

    def drop(self) -> None:
        """Take the views away; harmless when Spark is gone."""
        from icesql.engine.spark_errors import spark_exceptions

        views, self._views = self._views, []
        try:
            for name in views:
                self._session.catalog.dropTempView(name)
        except spark_exceptions():
            return


def job_frame(session: Any, jobs: Sequence[Any], schema: str) -> Any:
    """A DataFrame of the rows that ``jobs`` give, one Spark task for each job.

    Jobs travel as rows, so that each task gets its own and nothing of them shows in a plan.
    """
    import pyarrow as pa

    packed = pa.table({"job": pa.array([pack(job) for job in jobs], pa.binary())})
    with warnings.catch_warnings():
        # PySpark has opinions about the pandas that happens to be installed.
        warnings.simplefilter("ignore")
        return session.createDataFrame(packed).mapInArrow(_reader(), schema)


def _reader() -> Callable[[Any], Iterator[Any]]:
    """``read_batches`` for workers that do not have icesql on their path, as a checkout's have not.

    A nested function travels by value, so it can look for the package before it imports it.
    """
    folder = str(Path(icesql.errors.__file__).resolve().parent.parent)

    def read(batches: Any) -> Iterator[Any]:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark_worker import read_batches

        yield from read_batches(batches)

    return read


def parallelism(session: Any) -> int:
    """How many tasks Spark runs at once, as far as it is known."""
    from icesql.engine.spark_session import is_connect

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
    groups = pack_files(plan.files, replace(packing, target_size=target))
    return tuple(CombinedScanTask(group, plan.context) for group in groups)
