"""ScanReports: sends scan reports to the catalog in the background; failures are ignored."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from icesql.catalog.rest.answers import Refusal
from icesql.catalog.table import Identifier
from icesql.errors import Error, OperationalError
from icesql.frozen import Frozen
from icesql.storage.stores.pool import request_pool

# Further reports are dropped: no query depends on them.
_MOST_WAITING: Final = 64


class ScanReports:
    """Posts reports one after another, in a thread of the request pool.

    ``post`` sends one report, and may raise. After a refusal by the catalog no more are sent.
    """

    def __init__(self, post: Callable[[Identifier, Mapping[str, Any]], object]) -> None:
        self._post = post
        self._waiting: deque[tuple[Identifier, Mapping[str, Any]]] = deque()
        self._lock = threading.Lock()
        self._running = self._closed = False

    def put(self, identifier: Identifier, report: Mapping[str, Any]) -> None:
        """Send a report soon; never waits, never raises."""
        with self._lock:
            if self._closed or len(self._waiting) >= _MOST_WAITING:
                return
            self._waiting.append((identifier, report))
            if not self._running:
                with suppress(OperationalError):  # no thread is available
                    request_pool().submit(self._send, 0)
                    self._running = True

    def close(self) -> None:
        """Stop sending, without waiting; waiting reports are dropped."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _send(self, _: object) -> None:
        while (found := self._next()) is not None:
            try:
                self._post(*found)
            except Refusal:
                self.close()
            except Error:
                continue  # the catalog was not reachable; the next report may get through

    def _next(self) -> tuple[Identifier, Mapping[str, Any]] | None:
        with self._lock:
            self._running = bool(self._waiting)
            return self._waiting.popleft() if self._running else None


class TableReports(Frozen):
    """Reports of scans of one table; pickled, for a worker, it becomes None."""

    reports: ScanReports
    identifier: Identifier

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def send(self, report: Mapping[str, Any]) -> None:
        """Send a scan report with Java's keys; the filter is left out, it contains values."""
        body = {**report, "report-type": "scan-report", "filter": True}
        self.reports.put(self.identifier, body)
