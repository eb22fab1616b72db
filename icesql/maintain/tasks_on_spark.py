"""Tasks of maintenance in Spark's: as many at once as there are cores, and nothing left of others.

What a task wrote and nobody was told of, as its worker was lost, is removed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from icesql.context import QueryContext
from icesql.storage.leftovers import remove_leftovers
from icesql.storage.open import Storage

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import Numbered, TaskJob, TaskOutcome

# Spark jobs at once: while one ends, the next keeps the cores busy.
_LANES: Final = 3
# The storage and the folder of a task's files, and a word that only their names have.
WrittenTo: TypeAlias = tuple[Storage, str, str]


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
    the paths of the files that it wrote; ``written_to`` says where others may be left.
    """

    def __init__(
        self,
        engine: SparkEngine,
        tasks: Callable[[int], Iterable[Task]],
        query: QueryContext,
        job: Callable[[Task], TaskJob],
        result: Callable[[Task, TaskOutcome], tuple[Result, Iterable[str]]],
        written_to: Callable[[Task], WrittenTo],
    ) -> None:
        self._engine, self._tasks, self._query = engine, tasks, query
        self._job, self._result, self._written_to = job, result, written_to
        self._open: dict[int, Task] = {}
        # Names of files that results report, and tasks that may have written others.
        self._reported: set[str] = set()
        self._lost: list[Task] = []

    def results(self) -> Generator[Result, None, None]:
        """What the tasks give, as they end. Raises what ``result`` raises."""
        outcomes = self._engine.run_jobs(self._chunks, self._query, _LANES)
        try:
            for outcome in outcomes:
                task = self._open.pop(outcome.number)
                if outcome.lost:
                    self._lost.append(task)
                try:
                    result, paths = self._result(task, outcome)
                except BaseException:
                    self._lost.append(task)
                    raise
                self._reported |= {each.rpartition("/")[2] for each in paths}
                yield result
        finally:
            outcomes.close()
            self._clean()

    def _chunks(self, slots: int) -> Iterator[Sequence[Numbered]]:
        """Tasks for as many cores as there are, one Spark job for each chunk."""
        waiting = iter(self._tasks(slots))
        while chunk := [*islice(waiting, slots)]:
            for each in chunk:
                self._open[each.number] = each
            yield [(each.number, self._job(each)) for each in chunk]

    def _clean(self) -> None:
        """Delete files of tasks that failed or whose result was not used."""
        left: dict[str, tuple[Storage, set[str]]] = {}
        for task in (*self._lost, *self._open.values()):
            storage, folder, mark = self._written_to(task)
            left.setdefault(folder, (storage, set()))[1].add(mark)
        for folder, (storage, marks) in left.items():
            remove_leftovers(storage, folder, marks, self._reported)
