"""Threads that write files in parallel, each one file at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.write.parquet.rolling_files import RollingFiles
from icesql.write.parquet_file import WrittenFile

_STEP_SECONDS: Final = 0.1


class Rows(Frozen):
    """Rows of one partition for its file; with ``alone`` they get a file of their own."""

    partition: int
    rows: pa.Table
    alone: bool = False


class ParallelWriters:
    """``count`` threads, each with at most one open file, and a queue of one item.

    ``files_of`` creates the files of a partition, by its number. The next call raises the error of
    a thread; then, and after ``abandon``, no file is left.
    """

    def __init__(
        self, count: int, files_of: Callable[[int], RollingFiles], query: QueryContext
    ) -> None:
        self._files_of, self._query = files_of, query
        self._rows: queue.Queue[Rows | None] = queue.Queue(maxsize=1)
        self._made: list[tuple[int, RollingFiles]] = []
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="icesql-write", daemon=True)
            for _ in range(count)
        ]
        self._started = 0

    def put(self, rows: Rows) -> None:
        """Queue rows for writing; waits while every thread is busy."""
        if self._started < len(self._threads):
            self._threads[self._started].start()
            self._started += 1
        self._put(rows)

    def _put(self, item: Rows | None) -> None:
        while True:
            self._check()
            try:
                self._rows.put(item, timeout=_STEP_SECONDS)
            except queue.Full:
                continue
            return

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        self._query.check()

    def finish(self) -> Sequence[tuple[int, WrittenFile]]:
        """Finish all files; return each with its partition's number, in the order of creation."""
        for _ in range(self._started):
            self._put(None)
        for thread in self._threads[: self._started]:
            while thread.is_alive():
                thread.join(_STEP_SECONDS)
                self._check()
        self._check()
        return [(number, file) for number, files in self._made for file in files.written]

    def abandon(self) -> None:
        """Stop the threads and remove every file."""
        self._stop.set()
        for thread in self._threads[: self._started]:
            while thread.is_alive():
                with suppress(queue.Full):  # wake a thread that waits for rows
                    self._rows.put_nowait(None)
                thread.join(_STEP_SECONDS)
        for _, files in self._made:
            files.abandon()

    def _run(self) -> None:
        current: tuple[int, RollingFiles] | None = None
        try:
            while (item := self._rows.get()) is not None and not self._stop.is_set():
                if current is None or current[0] != item.partition:
                    if current is not None:
                        current[1].end_file()
                    current = item.partition, self._files_of(item.partition)
                    self._made.append(current)
                elif item.alone:
                    current[1].end_file()
                current[1].write(item.rows)
                del item
            if current is not None and not self._stop.is_set():
                current[1].end_file()
        except BaseException as error:
            self._error = self._error or error
