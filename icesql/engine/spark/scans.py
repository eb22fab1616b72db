"""The scans of a query as views of a Spark session, each read in the cheapest way."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.config import parse_bytes
from icesql.context import QueryContext
from icesql.engine.duckdb.sql.adapted import adapter_of
from icesql.engine.duckdb.sql.composed import renamed_sql
from icesql.engine.spark.fragments.aggregates import Rest, rest_of
from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.cut import cut_fragments, filtered
from icesql.engine.spark.fragments.fragment import Fragment
from icesql.engine.spark.fragments.job import FragmentJob
from icesql.engine.spark.own_text import check_plan, declared_columns, placed
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.reader import ReaderFrames
from icesql.engine.spark.releases import frame_of_rows
from icesql.engine.spark.sessions import drop_views, frame_of_scan, in_tasks
from icesql.engine.spark.sql.dialect import check_functions, spark_sql
from icesql.engine.spark.sql.grand_total import row_questions
from icesql.engine.spark.sql.kinds import refuse
from icesql.engine.spark.start_up import (
    BROADCAST_LIMIT_OF_RUN,
    LEAF_TASKS,
)
from icesql.engine.spark.task_memory import task_memory
from icesql.engine.spark.tasks import SparkTasks, most_at_once, parallelism
from icesql.engine.spark.types import carrier, ddl_of, spark_schema
from icesql.engine.spark.worker import ScanJob, by_name, pack
from icesql.errors import UnsupportedSqlError
from icesql.iceberg.schema import POS, Schema
from icesql.scan.tasks import CombinedScanTask

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.engine.result_schema import ResultColumn
    from icesql.query.spark_text import BoundSparkText
    from icesql.scan.metadata_tables.rows import MetadataRows
    from icesql.scan.plan import ScanPlan

# How a scan is read: as rows of its tasks, as partial results of its tasks, by a single task that
# runs the whole query, or by Spark's reader.
TASKS: Final = "tasks"
FRAGMENTS: Final = "partial results of tasks"
WHOLE: Final = "the query in one task"
SPARK_READER: Final = "spark's parquet reader"


class Scans:
    """Views ``__scan_<i>_<nonce>`` over the scans of one query; ``drop`` removes them.

    The query's errors follow ``mark``, a secret; the nonce is part of names that Spark's messages
    show. Without a mark the DataFrame is the result, and nothing decodes its errors.
    ``ways`` are allowed in addition to TASKS, which can read everything. ``cursor`` is of DuckDB,
    for footers and types.
    """

    ways: frozenset[str] = frozenset({FRAGMENTS, WHOLE, SPARK_READER})

    def __init__(
        self,
        session: Any,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        jobs: SparkJobs,
        mark: str,
        frames: ReaderFrames,
        cursor: Any,
    ) -> None:
        self._session, self._plans, self._query, self._cursor = session, plans, query, cursor
        self._tasks = SparkTasks(plans, parallelism(session))
        self._nonce, self._mark, self._for_frame = secrets.token_hex(8), mark, not mark
        self._jobs, self._frames = jobs, frames
        if any(plan.changes is not None for plan in plans):
            raise UnsupportedSqlError("CHANGES on Spark", hint="SET engine = 'local'")
        self._views: list[str] = []
        self.groups: tuple[str, ...] = ()
        self.rest: Rest | None = None
        self._row_questions: tuple[str, ...] = ()

    def prepare(self, tree: exp.Expr, columns: Sequence[ResultColumn]) -> Any:
        """The DataFrame of a qualified tree with the result ``columns``.

        If it sets ``rest``, the DataFrame has the partial results of the tasks, and ``rest``
        computes the result from them.
        """
        check_functions(tree)
        slots, memory = most_at_once(self._session), task_memory(self._session).limit()
        choice = FragmentChoice(self._plans, self._tasks, self._cursor, slots, memory)
        fragments: tuple[Fragment, ...] = ()
        if FRAGMENTS in self.ways:
            # A DataFrame that a user continues to transform should have several tasks.
            whole = WHOLE in self.ways and not self._for_frame
            tree, fragments = cut_fragments(tree, choice, whole=whole)
        if not self._for_frame:
            self.rest = rest_of(tree, fragments, columns, self._cursor)
        if self.rest is not None:
            self._use(fragments[0])
            return self._fragment_frame(fragments[0])
        names = {f"__scan_{i}": f"__scan_{i}_{self._nonce}" for i in range(len(self._plans))}
        names |= {each.name: f"{each.name}_{self._nonce}" for each in fragments}
        zone, mark = self._query.settings.timezone, self._mark
        questions = row_questions(tree)  # only for Spark's part: DuckDB returns the row
        sql = spark_sql(tree, names, zone, mark)
        self._row_questions = tuple(spark_sql(each, names, zone, mark) for each in questions)
        if self._for_frame:
            if questions:
                raise refuse("ROLLUP, CUBE and GROUPING SETS with a grand total in a DataFrame")
            self._plan_lazily()
        for each in fragments:
            small = each.is_one_row or (not each.whole and self._is_small(self._plans[each.scan]))
            self._view(names[each.name], self._fragment_frame(each), small=small)
            self._use(each)

        def part_of(index: int) -> Fragment | None:
            if FRAGMENTS not in self.ways:
                return None
            columns = [each.name for each in self._plans[index].scan.projection.fields]
            return filtered(tree, index, columns, f"__filtered_{index}", choice)

        for index in range(len(self._plans)):
            name = names[f"__scan_{index}"]
            if any(name in text for text in (sql, *self._row_questions)):
                self._view_scan(index, name, part_of)
        return self._session.sql(sql).toDF(*(f"c{i}" for i in range(len(columns))))

    def prepare_text(self, text: BoundSparkText) -> tuple[Any, tuple[ResultColumn, ...]]:
        """The DataFrame of a text that Spark runs unchanged, and its columns in Spark's types.

        Raises UnsupportedSqlError for a text that reads more than its scans.
        """
        names = [f"__scan_{i}_{self._nonce}" for i in range(len(self._plans))]
        # This is also the number of tasks of range().
        self._session.conf.set(LEAF_TASKS, str(self._most()))
        if self._for_frame:
            self._plan_lazily()
        for index, name in enumerate(names):
            self._view_scan(index, name, lambda _: None)
        sql, original = text.final(names)
        with placed(sql, original):
            frame = self._session.sql(sql)
            check_plan(frame, names)
            named = text.named(names)
            called = frame.columns if named is None else self._session.sql(named).columns
            columns = declared_columns(frame.schema, called)
        return frame.toDF(*(f"c{i}" for i in range(len(columns)))), columns

    def check_grand_totals(self) -> None:
        """Run a job for each grand total in a subquery: over no rows, Spark omits its row.

        Raises UnsupportedSqlError in that case.
        """
        from pyspark.errors import AnalysisException

        for sql in self._row_questions:
            try:
                rows = self._session.sql(sql).take(1)
            except AnalysisException as error:
                raise refuse("a grand total in a correlated subquery") from error
            if not rows:
                raise refuse("the grand total of ROLLUP, CUBE or GROUPING SETS over no rows")

    def _most(self) -> int:
        return max(self._tasks.slots, *(len(self._tasks[i]) for i in range(len(self._plans))), 0)

    def _plan_lazily(self) -> None:
        """Configure Spark so that it runs no job before rows are read."""
        self._session.conf.set("spark.sql.adaptive.enabled", "false")
        # The number that adaptive execution would have chosen.
        self._session.conf.set("spark.sql.shuffle.partitions", str(self._most()))

    def _use(self, fragment: Fragment) -> None:
        files = sum(len(self._plans[i].files) for i in (fragment.scan, *fragment.whole))
        self.groups += (WHOLE if fragment.is_whole_query else FRAGMENTS,) * files

    def _view_scan(self, index: int, name: str, part_of: Callable[[int], Fragment | None]) -> None:
        """Make the view of a scan; ``part_of`` may return a fragment with all the rows it needs."""
        self._query.check()
        plan, way = self._plans[index], TASKS
        if plan.metadata is not None:
            frame = self._metadata_frame(plan, plan.metadata)
        elif SPARK_READER in self.ways and self._frames.can_read(plan, self._cursor, self._query):
            way, frame = SPARK_READER, self._frames.frame(self._session, plan)
        elif (part := part_of(index)) is not None:
            way, frame = FRAGMENTS, self._fragment_frame(part)
        else:
            frame = self._task_frame(plan, self._tasks[index])
        self._view(name, frame, small=self._is_small(plan))
        self.groups += (way,) * len(plan.files)

    def _fragment_frame(self, fragment: Fragment) -> Any:
        # These names are as secret as the mark: the tasks search the text for them.
        tables = {
            i: f"__scan_{i}_{secrets.token_hex(16)}" for i in (fragment.scan, *fragment.whole)
        }
        names = {f"__scan_{i}": name for i, name in tables.items()}
        sql = renamed_sql(fragment.tree, names)
        schemas = [plan.scan.projection for plan in self._plans]
        adapter = adapter_of(fragment.tree, schemas, self._cursor)
        if adapter is not None:
            sql = adapter.adapted(sql, names, {})
        plan = self._plans[fragment.scan]
        parts = self._tasks.merged(fragment.scan, fragment.division.tasks)
        whole = ((tables[i], self._tasks.whole(i)) for i in fragment.whole)
        job = FragmentJob(
            sql,
            ((tables[fragment.scan], CombinedScanTask((), plan.context)), *whole),
            self._query.settings.timezone,
            fragment.columns,
            task_memory(self._session),
        )
        self._count(len(parts), plan)
        for i in fragment.whole:
            self._jobs.own_bytes += len(parts) * self._plans[i].report.projected_bytes
        return job_frame(self._session, job, parts, ddl_of(fragment.columns), self._mark)

    def _view(self, name: str, frame: Any, *, small: bool) -> None:
        if small and len(self._plans) > 1:
            frame = frame.hint("broadcast")
        frame.createOrReplaceTempView(name)
        self._views.append(name)

    def _is_small(self, plan: ScanPlan) -> bool:
        """True if, according to metadata, each task of a join may receive all rows of the scan."""
        rows, width = plan.rows_in_files, len(plan.scan.projection.fields)
        size = max(plan.projected_bytes, rows * width)
        return plan.metadata is None and size <= self._broadcast_limit

    @cached_property
    def _broadcast_limit(self) -> int:
        """The maximum size in bytes of a file that Spark broadcasts; negative for no file."""
        text = str(self._session.conf.get(BROADCAST_LIMIT_OF_RUN))
        return -1 if text.startswith("-") else parse_bytes(text)

    def _task_frame(self, plan: ScanPlan, tasks: Sequence[CombinedScanTask]) -> Any:
        context = plan.context
        if not context.projection.fields:
            context = replace(context, projection=Schema((POS,)))
        job = ScanJob(CombinedScanTask((), context))
        self._count(len(tasks), plan)
        return job_frame(self._session, job, tasks, spark_schema(context.projection), self._mark)

    def _metadata_frame(self, plan: ScanPlan, rows: MetadataRows) -> Any:
        import pyarrow as pa

        if plan.scan.frame is not None:
            return frame_of_scan(plan.scan, self._session)
        from icesql.read.metadata_table import metadata_table

        columns = plan.scan.projection.fields
        table = metadata_table(rows, plan.context, self._query).combine_chunks()
        if not columns:
            rows = pa.table({"none": pa.nulls(table.num_rows, pa.int32())})
            return frame_of_rows(self._session, rows, "none INT")
        arrays = [
            carrier(array.chunk(0) if array.num_chunks else pa.nulls(0, array.type), column.type)
            for array, column in zip(table.columns, columns, strict=True)
        ]
        made = pa.Table.from_arrays(arrays, [column.name for column in columns])
        return frame_of_rows(self._session, made, spark_schema(plan.scan.projection))

    def _count(self, tasks: int, plan: ScanPlan) -> None:
        self._jobs.own_tasks += tasks
        self._jobs.own_bytes += plan.report.projected_bytes

    def kept_views(self) -> tuple[Any, tuple[str, ...]]:
        """The session and the names of its views, which ``drop`` then keeps."""
        views, self._views = self._views, []
        return self._session, (*views,)

    def drop(self) -> None:
        """Remove the views; has no effect if Spark has ended."""
        drop_views(*self.kept_views())


def job_frame(
    session: Any,
    job: ScanJob | FragmentJob,
    tasks: Sequence[CombinedScanTask],
    schema: str,
    mark: str,
) -> Any:
    """A DataFrame of the rows that ``job`` returns for the files of ``tasks``, one Spark task each.

    The job goes once to each machine, with the function. Files are sent as rows, so that each task
    gets its own. A plan shows neither of them; errors follow ``mark``.
    """
    read = by_name("worker", "read_batches", pack((mark, job)))
    return in_tasks(session, [each.tasks for each in tasks], read, schema)
