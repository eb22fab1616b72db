"""Run the tasks of a rewrite on this machine: few at once, in bounded memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.threads.side_threads import SideThreads
from icesql.maintain.rewrite.task import (
    RewriteResult,
    RewriteTask,
    TaskFailure,
    run_rewrite_task,
)
from icesql.storage.uncommitted import Uncommitted

if TYPE_CHECKING:
    from icesql.storage.open import Storage

# All that a rewrite takes; settings may allow less.
_MEMORY: Final = 768 << 20
# DuckDB's share; the rest is rows on their way to files.
_ENGINE: Final = 0.5
# One reads and two encode.
_THREADS_OF_TASK: Final = 3
# Rows on their way to a file take some 200 MB in each.
_MOST_AT_ONCE: Final = 2


def run_locally(
    tasks: Iterable[RewriteTask], query: QueryContext
) -> Iterator[RewriteResult | TaskFailure]:
    """The results of tasks as they end; each takes three threads, to read and to encode at once."""
    waiting = iter(tasks)
    first = next(waiting, None)
    if first is None:
        return iter(())
    threads = query.settings.threads or os.cpu_count() or 1
    at_once = min(max(1, threads // _THREADS_OF_TASK), first.groups_at_once, _MOST_AT_ONCE)
    return _on_one_engine(
        _Local(chain((first,), waiting), first.write.storage, query, at_once, threads)
    )


def _on_one_engine(local: _Local) -> Iterator[RewriteResult | TaskFailure]:
    from icesql.engine.duckdb.tasks.rows import one_engine

    with one_engine():
        yield from local.results()


class _Local:
    def __init__(
        self,
        tasks: Iterator[RewriteTask],
        storage: Storage,
        query: QueryContext,
        at_once: int,
        threads: int,
    ) -> None:
        self._storage = storage
        # Cancelled with the statement, and alone when nobody wants more results.
        self._stop = threading.Event()
        memory = min(query.settings.memory_limit, _MEMORY)
        settings = replace(query.settings, memory_limit=int(memory * _ENGINE), threads=threads)
        self._own = QueryContext(
            settings, self._stop, query.deadline, query.now, None, query.tables
        )
        self._threads = SideThreads(tasks, self._run, query, name="icesql-rewrite", count=at_once)

    def results(self) -> Iterator[RewriteResult | TaskFailure]:
        try:
            yield from self._threads.results()
        finally:
            self._stop.set()
            with Uncommitted(self._storage) as new:
                # Results that nobody takes any more.
                for unseen in self._threads.join():
                    new.take(file.path for file in getattr(unseen, "files", ()))

    def _run(self, task: RewriteTask) -> Iterator[RewriteResult | TaskFailure]:
        try:
            made = run_rewrite_task(task, self._own)
        except Exception as error:
            yield TaskFailure(task.group, task.number, error)
        else:
            yield made
