"""Threads with a large stack, for recursive work when the caller's stack may be full."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Final, TypeVar

T = TypeVar("T")

_STACK_BYTES: Final = 16 << 20
_starting: Final = threading.Lock()


def with_deep_stack(function: Callable[[], T], *, deep: bool = False) -> T:
    """``function()``, on a stack of its own when it is ``deep`` or the caller's stack is full.

    A program may call from deep in its own recursion or from a thread of a small stack. Raises
    RecursionError when a stack of its own is not enough either.
    """
    if not deep:
        try:
            return function()
        except RecursionError:
            pass
    return _in_thread(function)


def _in_thread(function: Callable[[], T]) -> T:
    values: list[T] = []
    errors: list[BaseException] = []

    context = copy_context()

    def run() -> None:
        try:
            values.append(context.run(function))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="icesql-deep", daemon=True)
    start(thread)
    thread.join()
    if errors:
        error = errors.pop()
        try:
            raise error
        finally:
            # The traceback holds this frame: without this they keep each other alive.
            del error
    return values[0]


def start(thread: threading.Thread) -> None:
    """Start a thread with a large stack, whatever ``threading.stack_size`` is.

    The engine walks expressions 1,000 deep on it, and a stack that is full ends the process.
    """
    if sys.platform == "win32":
        thread.start()
        return
    with _starting:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
