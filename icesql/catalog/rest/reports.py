"""ScanReports: sends scan reports to the catalog in the background; failures are ignored."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.catalog.rest.answers import Refusal
from icesql.catalog.table import Identifier
from icesql.errors import Error

# Further reports are dropped: no query depends on them.
_MOST_WAITING: Final = 64
_IDLE_SECONDS: Final = 2.0


class ScanReports:
    """Posts reports one after another in its own thread, which ends when idle.

    ``post`` sends one report, and may raise. After a refusal by the catalog no more are sent.
    """

    def __init__(self, post: Callable[[Identifier, Mapping[str, Any]], object]) -> None:
        self._post = post
        self._waiting: deque[tuple[Identifier, Mapping[str, Any]]] = deque()
        self._condition = threading.Condition()
        self._running = self._closed = False

    def put(self, identifier: Identifier, report: Mapping[str, Any]) -> None:
        """Send a report soon; never waits, never raises."""
        with self._condition:
            if self._closed or len(self._waiting) >= _MOST_WAITING:
                return
            self._waiting.append((identifier, report))
            if self._running:
                self._condition.notify()
                return
            thread = threading.Thread(target=self._loop, name="icesql-reports", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread is available, or the interpreter is shutting down
                self._closed = True
            else:
                self._running = True

    def close(self) -> None:
        """Stop sending, without waiting; waiting reports are dropped."""
        with self._condition:
            self._closed = True
            self._waiting.clear()
            self._condition.notify()

    def _loop(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._post(*found)
            except Refusal:
                self.close()
            except Error:
                continue  # the catalog was not reachable; the next report may get through

    def _next(self) -> tuple[Identifier, Mapping[str, Any]] | None:
        with self._condition:
            if not self._waiting and not self._closed:
                self._condition.wait(_IDLE_SECONDS)
            if self._waiting and not self._closed:
                return self._waiting.popleft()
            self._running = False
            return None


class TableReports:
    """Reports of scans of one table; pickled, for a worker, it becomes None."""

    def __init__(self, reports: ScanReports, identifier: Identifier) -> None:
        self._reports, self._identifier = reports, identifier

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def send(self, report: Mapping[str, Any]) -> None:
        """Send a scan report with Java's keys; the filter is left out, it contains values."""
        body = {**report, "report-type": "scan-report", "filter": True}
        self._reports.put(self._identifier, body)
