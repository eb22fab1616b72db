"""Run jobs that read and write on their own, each in a Spark task; only outcomes come back.

Several Spark jobs run concurrently, as in Java's rewrite, so that a large task at the end of a list
leaves no core idle. When a Spark job fails, for example because Python workers or executors were
lost more often than Spark repeats a task, each of its tasks runs again in a separate Spark job:
only a task that ends its worker every time fails.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.side_threads import SideThreads
from icesql.engine.spark.errors import is_gone, spark_exceptions, translate
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.releases import table_of
from icesql.engine.spark.sessions import in_tasks
from icesql.engine.spark.task_memory import task_memory
from icesql.engine.spark.worker import by_name, decode_error
from icesql.errors import Error, InternalError
from icesql.frozen import Frozen

_OUTCOME: Final = "number INT, result BINARY, error STRING, repeated BOOLEAN"
_TRIES: Final = 3
_END_SECONDS: Final = 10.0
# Concurrent Spark jobs: while one ends, the next keeps the cores busy.
_LANES: Final = 3


# A picklable function that works in a worker; icesql is imported there by name. Its number differs
# between attempts. It returns the result as bytes, and raises icesql's errors.
TaskJob = Callable[[QueryContext, int], bytes]


class TaskOutcome(Frozen):
    """The result of the job with a number, or its error.

    ``lost``: the result of an attempt may have been lost.
    """

    number: int
    result: bytes = b""
    error: Error | None = None
    lost: bool = False


Numbered = tuple[int, TaskJob]


class TaskRuns:
    """Runs jobs in chunks; a chunk has as many jobs as run at once, and is one Spark job."""

    def __init__(
        self, session: Any, jobs: Iterable[Numbered], slots: int, query: QueryContext, mark: str
    ) -> None:
        self._session, self._query, self._mark = session, query, mark
        self._jobs = SparkJobs(session, query)
        self._threads = SideThreads(
            chunks_of(jobs, slots), self._run_chunk, query, name="icesql-rewrite", count=_LANES
        )

    def results(self) -> Generator[TaskOutcome, None, None]:
        """The outcomes of jobs as their chunks end; closing it stops running ones."""
        try:
            yield from self._threads.results()
        finally:
            if not self._threads.ended:
                self._jobs.cancel()
                for _ in self._threads.join(_END_SECONDS):
                    pass

    def _run_chunk(self, chunk: Sequence[Numbered]) -> Sequence[TaskOutcome]:
        self._jobs.join()
        return self._run_with_retries(chunk)

    def _run_with_retries(
        self, chunk: Sequence[Numbered], tries: int = _TRIES
    ) -> Sequence[TaskOutcome]:
        """The outcomes of a chunk; after a failure, its jobs run again in separate Spark jobs."""
        try:
            return self._run(chunk)
        except spark_exceptions() as error:
            failure = translate(error, self._mark, cancelled=self._query.cancel.is_set())
            if self._threads.stopped or is_gone(error) or self._query.cancel.is_set():
                raise failure from error
        if tries <= 1:
            return [TaskOutcome(number, error=failure, lost=True) for number, _ in chunk]
        retried = [outcome for job in chunk for outcome in self._run_with_retries([job], tries - 1)]
        return [replace(outcome, lost=True) for outcome in retried]

    def _run(self, chunk: Sequence[Numbered]) -> Sequence[TaskOutcome]:
        memory = task_memory(self._session)
        rows = [(self._mark, (*each, memory)) for each in chunk]
        frame = in_tasks(self._session, rows, by_name("writing.job", "run_jobs"), _OUTCOME)
        outcomes = [
            self._of_row(*row) for row in zip(*table_of(frame).to_pydict().values(), strict=True)
        ]
        if sorted(outcome.number for outcome in outcomes) != sorted(number for number, _ in chunk):
            raise InternalError("Spark gave other results than those of its tasks")
        return outcomes

    def _of_row(
        self, number: int, result: bytes | None, error: str | None, repeated: bool
    ) -> TaskOutcome:
        lost = repeated or speculates(self._session)
        if result is not None:
            return TaskOutcome(number, result, lost=lost)
        failure = decode_error(error or "", self._mark)
        failure = failure or InternalError("a task failed and did not say why")
        return TaskOutcome(number, error=failure, lost=lost)


def chunks_of(jobs: Iterable[Numbered], slots: int) -> Iterator[Sequence[Numbered]]:
    """Jobs in chunks of ``slots`` jobs; a chunk is created when it is needed."""
    waiting = iter(jobs)
    while chunk := [*islice(waiting, slots)]:
        yield chunk


def speculates(session: Any) -> bool:
    """True if Spark may run a task twice at the same time, so that one may leave its files."""
    return str(session.conf.get("spark.speculation", "false")).lower() == "true"
