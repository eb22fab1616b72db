"""Threads that work beside a statement: they process one iterable, or write concurrently."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from icesql.context import QueryContext
from icesql.errors import QueryCancelledError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Made = TypeVar("Made")

_STEP_SECONDS: Final = 0.05


class _Mark(Enum):
    """``END``: a thread has no more items."""

    END = auto()


class SideThreads(Generic[Item, Made]):
    """``count`` threads run ``work`` on items, each item once; results come in any order.

    Items are taken under a lock, one at a time. ``most_waiting`` limits the results that wait for
    the reader, 0 for no limit; at the limit the threads wait. An error of the items or of the work
    is raised to the reader and ends all threads.
    """

    def __init__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Iterable[Made]],
        query: QueryContext,
        *,
        name: str,
        count: int,
        most_waiting: int = 0,
    ) -> None:
        self._items, self._work, self._query = iter(items), work, query
        self._made: queue.Queue[Made | BaseException | _Mark] = queue.Queue(most_waiting)
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(count)
        ]
        self._running = count

    def results(self) -> Generator[Made, None, None]:
        """The results of the threads as they come; closing it stops them without waiting.

        Raises QueryCancelledError after ``stop``, and the errors of ``query.check``.
        """
        for each in self._threads:
            each.start()
        try:
            while self._running:
                try:
                    made = self._made.get(timeout=_STEP_SECONDS)
                except queue.Empty:
                    if self._stop.is_set():
                        raise QueryCancelledError("the query was cancelled") from None
                    self._query.check()
                    continue
                if made is _Mark.END:
                    self._running -= 1
                elif isinstance(made, BaseException):
                    raise made
                else:
                    yield made
        finally:
            self._stop.set()

    @property
    def ended(self) -> bool:
        """True if every thread has ended, and the reader has seen it."""
        return not self._running

    @property
    def stopped(self) -> bool:
        """True if no more results are wanted."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Make the threads end after their current result."""
        self._stop.set()

    def join(self, seconds: float | None = None) -> Iterator[Made]:
        """Wait for the threads, at most ``seconds``; yields the results that nobody has read."""
        for each in self._threads:
            if each.ident is not None:
                each.join(None if seconds is None else seconds / len(self._threads))
        with suppress(queue.Empty):
            while True:
                made = self._made.get_nowait()
                if made is not _Mark.END and not isinstance(made, BaseException):
                    yield made

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    item = next(self._items, _Mark.END)
                if item is _Mark.END:
                    break
                for made in self._work(item):
                    if not self._put(made):
                        return
                    del made
        except BaseException as error:
            self._put(error)
            return
        self._put(_Mark.END)

    def _put(self, made: Made | BaseException | _Mark) -> bool:
        while True:
            try:
                self._made.put(made, timeout=_STEP_SECONDS)
            except queue.Full:
                if self._stop.is_set():
                    return False
                continue
            return True


# ------------------------------------------------------------------ a pool


@contextmanager
def thread_pool(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """At most ``count`` threads; at the end waiting calls are cancelled, running ones awaited."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(count, name)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
