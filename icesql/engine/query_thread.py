"""A thread of its own for each open result, so that the caller can always interrupt.

DuckDB holds the interpreter while it runs: a Ctrl-C in the same thread is only seen when the query
ends. So DuckDB works here, and the caller's thread waits in short steps in which it sees signals,
cancellation and the deadline.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

from icesql.context import QueryContext
from icesql.engine.memory_watch import MemoryWatch
from icesql.errors import InterfaceError, OperationalError, ScanLimitError
from icesql.stack import start

T = TypeVar("T")

# Memory grows by some 20 MB in a step.
STEP_SECONDS: Final = 0.01
# How long a cancelled call may take to come back before its thread is left to itself.
GRACE_SECONDS: Final = 0.12
LIMIT_SECONDS: Final = 2.0


class _Call(Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        self.function, self.done = function, threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


_Calls = queue.SimpleQueue[_Call[Any] | None]

# Live threads: how to interrupt the current call, and the queue that ends the thread.
_LIVE: Final[dict[threading.Thread, tuple[Callable[[], None], _Calls]]] = {}
# Threads that wait for a call.
_CALLERS: Final[set[threading.Thread]] = set()
_EXIT_SECONDS: Final = 1.0


class Worker:
    """Runs calls one after the other in one daemon thread.

    ``interrupt`` stops the call that runs, from any thread, and is harmless when none does.
    ``at_end`` runs last, in the thread; its errors are dropped. The thread ends when the worker is
    closed, or when nobody refers to it any more: so neither of the two may refer to the worker's
    owner.
    """

    def __init__(
        self, interrupt: Callable[[], None], at_end: Callable[[], None], watch: MemoryWatch
    ) -> None:
        self._interrupt, self._watch = interrupt, watch
        self._calls: _Calls = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_loop, args=(self._calls, at_end), name="icesql-query", daemon=True
        )
        _LIVE[self._thread] = interrupt, self._calls
        try:
            start(self._thread)
        except RuntimeError as error:
            del _LIVE[self._thread]
            raise OperationalError(f"cannot start a thread for the query: {error}") from error
        self._end = weakref.finalize(self, self._calls.put, None)
        self._end.atexit = False  # _end_all also waits

    def call(self, function: Callable[[], T], query: QueryContext) -> T:
        """``function()`` in the thread of this worker; its exceptions are raised here.

        Raises QueryCancelledError when the context is cancelled or its deadline passes, at most
        0.2 s later, even if the call is blocked; its thread then ends with the call. Raises
        InterfaceError when the worker is closed, or stayed behind in another process, and
        ScanLimitError when the process takes more memory than the query may have.
        """
        caller = threading.current_thread()
        _CALLERS.add(caller)
        try:
            with self._watch:
                return self._call(function, query)
        finally:
            _CALLERS.discard(caller)

    def _call(self, function: Callable[[], T], query: QueryContext) -> T:
        query.check()
        call = _Call(function)
        self._calls.put(call)
        try:
            while not call.done.wait(STEP_SECONDS):
                query.check()
                self._watch.check()
                if not self._thread.is_alive() and not call.done.is_set():
                    raise InterfaceError("the result is closed")
        except ScanLimitError:
            # Its memory is freed when it ends; until then the next query would be charged for it.
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
        # An interrupt that comes before the engine starts is forgotten by it: repeat.
        while not call.done.is_set() and time.monotonic() < end and self._thread.is_alive():
            self._interrupt()
            call.done.wait(0.005)

    def close(self) -> None:
        """End the thread after the call under way, without waiting. Harmless when repeated."""
        self._end()

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended, at most ``seconds``; whether it has."""
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)
        return not self._thread.is_alive()


def _loop(calls: _Calls, at_end: Callable[[], None]) -> None:
    """The body of the thread; it does not refer to the worker, so as not to keep it alive."""
    try:
        while (call := calls.get()) is not None:
            call.run()
            # Without this the last result lives until the next call.
            del call
    finally:
        _Call(at_end).run()
        _LIVE.pop(threading.current_thread(), None)


@atexit.register
def _end_all() -> None:
    """What an engine still holds when the interpreter is gone is reported on standard error."""
    threads = [thread for thread in list(_LIVE) if thread.is_alive()]
    for thread in threads:
        interrupt, calls = _LIVE.get(thread, (None, None))
        if interrupt is not None and calls is not None:
            with suppress(Exception):
                interrupt()
            calls.put(None)
    end = time.monotonic() + _EXIT_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    # Other threads of the program still hold what their queries gave, until they hear of the end.
    while _CALLERS - {threading.current_thread()} and time.monotonic() < end:
        time.sleep(STEP_SECONDS)
    if threads:
        time.sleep(2 * STEP_SECONDS)
