"""Run the tasks of a statement: in threads of this process, or in Spark's tasks.

From Spark nothing comes back but descriptions of files. What a task wrote and nobody heard of, as
its worker was lost, is removed with what else no commit takes.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.threads.side_threads import SideThreads
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage
from icesql.storage.uncommitted import Uncommitted
from icesql.write.locations import data_locations
from icesql.write.written import Types, Written, decode_written, encode_written, types_of

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import Numbered

# DuckDB's share of memory on this machine; settings may allow less. As much again are rows on
# their way to files.
_MEMORY: Final = 384 << 20
# One reads and two encode.
_THREADS_OF_TASK: Final = 3
# Rows on their way to a file take some 200 MB in each.
_MOST_AT_ONCE: Final = 2
# A description that is longer lies in a file; Spark's driver takes a gigabyte of results in all.
_MOST_BYTES: Final = 32 << 20


class Task(Protocol):
    """Work that one process does; picklable."""

    @property
    def number(self) -> int:
        """From 0; no other task of the statement has it."""

    def run(self, query: QueryContext, attempt: int) -> Written:
        """Do it; what fails leaves no file.

        ``attempt`` is another for each repetition of a task whose end is not known. Raises what
        reading and writing do.
        """


AnyTask = TypeVar("AnyTask", bound=Task)


class Work(Struct, Generic[AnyTask], frozen=True):
    """All that a runner needs: ``tasks`` makes those of a statement, for so many at once.

    ``new`` says which files they write, of a table with ``metadata``. On this machine ``at_once``
    may run side by side.
    """

    tasks: Callable[[int], Iterable[AnyTask]]
    metadata: TableMetadata
    new: Uncommitted
    query: QueryContext
    at_once: int = 1


def files_of_tasks(metadata: TableMetadata, storage: Storage) -> Uncommitted:
    """The new files of a statement's tasks, with a word in their names that no other files have."""
    return Uncommitted(storage, data_locations(metadata).folder, str(uuid.uuid4()))


# Each task with what it wrote or why it failed, in any order; closing it ends those that still run.
Results = Generator[tuple[AnyTask, Written | Exception], None, None]
Runner = Callable[[Work[AnyTask]], Results[AnyTask]]


def run_here(work: Work[AnyTask]) -> Results[AnyTask]:
    """Run tasks in threads, each of which uses several to read and to encode at once."""
    from icesql.engine.duckdb.tasks.rows import one_engine

    query, waiting = work.query, iter(work.tasks(1))
    first = next(waiting, None)
    if first is None:
        return
    count = query.settings.threads or os.cpu_count() or 1
    memory = min(query.settings.memory_limit // 2, _MEMORY)
    settings = replace(query.settings, memory_limit=memory, threads=count)
    # Cancelled with the statement, and alone when nobody wants more results.
    stop = threading.Event()
    # Without the progress of parts, which several tasks would mix up.
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
            # Results that nobody takes any more.
            for _, made in threads.join():
                if isinstance(made, Written):
                    work.new.take(made.paths)


def run_in_spark(engine: SparkEngine) -> Runner[AnyTask]:
    """A runner: each task a Spark task, as many at once as there are cores, tried again where a
    worker is lost."""

    def run(work: Work[AnyTask]) -> Results[AnyTask]:
        new, types, running = work.new, types_of(work.metadata), dict[int, AnyTask]()

        def jobs(slots: int) -> Iterator[Numbered]:
            for each in work.tasks(slots):
                running[each.number] = each
                yield each.number, _Job(each, new.storage, new.folder, new.mark)

        # Before all have ended, any may leave files.
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


class _Job(Struct, frozen=True):
    """A task as it travels to a worker, and where it writes."""

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
