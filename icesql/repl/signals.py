"""SIGTERM and SIGHUP end the command as an exception does: what is half done is undone first."""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from typing import Any, Final

_AGAIN_SECONDS: Final = 0.1


class Signalled(SystemExit):
    """A signal asked the process to end; raised in the main thread, wherever that is."""

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
            signal.signal(number, _Unwinding().begin)


class _Unwinding:
    """Raises the exception of one signal, again where something has swallowed it.

    Python drops what is raised inside of a finalizer, and a signal may come there.
    """

    def __init__(self) -> None:
        self._raised: weakref.ref[Signalled] | None = None

    def begin(self, number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        others = sys.unraisablehook

        def unraisable(dropped: Any) -> None:
            if not isinstance(dropped.exc_value, Signalled):
                others(dropped)

        sys.unraisablehook = unraisable
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda *_: self._raise(number))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
        self._raise(number)

    def _raise(self, number: int) -> None:
        if self._raised is not None and self._raised() is not None:
            return  # it is on its way
        error = Signalled(number)
        self._raised = weakref.ref(error)
        try:
            raise error
        finally:
            del error  # this frame would keep it alive
