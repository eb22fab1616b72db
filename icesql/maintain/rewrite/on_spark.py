"""Run the tasks of a rewrite in Spark's: nothing comes back but descriptions of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from icesql.context import QueryContext
from icesql.engine.spark.writing.results import check_own
from icesql.iceberg.partitioning import partition_types
from icesql.maintain.rewrite.task import (
    RewriteResult,
    RewriteTask,
    Runner,
    TaskFailure,
    run_rewrite_task,
)
from icesql.storage.leftovers import remove_leftovers
from icesql.write.described_files import decode_result, encode_result
from icesql.write.write_task import WriteResult

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import Numbered, TaskOutcome

# Spark jobs at once: while one ends, the next keeps the cores busy.
_LANES: Final = 3
# Origins of rows that travel with a result; Spark's driver takes a gigabyte of results in all.
_MOST_ORIGINS: Final = 32 << 20


class RewriteJob(Struct, frozen=True):
    """A task as it travels to a worker."""

    task: RewriteTask

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        """The description of the files; what fails leaves none. Raises what the task does."""
        done = run_rewrite_task(self.task, query, attempt=attempt)
        origins = done.origins
        if sum(len(part) for each in origins for part in each) > _MOST_ORIGINS:
            origins = ()  # deletes of its rows by others conflict
        return encode_result(WriteResult(done.files, done.rows, done.bytes, origins=origins))


def run_on_spark(engine: SparkEngine) -> Runner:
    """A runner of rewrites: each task a Spark task, tried again where a worker is lost."""

    def run(
        tasks: Iterable[RewriteTask], query: QueryContext
    ) -> Iterator[RewriteResult | TaskFailure]:
        return _OnSpark(engine, tasks, query).results()

    return run


class _OnSpark:
    def __init__(
        self, engine: SparkEngine, tasks: Iterable[RewriteTask], query: QueryContext
    ) -> None:
        self._engine, self._tasks, self._query = engine, iter(tasks), query
        self._open: dict[int, RewriteTask] = {}
        # Names of files that results report, and tasks that may have written others.
        self._reported: set[str] = set()
        self._lost: list[RewriteTask] = []

    def results(self) -> Iterator[RewriteResult | TaskFailure]:
        outcomes = self._engine.run_jobs(self._chunks, self._query, _LANES)
        try:
            for outcome in outcomes:
                task = self._open.pop(outcome.number)
                if outcome.lost:
                    self._lost.append(task)
                yield self._result(task, outcome)
        finally:
            outcomes.close()
            self._clean()

    def _chunks(self, slots: int) -> Iterator[Sequence[Numbered]]:
        """Tasks for as many cores as there are, one Spark job for each chunk."""
        while chunk := [*islice(self._tasks, slots)]:
            for each in chunk:
                self._open[each.number] = each
            yield [(each.number, RewriteJob(each)) for each in chunk]

    def _result(self, task: RewriteTask, outcome: TaskOutcome) -> RewriteResult | TaskFailure:
        if outcome.error is not None:
            return TaskFailure(task.group, task.number, outcome.error)
        write = task.write
        written = decode_result(outcome.result, partition_types(write.spec, write.schema))
        check_own(write, written.files)
        self._reported |= {each.path.rpartition("/")[2] for each in written.files}
        return RewriteResult(
            task.group, task.number, written.files, written.rows, written.bytes, written.origins
        )

    def _clean(self) -> None:
        """Delete files of tasks that failed or whose result was not used."""
        left: dict[str, list[RewriteTask]] = {}
        for task in (*self._lost, *self._open.values()):
            left.setdefault(task.write.locations.folder, []).append(task)
        for folder, tasks in left.items():
            marks = {each.write.operation for each in tasks}
            remove_leftovers(tasks[0].write.storage, folder, marks, self._reported)
