"""Scans of a REST catalog's tables: the catalog plans them, and gets reports of them.

A plan is requested and polled, its tasks are fetched, and it is cancelled. Source: Iceberg's
OpenAPI specification, "planTableScan"; Java ``RESTTableScan``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from icesql.catalog.rest.answers import Refusal, check_unrestricted
from icesql.catalog.rest.server import RestServer
from icesql.catalog.rest.storage_properties import StorageCredential
from icesql.catalog.table import CatalogPlan, Identifier
from icesql.context import Progress, QueryContext
from icesql.errors import CatalogError, Error, OperationalError
from icesql.frozen import Frozen
from icesql.iceberg.rest_json import ScanTasks
from icesql.storage.credentials import redact
from icesql.storage.open import Storage
from icesql.storage.stores.pool import Request, request_pool

_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
PLAN: Final = f"POST {_TABLE}/plan"
_STATE: Final = f"GET {_TABLE}/plan/{{plan-id}}"
_CANCEL: Final = f"DELETE {_TABLE}/plan/{{plan-id}}"
_TASKS: Final = f"POST {_TABLE}/tasks"

# Java's name of the timeout, and its default.
_TIMEOUT: Final = "rest-scan-planning.poll-timeout-ms"
_TIMEOUT_MS: Final = 300_000
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds
_AT_ONCE: Final = 8
_MOST_TASKS: Final = 1_000_000


class PlanAnswer(Frozen, rename="kebab"):
    """The response to a request for a plan, or for the state of one."""

    status: str
    plan_id: str | None = None
    storage_credentials: list[StorageCredential] | None = None
    error: dict[str, Any] | None = None


# Makes a storage from the credentials and the id of a plan.
StorageOf = Callable[[list[StorageCredential], str | None], Storage]


class RestPlanning(Frozen):
    """Requests plans for scans of one table; pickled, for a worker, it becomes None.

    ``storage_of`` makes the storage that opens the files of a plan.
    """

    server: RestServer
    identifier: Identifier
    storage_of: StorageOf

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def plan(
        self, body: Mapping[str, Any], rows_wanted: int | None, query: QueryContext
    ) -> CatalogPlan:
        """As ``Planning.plan``. An abandoned plan is cancelled on the server."""
        return query.wait_for(lambda: _Plan(self, body, rows_wanted, query).made())


class _Plan:
    """One plan while it is being made."""

    def __init__(
        self,
        planning: RestPlanning,
        body: Mapping[str, Any],
        rows_wanted: int | None,
        query: QueryContext,
    ) -> None:
        self._server, self._identifier = planning.server, planning.identifier
        self._storage_of, self._request_body = planning.storage_of, body
        self._rows_wanted, self._query = rows_wanted, query
        self._requests, self._is_cut = 0, False
        self._id: str | None = None

    def made(self) -> CatalogPlan:
        """The plan; a failed or only partly fetched plan is cancelled on the server."""
        try:
            plan = self._completed()
        except BaseException:
            self._cancel()
            raise
        if self._is_cut:
            self._cancel()
        return plan

    def _cancel(self) -> None:
        """Cancel the plan in the background; the query does not wait for it."""
        server, plan_id = self._server, self._id

        def cancel(_: Any) -> None:
            if server.has_endpoint(_CANCEL) is not False:
                with suppress(Error):
                    server.request(_CANCEL, self._identifier, str(plan_id))

        if plan_id is not None:
            request_pool().submit(cancel, 0)

    def _completed(self) -> CatalogPlan:
        answer, body = self._request(PlanAnswer, PLAN, body=self._request_body, again=True)
        self._id = answer.plan_id or None
        was_submitted = answer.status == "submitted"
        credentials = answer.storage_credentials
        if was_submitted:
            answer, body = self._polled()
            credentials = answer.storage_credentials or credentials
        if answer.status != "completed":
            error = answer.error or {}
            words = [str(error[key]) for key in ("type", "message") if error.get(key)]
            status = f"status {answer.status[:60]}"
            raise self._problem(": ".join([status, *words])[:500])
        answers = self._fetched(self._server.client.decoded(body, ScanTasks))
        storage = self._storage_of(credentials, self._id) if credentials else None
        count = self._requests
        how = ", asynchronously" if was_submitted else ""
        return CatalogPlan(answers, storage, f"{count} request{'' if count == 1 else 's'}{how}")

    def _request(self, kind: Any, endpoint: str, *more: str, **options: Any) -> Any:
        """Send a request; return the decoded response and its body."""
        self._query.check()
        self._requests += 1
        answer = self._server.request(endpoint, self._identifier, *more, **options)
        check_unrestricted(answer.body, ".".join(self._identifier))
        return self._server.client.decoded(answer.body, kind), answer.body

    def _polled(self) -> tuple[PlanAnswer, bytes]:
        """The response of a finished plan."""
        if self._id is None:
            raise self._problem("it was submitted without a plan-id")
        seconds = self._seconds()
        until, wait = time.monotonic() + seconds, _FIRST_WAIT
        while True:
            answer, body = self._request(PlanAnswer, _STATE, self._id)
            if answer.status != "submitted":
                return answer, body
            if time.monotonic() > until:
                raise self._problem(
                    f"it took longer than {seconds:g} seconds; {_TIMEOUT} allows more"
                )
            self._query.cancel.wait(min(wait, max(until - time.monotonic(), 0.0)))
            wait = min(wait * 2, _LONGEST_WAIT)

    def _seconds(self) -> float:
        """The timeout for polling a plan, in seconds. Raises CatalogError for an invalid one."""
        value = self._server.properties.get(_TIMEOUT)
        try:
            found = float(value or _TIMEOUT_MS)
        except ValueError:
            found = -1.0
        if not found > 0:
            raise CatalogError(
                f"catalog {self._server.name}: {_TIMEOUT} is {value!r}, not a number above 0"
            )
        return found / 1000

    def _problem(self, what: str) -> CatalogError:
        """The error for a catalog that could not plan, or sent an invalid response."""
        text = redact(what, self._server.properties)
        return CatalogError(
            f"catalog {self._server.name}: planning a scan of {'.'.join(self._identifier)}: {text}"
        )

    def _fetched(self, first: ScanTasks) -> tuple[ScanTasks, ...]:
        """All responses with tasks, in the order in which their plan tasks were listed."""
        answers, seen, rows = [first], set[str](), _rows(first)
        waiting: deque[str] = deque()
        running: deque[Request[ScanTasks]] = deque()
        pool = request_pool()

        def name(tasks: ScanTasks) -> None:
            for each in tasks.plan_tasks or ():
                if each in seen or len(seen) > _MOST_TASKS:
                    raise self._problem("its list of plan tasks does not end")
                seen.add(each)
                waiting.append(each)

        name(first)
        try:
            while waiting or running:
                if self._rows_wanted is not None and rows >= self._rows_wanted:
                    self._is_cut = True
                    break
                while waiting and len(running) < _AT_ONCE:
                    fetch = partial(self._tasks_of, waiting.popleft())
                    running.append(pool.submit(fetch, 0, self._query))
                found = running[0].result(self._query)
                running.popleft()
                answers.append(found)
                rows += _rows(found)
                name(found)
                self._query.report(Progress("planning", len(answers), len(seen) + 1))
        finally:
            for request in running:
                pool.leave(request)
        return tuple(answers)

    def _tasks_of(self, task: str, _: Request[ScanTasks]) -> ScanTasks:
        body = {"plan-task": task}
        found: ScanTasks = self._request(ScanTasks, _TASKS, body=body, again=True)[0]
        return found


def _rows(answer: ScanTasks) -> int:
    """The rows of all files without deletes; files with deletes may have no rows left."""
    return sum(
        max(task.data_file.record_count, 0)
        for task in answer.file_scan_tasks or ()
        if not task.delete_file_references
    )


# ------------------------------------------------------------------ reports in the background


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
