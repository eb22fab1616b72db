"""A thread for each open result, so that the caller can always interrupt.

DuckDB holds the interpreter while it runs: a Ctrl-C in the same thread has no effect until the
query ends. So DuckDB works in a thread of this module. The caller's thread waits in short steps, in
which it checks signals, cancellation, the deadline and the memory of the process.
"""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

from icesql.context import Progress, QueryContext
from icesql.errors import InterfaceError, OperationalError, ScanLimitError
from icesql.stack import start

# Compare the growth of this process's memory since a query began with its memory limit.
#
# DuckDB counts its buffers; it does not count the bytes of texts and lists in its vectors, of rows
# as Python values and of Arrow batches. The thread that waits for an engine checks at intervals, so
# no further thread is needed.

Item = TypeVar("Item")

# How far a query may exceed its limit before it is stopped, for modules that it is the first to
# import, and for memory that allocators keep.
_SLACK: Final = 64 << 20
_SLACK_PART: Final = 0.12

# The memory limit of each working connection, and the number of its running queries.
_at_work: Final[dict[Hashable, tuple[int, int]]] = {}
_lock: Final = threading.Lock()


class MemoryWatch:
    """A context for the work of one query; it can be nested.

    It counts the growth of the process while the query is inside. Between two visits it does not
    count memory that the rest of the program takes, but does count memory that it frees. The
    limits of connections that work at the same time are added. ``owner`` identifies the
    connection.
    """

    def __init__(self, limit: int, owner: Hashable) -> None:
        self._limit, self._owner = limit, owner
        self._base = self._last = 0
        self._depth = 0

    def __enter__(self) -> MemoryWatch:
        self._depth += 1
        if self._depth == 1:
            now = taken()
            self._base += now - self._last if not self._base else max(now - self._last, 0)
            self._last = now
            with _lock:
                _, queries = _at_work.get(self._owner, (0, 0))
                _at_work[self._owner] = self._limit, queries + 1
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._depth == 1 and kind is None:
                self.check()
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._last = taken()
                with _lock:
                    limit, queries = _at_work.pop(self._owner)
                    if queries > 1:
                        _at_work[self._owner] = limit, queries - 1

    def check(self) -> None:
        """Raise ScanLimitError if the query exceeds its limit."""
        grown = taken() - self._base
        if grown <= self._limit:
            return
        with _lock:
            limit = sum(limit for limit, _ in _at_work.values())
        if grown > max(limit, self._limit) + max(_SLACK, int(_SLACK_PART * self._limit)):
            raise ScanLimitError(
                f"the query has taken {grown >> 20:,} MiB of memory, more than "
                f"memory_limit = {self._limit >> 20:,} MiB; read fewer columns or rows, read "
                "them in a stream (arrow_reader()), or raise memory_limit"
            )

    def over(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items; each is produced inside this context."""
        while True:
            with self:
                item = next(items, None)
            if item is None:
                return
            yield item


def taken() -> int:
    """Bytes of private memory of the process; 0 if the system does not report it.

    On systems other than Linux, the maximum so far, which grows later.
    """
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return _most_taken()
    try:
        _, resident, shared = os.read(file, 100).split()[:3]
    finally:
        os.close(file)
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _most_taken() -> int:
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


T = TypeVar("T")

# Memory grows by about 20 MB in one step.
STEP_SECONDS: Final = 0.01
# How long a cancelled call may take to return before its thread is abandoned.
GRACE_SECONDS: Final = 0.12
LIMIT_SECONDS: Final = 2.0


# How many threads wait for the next query of a connection, and for how long.
MOST_IDLE: Final = 16
IDLE_SECONDS: Final = 5.0
_BUSY_NAME: Final = "icesql-query"
_IDLE_NAME: Final = "icesql-idle"


class _Call(Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function
        # Locked until the call has ended; cheaper than an event.
        self._running = threading.Lock()
        self._running.acquire()
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:
            self.error = error
        finally:
            self._running.release()

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the end; True if it has ended. For one thread only."""
        if self._running.acquire(timeout=seconds):
            self._running.release()
            return True
        return False

    def has_ended(self) -> bool:
        return not self._running.locked()


_Calls = queue.SimpleQueue[_Call[Any] | None]


class _Task:
    """The work of a thread for one worker: its calls, then ``at_end``."""

    def __init__(self, interrupt: Callable[[], None], at_end: Callable[[], None]) -> None:
        self.interrupt, self.at_end = interrupt, at_end
        self.calls: _Calls = queue.SimpleQueue()
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            while (call := self.calls.get()) is not None:
                call.run()
                # Without this, the result would stay alive until the next call.
                del call
        finally:
            _Call(self.at_end).run()
            _LIVE.discard(self)
            self.ended.set()


# The unfinished tasks of the whole process.
_LIVE: Final[set[_Task]] = set()
# Threads that wait for a call.
_CALLERS: Final[set[threading.Thread]] = set()
_EXIT_SECONDS: Final = 1.0


class _Thread:
    """A thread that runs tasks one after the other, until it receives None or is not needed."""

    def __init__(self, first: _Task, threads: weakref.ref[Threads] | None) -> None:
        self.tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.tasks.put(first)
        self.thread = threading.Thread(
            target=self._loop, args=(threads,), name=_BUSY_NAME, daemon=True
        )
        try:
            start(self.thread)
        except RuntimeError as error:
            raise OperationalError(f"cannot start a thread for the query: {error}") from error

    def _loop(self, threads: weakref.ref[Threads] | None) -> None:
        # This frame must keep alive neither a finished task nor the owner of the threads.
        while self._run_next(threads) and threads is not None:
            self.thread.name = _IDLE_NAME
            owner = threads()
            if owner is None or not owner._take_back(self):
                return
            del owner

    def _run_next(self, threads: weakref.ref[Threads] | None) -> bool:
        """Run the next task; False if there is none."""
        try:
            task = self.tasks.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            owner = None if threads is None else threads()
            if owner is None or owner._let_go(self):
                return False
            del owner
            task = self.tasks.get()
        if task is None:
            return False
        self.thread.name = _BUSY_NAME
        task.run()
        return True


class Threads:
    """The threads of one connection, which serve its queries one after the other.

    A thread keeps nothing of a query when it serves the next. At most ``MOST_IDLE`` threads wait,
    for ``IDLE_SECONDS``; they end with ``close``, and with this object. Thread-safe.
    """

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._end = weakref.finalize(self, _end_idle, self._idle)
        self._end.atexit = False

    def run(self, task: _Task) -> threading.Thread:
        """Run a task in an idle or new thread. Raises OperationalError if none can start."""
        if self._process == os.getpid():
            with self._lock:
                while self._idle:
                    found = self._idle.pop()
                    if found.thread.is_alive():
                        found.tasks.put(task)
                        return found.thread
        return _Thread(task, weakref.ref(self)).thread

    def _take_back(self, thread: _Thread) -> bool:
        """True if an idle thread has to wait for another task."""
        with self._lock:
            if self._closed or len(self._idle) >= MOST_IDLE:
                return False
            self._idle.append(thread)
            return True

    def _let_go(self, thread: _Thread) -> bool:
        """True if an idle thread may end; False if it has just received a task or the end."""
        with self._lock:
            if thread not in self._idle:
                return False
            self._idle.remove(thread)
            return True

    def close(self) -> None:
        """End the idle threads, and the others when their query ends."""
        with self._lock:
            self._closed = True
            self._end()


def _end_idle(idle: list[_Thread]) -> None:
    while idle:
        idle.pop().tasks.put(None)


class Worker:
    """Runs calls one after the other in one daemon thread.

    ``interrupt`` stops the running call, from any thread, and has no effect without one.
    ``at_end`` runs last, in the thread; its errors are ignored. When the worker is closed or
    collected, the thread returns to ``threads``, or ends. So neither callable may refer to the
    worker's owner.
    """

    def __init__(
        self,
        interrupt: Callable[[], None],
        at_end: Callable[[], None],
        watch: MemoryWatch,
        threads: Threads | None = None,
    ) -> None:
        self._interrupt, self._watch = interrupt, watch
        task = _Task(interrupt, at_end)
        self._calls, self._ended = task.calls, task.ended
        _LIVE.add(task)
        try:
            self._thread = _Thread(task, None).thread if threads is None else threads.run(task)
        except OperationalError:
            _LIVE.discard(task)
            raise
        self._end = weakref.finalize(self, self._calls.put, None)
        self._end.atexit = False  # _end_all also waits

    def call(
        self,
        function: Callable[[], T],
        query: QueryContext,
        progress: Callable[[], Progress] | None = None,
    ) -> T:
        """``function()`` in the thread of this worker; its exceptions are raised here.

        While it runs, ``progress`` is called at intervals, and its result reported to ``query``.
        Raises QueryCancelledError if the context is cancelled or its deadline passes, at most
        0.2 s later, even if the call is blocked; its thread then ends with the call. Raises
        InterfaceError if the worker is closed, belongs to the parent of a forked process, or the
        interpreter is ending, and ScanLimitError if the process takes more memory than the query
        may have.
        """
        caller = threading.current_thread()
        _CALLERS.add(caller)
        try:
            with self._watch:
                return self._call(function, query, progress)
        finally:
            _CALLERS.discard(caller)

    def _call(
        self,
        function: Callable[[], T],
        query: QueryContext,
        progress: Callable[[], Progress] | None,
    ) -> T:
        query.check()
        # An exit function of the program may still run a query; it waits for its own result.
        if _Exit.has_begun and threading.current_thread() is not threading.main_thread():
            raise InterfaceError("the interpreter is ending: no query can run any more")
        call = _Call(function)
        self._calls.put(call)
        try:
            while not call.wait(STEP_SECONDS):
                query.check()
                self._watch.check()
                if progress is not None:
                    query.report(progress())
                if self._is_over() and not call.has_ended():
                    raise InterfaceError("the result is closed")
        except ScanLimitError:
            # Its memory is freed when it ends; until then it would count for the next query.
            self._stop(call, query, LIMIT_SECONDS)
            raise
        except BaseException:
            self._stop(call, query, GRACE_SECONDS)
            raise
        if call.error is not None:
            try:
                raise call.error
            finally:
                # The error refers to this frame, which would keep the error alive.
                del call
        return cast("T", call.value)

    def _stop(self, call: _Call[Any], query: QueryContext, seconds: float) -> None:
        query.cancel.set()
        end = time.monotonic() + seconds
        # The engine ignores an interrupt that comes before it starts: repeat it.
        while not call.has_ended() and time.monotonic() < end and not self._is_over():
            self._interrupt()
            call.wait(0.005)

    def _is_over(self) -> bool:
        """True if no call can run any more; a forked process does not have the thread."""
        return self._ended.is_set() or not self._thread.is_alive()

    def close(self) -> None:
        """End the thread after the current call, without waiting. May be called again."""
        self._end()

    def join(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the last call and ``at_end``; True if both have ended."""
        if seconds and threading.current_thread() is not self._thread:
            self._ended.wait(seconds)
        return self._is_over()


class _Exit:
    """``has_begun``: the interpreter is ending, and only the main thread may begin a query."""

    has_begun = False


def end_before_others() -> None:
    """Make running queries stop at exit before the exit functions that are already registered.

    One of these is DuckDB's, which waits for each result that is being computed.
    """
    atexit.unregister(_end_all)
    atexit.register(_end_all)


@atexit.register
def _end_all() -> None:
    """End all threads: an engine that outlives the interpreter writes to standard error."""
    _Exit.has_begun = True
    tasks = list(_LIVE)
    for task in tasks:
        task.calls.put(None)
    end = time.monotonic() + _EXIT_SECONDS
    while (running := [each for each in tasks if not each.ended.is_set()]) and (
        time.monotonic() < end
    ):
        # The engine ignores an interrupt that comes before it starts: repeat it.
        for task in running:
            with suppress(Exception):
                task.interrupt()
        running[0].ended.wait(STEP_SECONDS)
    # Other threads of the program hold results of their queries until they notice the end.
    while _CALLERS - {threading.current_thread()} and time.monotonic() < end:
        time.sleep(STEP_SECONDS)
    if tasks:
        time.sleep(2 * STEP_SECONDS)
