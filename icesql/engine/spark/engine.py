"""The Spark engine: Spark's workers read the scans of a bound query, Spark does the rest.

Each scan is a view over a DataFrame: its rows are packed jobs, one for each combined task, which
``mapInArrow`` turns into the rows of the task. (A Python Data Source plans in separate Python
processes, which takes 0.3 s a scan on two cores; only ``format("icesql")`` pays for that.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from icesql.config import time_zone
from icesql.context import QueryContext
from icesql.engine.arrow_values import rows_of
from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.query_thread import MemoryWatch, Worker
from icesql.engine.result import Result
from icesql.engine.result_schema import Row, arrow_schema
from icesql.engine.spark.batches import expected_bytes, plan_lines, stream
from icesql.engine.spark.bind import declared_columns
from icesql.engine.spark.errors import has_crossed, is_gone, spark_exceptions, translate
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.reader import ReaderFrames, readable_folders
from icesql.engine.spark.releases import in_session
from icesql.engine.spark.scans import Scans
from icesql.engine.spark.sessions import SparkSessions, is_connect
from icesql.engine.spark.sql.grand_total import must_have_rows
from icesql.engine.spark.sql.kinds import refuse
from icesql.engine.spark.task_memory import task_memory
from icesql.engine.spark.types import declared_batch
from icesql.engine.spark.worker import new_mark
from icesql.errors import Error, InterfaceError, OperationalError

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.engines import Reports, RowsJob
    from icesql.engine.spark.writing.task_runs import Numbered, TaskOutcome
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.write.write_task import WriteTask
    from icesql.write.written import Written

_CLOSE_SECONDS: Final = 0.5
T = TypeVar("T")


class SparkEngine:
    """Runs bound queries on Spark; one for each icesql connection. Thread-safe.

    ``chosen`` has one of "session" (a SparkSession), "master" and "remote"; without any of them the
    master is ``local[*]``.
    """

    def __init__(self, chosen: Mapping[str, Any] | None = None) -> None:
        self.sessions = SparkSessions(chosen or {})
        self.pool, self.frames = InstancePool(), ReaderFrames()
        self._open: WeakSet[SparkResult] = WeakSet()
        # True if results are for ``SparkResult.data_frame``: then this process combines no rows.
        self.for_frames = False

    def execute(
        self, bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext
    ) -> SparkResult:
        """Translate a query and return its result; Spark runs it when rows are read."""
        result = SparkResult(bound, plans, query, self)
        self._open.add(result)
        return result

    def run_jobs(
        self,
        jobs: Callable[[int], Iterable[Numbered]],
        query: QueryContext,
    ) -> Generator[TaskOutcome, None, None]:
        """Run jobs in Spark's tasks; see ``TaskRuns``.

        ``jobs`` receives the number of tasks that run at once. Raises an error if there is no
        session; an error of a job is part of its outcome.
        """
        from icesql.engine.spark.tasks import parallelism
        from icesql.engine.spark.writing.task_runs import TaskRuns

        session = self.sessions.session(query.settings.timezone)
        slots = parallelism(session)
        return TaskRuns(session, jobs(slots), slots, query, new_mark()).results()

    def forget(self) -> None:
        """See ``engines.Engine``. Spark's workers keep footers, by path and length."""
        self.frames = ReaderFrames()

    def close(self) -> None:
        """End every open result; a session of the user stays open."""
        results = list(self._open)
        for result in results:
            result.close()
        self.pool.close()
        for result in results:
            # After the client of Connect is closed, it cannot cancel jobs any more.
            result.wait(_CLOSE_SECONDS)
        self.sessions.close()


class _OpenQuery:
    """A query's resources in Spark, without a reference to its result: the worker refers to it."""

    def __init__(self) -> None:
        self.jobs: SparkJobs | None = None
        self.scans: Scans | None = None
        self.stream: Generator[pa.RecordBatch, None, None] | None = None

    def interrupt(self) -> None:
        """Stop the jobs of the query, from any thread."""
        if self.jobs is not None:
            self.jobs.cancel()

    def release(self) -> None:
        """End the jobs and drop the views. Call it in the thread that uses Spark."""
        stream, scans = self.stream, self.scans
        self.stream = self.scans = None
        try:
            if stream is not None:
                stream.close()
        finally:
            if scans is not None:
                scans.drop()


class SparkResult(Result):
    """One query on one Spark session in one worker thread. See ``Result``.

    The thread and its jobs end with the last row, an error, ``close`` or collection.
    """

    def __init__(
        self,
        bound: BoundQuery,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        engine: SparkEngine,
    ) -> None:
        self._engine, self._query = engine, query
        self._bound, self._plans = bound, tuple(plans)
        # Only the driver and this query's tasks know it. Nothing decodes errors of a DataFrame.
        self._mark = "" if engine.for_frames else new_mark()
        self._open = _OpenQuery()
        self._frame: Any = None
        self._busy = False
        watch = MemoryWatch(query.settings.memory_limit, engine.pool)
        self._worker = Worker(self._open.interrupt, self._open.release, watch)
        super().__init__()
        try:
            self._run(self._start, planning=True)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ start

    def _start(self) -> None:
        settings, sessions = self._query.settings, self._engine.sessions
        folders = readable_folders(self._plans, settings)
        instance, cursor = self._engine.pool.cursor(folders, settings)
        try:
            text, tree = self._bound.spark, None
            if text is None:
                tree, self.columns = declared_columns(self._bound, self._plans, cursor, settings)
            session = sessions.session(settings.timezone, for_text=text is not None)
            sessions.drop_stale()
            for scan in self._bound.scans:
                if scan.frame is not None:
                    sessions.check_frame(scan.frame, scan.table.name)
            self._open.jobs = jobs = SparkJobs(session, self._query)
            self._open.scans = scans = Scans(
                session, self._plans, self._query, jobs, self._mark, self._engine.frames, cursor
            )
            jobs.join()
            if text is not None:
                self._frame, self.columns = scans.prepare_text(text)
            elif tree is not None:
                self._frame = scans.prepare(tree, self.columns)
        finally:
            instance.release(cursor)
        self.groups = scans.groups
        self.notes = sessions.first_note(task_memory(session).note)

    def _run(self, function: Any, *, planning: bool = False) -> Any:
        """Run ``function()`` in the worker; Spark's exceptions become icesql's."""
        self._busy = True
        try:
            return self._worker.call(function, self._query)
        except Error:
            raise
        except BaseException as error:
            # The classes of Spark's exceptions can only be imported if PySpark is installed.
            if not isinstance(error, spark_exceptions()):
                if isinstance(error, AttributeError):
                    self._engine.sessions.check()
                raise
            cancelled = self._query.cancel.is_set()
            if not cancelled and is_gone(error):
                self._engine.sessions.forget()
            of_text = self._bound.spark is not None
            found = translate(
                error,
                self._mark,
                cancelled=cancelled,
                planning=planning and not of_text,
                of_text=of_text,
            )
            # Java's trace adds nothing to the worker's own error.
            raise found from (None if has_crossed(error, self._mark) else error)
        finally:
            self._busy = False

    # ------------------------------------------------------------------ rows

    def _chunks(self) -> Iterator[list[Row]]:
        zone = time_zone(self._query.settings.timezone)
        for batch in self._batches():
            yield from rows_of(batch, self.columns, zone)

    def engine_plan(self) -> list[str]:
        """See ``engines.PlannedResult``."""
        return list(self._run(lambda: plan_lines(self._frame)))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        jobs, scans = self._open.jobs, self._open.scans
        if jobs is None or scans is None:
            raise InterfaceError("the result is closed")
        if (rest := scans.rest) is not None:
            partials = stream(self._frame, jobs, expected_bytes=0)
            yield from self._read(rest.rows(partials, self._engine.pool, self._query))
            return
        self._run(scans.check_grand_totals)
        rows = 0
        expected = expected_bytes(self._bound.tree, self._plans)
        for batch in self._read(stream(self._frame, jobs, expected)):
            rows += batch.num_rows
            yield declared_batch(batch, self.columns)
        self._check_rows(rows)

    def _read(self, batches: Generator[pa.RecordBatch, None, None]) -> Iterator[pa.RecordBatch]:
        """Batches that the worker computes, until the result is closed."""
        opened = self._open
        opened.stream = batches

        def following() -> pa.RecordBatch | None:
            return None if opened.stream is None else next(opened.stream, None)

        while (batch := self._run(following)) is not None:
            yield batch

    def data_frame(self, session: Any) -> Any:
        """The rows as a DataFrame of the user's ``session``; Spark runs it later on its own.

        Through Spark Connect, the DataFrame belongs to icesql's session. The engine has to be
        ``for_frames``. Raises UnsupportedSqlError.
        """
        if self._must_have_rows:
            raise refuse("ROLLUP, CUBE and GROUPING SETS with a grand total in a DataFrame")
        frame = self._run(lambda: self._frame.toDF(*(each.name for each in self.columns)))
        if is_connect(session):
            # The server resolves the views each time that it runs this or a derived DataFrame.
            scans, self._open.scans = self._open.scans, None
            if scans is not None:
                self._engine.sessions.drop_later(self._frame, scans.kept_views())
        else:
            frame = self._run(lambda: in_session(frame, session))
        self.close()
        return frame

    # ------------------------------------------------------------------ files

    def write_files(self, task: WriteTask) -> Written | None:
        """See ``engines.TableWritingResult``.

        None if this process combines partial results, and on Connect if rows have to be spread.
        """
        from icesql.engine.spark.writing.frame import collect_written, written_frame

        if self._open.scans is None or self._open.scans.rest is not None:
            return None
        if is_connect(self._frame.sparkSession) and task.distribution != "none":
            # Spreading rows uses column functions of a Spark driver in this process.
            return None
        task.assignment.check(arrow_schema(self.columns))
        self._run(self._open.scans.check_grand_totals)
        written = self._in_tasks(
            lambda: written_frame(self._frame, self.columns, task, self._mark),
            lambda described: collect_written(task, described),
        )
        self._check_rows(written.rows)
        return written

    def run_over_rows(
        self,
        job: RowsJob,
        collect: Callable[[Reports], T],
        together: int | None = None,
    ) -> T | None:
        """See ``engines.RowsResult``."""
        from icesql.engine.spark.writing.frame import outcome_frame

        if self._open.scans is None or self._open.scans.rest is not None:
            return None
        if self._must_have_rows:
            return None  # only a reader of all rows sees whether there are any
        self._run(self._open.scans.check_grand_totals)
        return self._in_tasks(
            lambda: outcome_frame(self._frame, self.columns, job, self._mark, together), collect
        )

    def _in_tasks(self, make_frame: Callable[[], Any], collect: Callable[[Reports], T]) -> T:
        """Collect the reports of a frame's tasks, each with True if the task may be repeated."""
        try:
            try:
                return collect(self._described(make_frame))
            except OperationalError as error:
                if self._query.cancel.is_set() or not self._loses_workers(error):
                    raise
                return collect(self._described(make_frame))
        finally:
            self.close()

    def _loses_workers(self, error: OperationalError) -> bool:
        """True if a Python worker ended on a local master, which does not repeat tasks."""
        session = self._frame.sparkSession
        if is_connect(session) or "Python worker exited" not in str(error):
            return False
        return str(session.sparkContext.master).startswith("local")

    def _described(self, make_frame: Callable[[], Any]) -> Iterator[tuple[bytes, bool]]:
        from icesql.engine.spark.writing.task_runs import speculates

        jobs = self._open.jobs
        assert jobs is not None
        frame = self._run(make_frame)
        twice = self._run(lambda: speculates(frame.sparkSession))
        last: tuple[bytes, bool] | None = None
        for batch in self._read(stream(frame, jobs, expected_bytes=0)):
            for written, repeated in zip(*batch.to_pydict().values(), strict=True):
                if last is not None:
                    yield last
                last = written, repeated or twice
        if last is not None:
            # Now every stage has ended, also one that ran again because its input was lost.
            yield last[0], last[1] or self._run(jobs.have_retried)

    @property
    def _must_have_rows(self) -> bool:
        return self._bound.spark is None and must_have_rows(self._bound.tree)

    def _check_rows(self, rows: int) -> None:
        if not rows and self._must_have_rows:
            raise refuse("the grand total of ROLLUP, CUBE or GROUPING SETS over no rows")

    # ------------------------------------------------------------------ ends

    def cancel(self) -> None:
        """See ``Result``."""
        self._query.cancel.set()
        self._open.interrupt()

    def close(self) -> None:
        """See ``Result``."""
        super().close()
        if self._busy:
            self._open.interrupt()

    def _finish(self) -> None:
        """End the use of Spark. A finalizer may call this, so it waits for nothing."""
        self._frame = None
        self._worker.close()

    def wait(self, seconds: float) -> None:
        """Wait at most ``seconds`` until the jobs of a closed result have been cancelled."""
        self._worker.join(seconds)
        if self._open.jobs is not None:
            self._open.jobs.wait(seconds)
