"""RequestPool: the requests of a process to object stores, many at once and bounded in bytes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from icesql.context import QueryContext
from icesql.errors import OperationalError, QueryCancelledError

T = TypeVar("T")

MOST_AT_ONCE: Final = 64
# The most threads that hang in abandoned requests; more mean that a store is dead.
_MOST_LEFT: Final = 256
_IDLE_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 0.02
_MOST_BYTES: Final = 256 << 20


class Request(Generic[T]):
    """One call in the pool. ``left`` is set once it is abandoned."""

    def __init__(self, function: Callable[[Request[T]], T], size: int, most_bytes: int) -> None:
        self.function: Callable[[Request[T]], T] | None = function
        self.size, self.most_bytes = size, most_bytes
        self.left, self._done = threading.Event(), threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Call the function, unless the request is abandoned."""
        function, self.function = self.function, None
        try:
            if function is not None and not self.left.is_set():
                self._value = function(self)
        except BaseException as error:
            self._error = error
        self._done.set()

    def give(self, value: T) -> None:
        """Pass the value to the waiting threads, while the function goes on."""
        self._value = value
        self._done.set()

    @property
    def is_done(self) -> bool:
        """Whether there is a value or an error."""
        return self._done.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether there is an error instead of a value."""
        return self._error is not None

    def result(self, query: QueryContext | None) -> T:
        """The result of the call, or its exception.

        Raises QueryCancelledError when ``query`` ends first, or the request was left.
        """
        while not self._done.wait(_STEP_SECONDS):
            if query is not None:
                query.check()
            if self.left.is_set():
                raise QueryCancelledError("the query has ended")
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


class RequestPool:
    """Up to 64 daemon threads, started on demand and ended when idle.

    A thread that hangs in an abandoned request is not counted any more.
    """

    def __init__(self) -> None:
        self._waiting: deque[Request[Any]] = deque()
        self._running: set[Request[Any]] = set()
        self._condition = threading.Condition()
        self._threads = self._idle = self._bytes = 0

    def submit(
        self, function: Callable[[Request[T]], T], size: int, query: QueryContext | None = None
    ) -> Request[T]:
        """Call ``function`` with its request soon; ``size`` is the bytes that it will hold.

        Raises OperationalError when too many requests hang.
        """
        limit = _MOST_BYTES
        if query is not None:
            limit = min(limit, max(query.settings.memory_limit // 8, 1))
        request = Request(function, size, limit)
        with self._condition:
            self._waiting.append(request)
            if self._idle:
                self._condition.notify()
            if len(self._waiting) > self._idle:  # those that were woken are still counted as idle
                self._start_one()
        return request

    def leave(self, request: Request[Any]) -> None:
        """Abandon a request."""
        request.left.set()
        with self._condition:
            if request in self._waiting:
                self._waiting.remove(request)

    def _start_one(self) -> None:
        stuck = sum(each.left.is_set() for each in self._running)
        if self._threads - stuck >= MOST_AT_ONCE:
            return
        if stuck >= _MOST_LEFT:
            self._waiting.pop()
            raise OperationalError(
                f"{stuck} abandoned requests still wait for a store that does not answer; "
                "try again when it does"
            )
        try:
            threading.Thread(target=self._loop, name="icesql-store", daemon=True).start()
        except RuntimeError as error:
            if self._threads:
                return  # the existing threads will run it
            self._waiting.pop()
            raise OperationalError(f"cannot start a thread for a request: {error}") from error
        self._threads += 1

    def _loop(self) -> None:
        while (request := self._next()) is not None:
            request.run()
            with self._condition:
                self._running.discard(request)
                self._bytes -= request.size
                if self._waiting:
                    self._condition.notify()

    def _next(self) -> Request[Any] | None:
        with self._condition:
            while True:
                if self._waiting and self._fits(self._waiting[0]):
                    request = self._waiting.popleft()
                    self._bytes += request.size
                    self._running.add(request)
                    return request
                self._idle += 1
                woken = self._condition.wait(_IDLE_SECONDS)
                self._idle -= 1
                if not woken and not self._waiting:
                    self._threads -= 1
                    return None

    def _fits(self, request: Request[Any]) -> bool:
        held = sum(each.size for each in self._running if each.left.is_set())
        used = self._bytes - held
        return used <= 0 or used + request.size <= request.most_bytes


_pool = RequestPool()


def request_pool() -> RequestPool:
    """The pool of this process."""
    return _pool


def _renew() -> None:
    global _pool
    _pool = RequestPool()  # a fork has none of its parent's threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
