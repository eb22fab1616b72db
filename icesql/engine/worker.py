"""A thread of its own for each open result, so that the caller can always interrupt.

DuckDB holds the interpreter while it runs: a Ctrl-C in the same thread is only seen when the query
ends. So DuckDB works here, and the caller's thread waits in short steps in which it sees signals,
cancellation and the deadline.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from icesql.context import QueryContext

T = TypeVar("T")

STEP_SECONDS: Final = 0.05
# How long a cancelled call may take to come back before its thread is left to itself.
GRACE_SECONDS: Final = 0.12


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


class Worker:
    """Runs calls one after the other in one daemon thread.

    ``interrupt`` stops the call that runs, from any thread, and is harmless when none does.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._calls: queue.SimpleQueue[_Call[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="icesql-query", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            # Without this the last result lives until the next call.
            del call

    def call(self, function: Callable[[], T], context: QueryContext) -> T:
        """``function()`` in the thread of this worker; its exceptions are raised here.

        Raises QueryCancelledError when the context is cancelled or its deadline passes, at most
        0.2 s later, even when the call is blocked: its thread then ends by itself.
        """
        context.check()
        call = _Call(function)
        self._calls.put(call)
        try:
            while not call.done.wait(STEP_SECONDS):
                context.check()
        except BaseException:
            self._stop(call, context)
            raise
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[return-value]

    def _stop(self, call: _Call[Any], context: QueryContext) -> None:
        context.cancel.set()
        end = time.monotonic() + GRACE_SECONDS
        # An interrupt that comes before the engine starts is forgotten by it: repeat.
        while not call.done.is_set() and time.monotonic() < end:
            self._interrupt()
            call.done.wait(0.005)

    def post(self, function: Callable[[], None]) -> None:
        """Run ``function`` after the call under way, without waiting; its errors are dropped."""
        self._calls.put(_Call(function))

    def close(self) -> None:
        """End the thread after what was posted. Returns at once."""
        self._calls.put(None)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, at most ``seconds``."""
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)
