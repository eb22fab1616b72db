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
from icesql.engine.relation import empty_relation
from icesql.engine.result_schema import declare
from icesql.engine.spark.dialect import check_functions, spark_sql
from icesql.engine.spark.fragment import Fragment, cut_fragments
from icesql.engine.spark.fragment_job import FragmentJob
from icesql.engine.spark.reader import ReaderFrames, few_groups, is_spark_readable
from icesql.engine.spark.types import quoted, spark_schema
from icesql.engine.spark.worker import ScanJob, pack
from icesql.iceberg.metadata_columns import POS
from icesql.iceberg.schema import Schema
from icesql.scan.packing import adjust_split_size, pack_files
from icesql.scan.task import CombinedScanTask

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.scan.plan import ScanPlan

# How a scan is read: as rows of its tasks, as partial results of its tasks, or by Spark's reader.
TASKS: Final = "tasks"
FRAGMENTS: Final = "partial results of tasks"
SPARK_READER: Final = "spark's parquet reader"

_SPARK_TYPES: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "varchar": "STRING",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP_LTZ",
}


class Scans:
    """Views ``__scan_<i>_<nonce>`` over the scans of one query; ``drop`` takes them away.

    ``ways`` are those that may be chosen besides TASKS, which reads everything.
    """

    ways: frozenset[str] = frozenset({FRAGMENTS, SPARK_READER})

    def __init__(
        self,
        session: Any,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        nonce: str,
        footers: FooterCache,
        frames: ReaderFrames,
    ) -> None:
        self._session, self._plans, self._query = session, plans, query
        self._nonce, self._footers, self._frames = nonce, footers, frames
        self._views: list[str] = []
        self.groups: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()

    def prepare(self, tree: exp.Expr, cursor: Any) -> str:
        """Make the views that a qualified tree needs, and the SQL over them.

        ``cursor`` is DuckDB's, for footers and the types of partial results.
        """
        check_functions(tree)
        fragments: tuple[Fragment, ...] = ()
        if FRAGMENTS in self.ways:
            cut, found = cut_fragments(tree, self._is_worthwhile)
            shapes = [self._shape(fragment, cursor) for fragment in found]
            if found and all(shape is not None for shape in shapes):
                tree, fragments = cut, found
        names = {f"__scan_{i}": f"__scan_{i}_{self._nonce}" for i in range(len(self._plans))}
        names |= {each.name: f"{each.name}_{self._nonce}" for each in fragments}
        sql = spark_sql(tree, names, self._query.settings.timezone)
        used: list[str] = []
        for number, fragment in enumerate(fragments):
            shape = shapes[number]
            assert shape is not None
            self._view(names[fragment.name], self._fragment_frame(fragment, shape))
            used += [FRAGMENTS for _ in self._plans[fragment.scan].files]
        for index, plan in enumerate(self._plans):
            self._query.check()
            name = names[f"__scan_{index}"]
            if name not in sql:
                continue
            if SPARK_READER in self.ways and is_spark_readable(
                plan, cursor, self._footers, self._query
            ):
                self._view(name, self._frames.frame(self._session, plan))
                used += [SPARK_READER for _ in plan.files]
            else:
                self._view(name, self._task_frame(plan))
                used += [TASKS for _ in plan.files]
        self.groups = tuple(used)
        return sql

    def _is_worthwhile(self, scan: int, keys: list[exp.Expr]) -> bool:
        return few_groups(self._plans[scan], keys)

    def _shape(self, fragment: Fragment, cursor: Any) -> list[tuple[str, str]] | None:
        """Names and Spark types of a fragment's columns; None when one has no equal there."""
        plan = self._plans[fragment.scan]
        empty = empty_relation(plan).sql
        sql = fragment.sql(self._nonce).replace(f'"{self._nonce}"', f"({empty})")
        relation = cursor.sql(sql)
        types = [_SPARK_TYPES.get(declare(each).kind) for each in relation.types]
        types = [
            f"DECIMAL({declare(each).precision},{declare(each).scale})"
            if declare(each).kind == "decimal"
            else name
            for name, each in zip(types, relation.types, strict=True)
        ]
        if any(name is None for name in types):
            return None
        return [(name, str(kind)) for name, kind in zip(relation.columns, types, strict=True)]

    def _fragment_frame(self, fragment: Fragment, shape: list[tuple[str, str]]) -> Any:
        plan = self._plans[fragment.scan]
        names, types = zip(*shape, strict=True)
        table = f"__scan_{self._nonce}"
        sql = fragment.sql(table)
        timezone = self._query.settings.timezone
        jobs = [
            FragmentJob(task, sql, table, timezone, names, types)
            for task in spark_tasks(plan, parallelism(self._session))
        ]
        ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in shape)
        return job_frame(self._session, jobs, ddl)

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
        from icesql.engine.spark.errors import spark_exceptions

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
        from icesql.engine.spark.worker import read_batches

        yield from read_batches(batches)

    return read


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
    groups = pack_files(plan.files, replace(packing, target_size=target))
    return tuple(CombinedScanTask(group, plan.context) for group in groups)
