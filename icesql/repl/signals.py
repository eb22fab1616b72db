"""Turn signals into exceptions, so that unfinished work is undone before the process ends."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_AGAIN_SECONDS: Final = 0.01


class Signalled(SystemExit):
    """A signal to end the process; raised in the main thread at whatever point it is."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def unwind_on_signals() -> None:
    """Raise ``Signalled`` at SIGTERM and SIGHUP, unless they are ignored, as nohup wants it.

    A second one ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _unwind)


def _unwind(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Signalled(number)


def unwind_between_callbacks(running: Callable[[], AbstractEventLoop | None]) -> None:
    """Let the signals of ``unwind_on_signals`` wait for the end of a callback of a running loop.

    Raised inside of the loop's own code, the exception could lose a task's wake-up, and the end of
    the loop waits for all tasks.
    """

    def unwind(number: int, _: object) -> None:
        loop = running()
        if loop is None:
            _unwind(number, None)
        else:
            signal.signal(number, signal.SIG_DFL)
            loop.call_soon_threadsafe(_raise, Signalled(number))

    if threading.current_thread() is not threading.main_thread():
        return
    for number in signal.valid_signals():
        if signal.getsignal(number) is _unwind:
            signal.signal(number, unwind)


def _raise(error: Signalled) -> None:
    raise error


def raise_swallowed() -> None:
    """Raise the exception of a signal again if Python has dropped it, as in a finalizer."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        return
    others = sys.unraisablehook

    def unraisable(dropped: Any) -> None:
        error = dropped.exc_value
        if not isinstance(error, KeyboardInterrupt | Signalled):
            others(dropped)
            return

        def again(*_: object) -> None:
            raise error.with_traceback(None)

        signal.signal(signal.SIGALRM, again)
        # Later, since an exception inside of this call would be dropped as well.
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    sys.unraisablehook = unraisable
