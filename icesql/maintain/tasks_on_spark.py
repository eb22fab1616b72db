"""Tasks of maintenance in Spark's: as many at once as there are cores, and nothing left of others.

What a task wrote and nobody was told of, as its worker was lost, is removed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from icesql.context import QueryContext
from icesql.storage.uncommitted import Uncommitted

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import Numbered, TaskJob, TaskOutcome


class NumberedTask(Protocol):
    """A task; no other of the same run has its number."""

    @property
    def number(self) -> int:
        """From 0."""


Task = TypeVar("Task", bound=NumberedTask)
Result = TypeVar("Result")


class TasksOnSpark(Generic[Task, Result]):
    """Runs the ``tasks`` for as many cores as there are.

    ``job`` makes of each what travels to a worker, ``result`` of its outcome what comes back and
    the paths of the files that it wrote; ``new`` says where others may be left.
    """

    def __init__(
        self,
        engine: SparkEngine,
        tasks: Callable[[int], Iterable[Task]],
        query: QueryContext,
        job: Callable[[Task], TaskJob],
        result: Callable[[Task, TaskOutcome], tuple[Result, list[str]]],
        new: Callable[[Task], Uncommitted],
    ) -> None:
        self._engine, self._tasks, self._query = engine, tasks, query
        self._job, self._result, self._new = job, result, new
        self._open: dict[int, Task] = {}
        self._by_mark: dict[str, Uncommitted] = {}

    def results(self) -> Generator[Result, None, None]:
        """The results of the tasks as they end. Raises as ``result``."""
        outcomes = self._engine.run_jobs(self._jobs, self._query)
        try:
            for outcome in outcomes:
                task = self._open.pop(outcome.number)
                new = self._new_of(task)
                # Unless its result is used, its files are lost.
                lost, new.lost = new.lost, True
                result, paths = self._result(task, outcome)
                new.report(paths)
                new.hand_over(paths)
                new.lost = lost or outcome.lost
                yield result
        finally:
            outcomes.close()
            for task in self._open.values():
                self._new_of(task).lost = True
            for new in self._by_mark.values():
                with new:
                    pass

    def _new_of(self, task: Task) -> Uncommitted:
        new = self._new(task)
        return self._by_mark.setdefault(new.mark, new)

    def _jobs(self, slots: int) -> Iterator[Numbered]:
        for each in self._tasks(slots):
            self._open[each.number] = each
            yield each.number, self._job(each)
