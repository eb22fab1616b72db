"""Jobs that read and write by themselves, each in a Spark task; only what they tell comes back.

Several Spark jobs run side by side, as those of Java's rewrite do, so that a large one at the end
of a list leaves no core idle. What a Spark job loses, a Python worker or an executor more often
than Spark tries again, is run again, each in a job of its own: only the one that ends its worker
every time fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.spark.crossing import crossed
from icesql.engine.spark.errors import is_gone, spark_exceptions, translate
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.releases import frame_of_rows, table_of
from icesql.engine.spark.session.required import without_warnings
from icesql.engine.spark.task_memory import task_memory
from icesql.engine.spark.worker import pack
from icesql.engine.spark.writing.functions import runner_of_jobs
from icesql.engine.threads.side_threads import SideThreads
from icesql.errors import Error, InternalError

_TOLD: Final = "number INT, told BINARY, error STRING, repeated BOOLEAN"
_TRIES: Final = 3
_END_SECONDS: Final = 10.0


class TaskJob(Protocol):
    """Something picklable that does its work in a worker; icesql is imported there by name."""

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        """What there is to tell; ``attempt`` is another for each try. Raises icesql's errors."""


class Told(Struct, frozen=True):
    """What the job of a number told, or why it failed.

    ``lost``: there may have been tries that told nothing.
    """

    number: int
    told: bytes = b""
    error: Error | None = None
    lost: bool = False


Numbered = tuple[int, TaskJob]


class TaskRuns:
    """Runs chunks of jobs, each chunk as one Spark job; ``lanes`` chunks at a time."""

    def __init__(
        self,
        session: Any,
        chunks: Iterable[Sequence[Numbered]],
        query: QueryContext,
        mark: str,
        lanes: int,
    ) -> None:
        self._session, self._query, self._mark = session, query, mark
        self._jobs = SparkJobs(session, f"icesql-{secrets.token_hex(8)}", query)
        self._threads = SideThreads(chunks, self._lane, query, name="icesql-rewrite", count=lanes)

    def results(self) -> Generator[Told, None, None]:
        """What the jobs tell, as chunks end; closing it stops those that run."""
        try:
            yield from self._threads.results()
        finally:
            if not self._threads.ended:
                self._jobs.cancel()
                for _ in self._threads.join(_END_SECONDS):
                    pass

    def _lane(self, chunk: Sequence[Numbered]) -> Sequence[Told]:
        self._jobs.join()
        return self._tell(chunk)

    def _tell(self, chunk: Sequence[Numbered], tries: int = _TRIES) -> Sequence[Told]:
        """What the jobs of a chunk told; those of a Spark job that failed are tried alone."""
        try:
            return self._run(chunk)
        except spark_exceptions() as error:
            found = translate(error, self._mark, cancelled=self._query.cancel.is_set())
            if self._threads.stopped or is_gone(error) or self._query.cancel.is_set():
                raise found from error
        if tries <= 1:
            return [Told(number, error=found, lost=True) for number, _ in chunk]
        again = [told for each in chunk for told in self._tell([each], tries - 1)]
        return [replace(each, lost=True) for each in again]

    def _run(self, chunk: Sequence[Numbered]) -> Sequence[Told]:
        import pyarrow as pa

        memory = task_memory(self._session)
        packed = [pack((self._mark, (*each, memory))) for each in chunk]
        rows = pa.table({"job": pa.array(packed, pa.binary())})
        with without_warnings():
            frame = frame_of_rows(self._session, rows, "job BINARY")
            frame = frame.mapInArrow(runner_of_jobs(), _TOLD)
        told = [
            self._of_row(*row) for row in zip(*table_of(frame).to_pydict().values(), strict=True)
        ]
        if sorted(each.number for each in told) != sorted(number for number, _ in chunk):
            raise InternalError("Spark gave other results than those of its tasks")
        return told

    def _of_row(self, number: int, told: bytes | None, error: str | None, repeated: bool) -> Told:
        lost = repeated or speculates(self._session)
        if told is not None:
            return Told(number, told, lost=lost)
        found = crossed(error or "", self._mark)
        found = found or InternalError("a task failed and did not tell why")
        return Told(number, error=found, lost=lost)


def speculates(session: Any) -> bool:
    """Whether Spark may run a task twice at a time, and one of both may leave what it wrote."""
    return str(session.conf.get("spark.speculation", "false")).lower() == "true"
