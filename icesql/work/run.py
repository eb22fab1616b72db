"""Run the tasks of a statement: in threads of this process, or in Spark's tasks.

From Spark only descriptions of files come back. Files of a lost worker, which nobody reports, are
removed with the other files that no commit uses.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.side_threads import SideThreads
from icesql.frozen import Frozen
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.new_files import NewFile, Uncommitted
from icesql.storage.open import Storage
from icesql.write.options import data_locations
from icesql.write.written import Types, Written, decode_written, encode_written, types_of

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import Numbered

# DuckDB's share of memory on this machine; settings may lower it. Rows on their way to files take
# about as much again.
_MEMORY: Final = 384 << 20
# One thread reads and two encode.
_THREADS_OF_TASK: Final = 3
# Each task holds some 200 MB of rows on their way to a file.
_MOST_AT_ONCE: Final = 2
# A longer description is written to a file; Spark's driver takes a gigabyte of results in all.
_MOST_BYTES: Final = 32 << 20


class Task(Protocol):
    """Work that one process does; picklable."""

    @property
    def number(self) -> int:
        """A number from 0, unique among the statement's tasks."""

    def run(self, query: QueryContext, attempt: int) -> Written:
        """Do the work; a failed task leaves no file.

        ``attempt`` differs between repetitions of a task whose end is unknown. Raises the errors of
        reading and writing.
        """


AnyTask = TypeVar("AnyTask", bound=Task)


class Work(Frozen, Generic[AnyTask]):
    """The input of a runner: ``tasks`` creates a statement's tasks for a number of slots.

    ``new`` records the files that they write to a table with ``metadata``. On this machine at most
    ``at_once`` of them run concurrently.
    """

    tasks: Callable[[int], Iterable[AnyTask]]
    metadata: TableMetadata
    new: Uncommitted
    query: QueryContext
    at_once: int = 1


def files_of_tasks(metadata: TableMetadata, storage: Storage) -> Uncommitted:
    """The new files of a statement's tasks; a random word in their names makes them unique."""
    return Uncommitted(storage, data_locations(metadata).folder, str(uuid.uuid4()))


# Each task with its files or its error, in any order; closing it ends the tasks that still run.
Results = Generator[tuple[AnyTask, Written | Exception], None, None]
Runner = Callable[[Work[AnyTask]], Results[AnyTask]]


def run_here(work: Work[AnyTask]) -> Results[AnyTask]:
    """Run tasks in threads, each of which uses several to read and to encode at once."""
    from icesql.engine.duckdb.task_rows import one_engine

    query, waiting = work.query, iter(work.tasks(1))
    first = next(waiting, None)
    if first is None:
        return
    count = query.settings.threads or os.cpu_count() or 1
    memory = min(query.settings.memory_limit // 2, _MEMORY)
    settings = replace(query.settings, memory_limit=memory, threads=count)
    # Set when the statement is cancelled, or when no more results are wanted.
    stop = threading.Event()
    # Without progress reports, which would mix those of several tasks.
    own = QueryContext(settings, stop, query.deadline, query.now, None, query.tables)

    def run(task: AnyTask) -> Iterator[tuple[AnyTask, Written | Exception]]:
        try:
            made: Written | Exception = task.run(own, 0)
        except Exception as error:
            made = error
        yield task, made

    at_once = min(max(1, count // _THREADS_OF_TASK), work.at_once, _MOST_AT_ONCE)
    threads = SideThreads(chain((first,), waiting), run, query, name="icesql-tasks", count=at_once)
    with one_engine():
        try:
            yield from threads.results()
        finally:
            stop.set()
            # The results that nobody has read.
            for _, made in threads.join():
                if isinstance(made, Written):
                    work.new.take(made.paths)


def run_in_spark(engine: SparkEngine) -> Runner[AnyTask]:
    """A runner that makes each task a Spark task, as many at once as there are cores; Spark
    repeats the tasks of a lost worker."""

    def run(work: Work[AnyTask]) -> Results[AnyTask]:
        new, types, running = work.new, types_of(work.metadata), dict[int, AnyTask]()

        def jobs(slots: int) -> Iterator[Numbered]:
            for each in work.tasks(slots):
                running[each.number] = each
                yield each.number, _Job(each, new.storage, new.folder, new.mark)

        # Until all tasks have ended, any of them may leave files.
        lost, new.lost = new.lost, True
        with closing(engine.run_jobs(jobs, work.query)) as outcomes:
            for outcome in outcomes:
                lost = lost or outcome.lost
                made = outcome.error or _reported(outcome.result, types, new)
                yield running.pop(outcome.number), made
        new.lost = lost

    return run


def _reported(data: bytes, types: Types, new: Uncommitted) -> Written:
    written = decode_written(data, types)
    new.report(written.paths)
    for path in written.apart:
        written = decode_written(new.storage.read(path), types)
        new.remove([path])
        new.report(written.paths)
    return written


class _Job(Frozen):
    """A task on its way to a worker, with the folder that it writes to."""

    task: Task
    storage: Storage
    folder: str
    mark: str

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        written = self.task.run(query, attempt)
        data = encode_written(written)
        if len(data) <= _MOST_BYTES:
            return data
        path = f"{self.folder}/written-{self.mark}-{self.task.number:05d}-{attempt}.bin"
        with Uncommitted(self.storage) as new:
            new.take(written.paths)
            with NewFile(self.storage, path) as file:
                file.write(data)
            new.hand_over()
        return encode_written(Written(apart=(path,)))
