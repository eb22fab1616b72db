"""Ends requests at their deadline, or when their caller is cancelled."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from icesql.context import end_with_call

_sending: Final = threading.local()


class Ending:
    """A block with one request; ``is_over`` after ``seconds`` or cancellation by its caller.

    The connection is shut down then: a read of headers or body fails at once.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._sockets: list[Any] = []
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True

    def end(self) -> None:
        """End the request, from any thread."""
        self.is_over = True
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def watch(self, connected: Any) -> None:
        """Register the socket of the request's connection."""
        self._sockets.append(connected)
        if self.is_over:
            self.end()

    def __enter__(self) -> Ending:
        _sending.ending = self
        end_with_call(self.end)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        end_with_call(None)
        _sending.ending = None


class _Watched(HTTPConnection):
    def getresponse(self) -> Any:
        ending = getattr(_sending, "ending", None)
        if ending is not None and self.sock is not None:
            ending.watch(self.sock)
        return super().getresponse()


class _WatchedSecure(_Watched, HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Watched


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedSecure


def watched(manager: urllib3.PoolManager) -> urllib3.PoolManager:
    """The pool manager, changed so that an ``Ending`` can end its requests."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager
