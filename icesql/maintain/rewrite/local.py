"""Run the tasks of a rewrite on this machine: few at once, in bounded memory."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.maintain.rewrite.task import (
    RewriteResult,
    RewriteTask,
    TaskFailure,
    run_rewrite_task,
)
from icesql.storage.new_file import remove_file

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
_STEP_SECONDS: Final = 0.1


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
        self._tasks, self._storage = tasks, storage
        self._query, self._at_once = query, at_once
        # Cancelled with the statement, and alone when nobody wants more results.
        self._stop = threading.Event()
        memory = min(query.settings.memory_limit, _MEMORY)
        settings = replace(query.settings, memory_limit=int(memory * _ENGINE), threads=threads)
        self._own = QueryContext(
            settings, self._stop, query.deadline, query.now, None, query.tables
        )
        self._lock = threading.Lock()
        self._ended: queue.Queue[Any] = queue.Queue()

    def results(self) -> Iterator[RewriteResult | TaskFailure]:
        threads = [
            threading.Thread(target=self._run, name="icesql-rewrite", daemon=True)
            for _ in range(self._at_once)
        ]
        for each in threads:
            each.start()
        running = len(threads)
        try:
            while running:
                try:
                    item = self._ended.get(timeout=_STEP_SECONDS)
                except queue.Empty:
                    self._query.check()
                    continue
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            self._stop.set()
            for each in threads:
                each.join()
            self._remove_unseen()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    task = next(self._tasks, None)
                if task is None:
                    break
                try:
                    self._ended.put(run_rewrite_task(task, self._own))
                except Exception as error:
                    self._ended.put(TaskFailure(task.group, task.number, error))
        except BaseException as error:
            self._ended.put(error)
        self._ended.put(None)

    def _remove_unseen(self) -> None:
        """Remove the files of results that nobody takes any more."""
        with suppress(queue.Empty):
            while True:
                item = self._ended.get_nowait()
                for file in getattr(item, "files", ()):
                    remove_file(self._storage, file.path)
