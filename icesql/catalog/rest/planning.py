"""Scan planning by the catalog: plan, poll, fetch the tasks, give up.

Source: Iceberg's OpenAPI specification, "planTableScan"; Java ``RESTTableScan``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec import Struct

from icesql.catalog.rest.answers import Answer, check_unrestricted
from icesql.catalog.rest.client import RestClient
from icesql.catalog.rest.storage_properties import StorageCredential
from icesql.catalog.table import CatalogPlan, Identifier
from icesql.context import Progress, QueryContext
from icesql.errors import CatalogError, Error
from icesql.iceberg.manifest.content_file import ScanTasks
from icesql.storage.credentials import redact
from icesql.storage.open import Storage
from icesql.storage.stores.pool import Request, request_pool

_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
PLAN: Final = f"POST {_TABLE}/plan"
_CANCEL: Final = f"DELETE {_TABLE}/plan/{{plan-id}}"

# Java's name for the time, and its default.
_TIMEOUT: Final = "rest-scan-planning.poll-timeout-ms"
_TIMEOUT_MS: Final = 300_000
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds
_AT_ONCE: Final = 8
_MOST_TASKS: Final = 1_000_000


class PlanAnswer(Struct, frozen=True, rename="kebab"):
    """The answer to a plan, or about one."""

    status: str
    plan_id: str | None = None
    storage_credentials: list[StorageCredential] | None = None
    error: dict[str, Any] | None = None


class PlanningServer(Protocol):
    """The part of a catalog that planning uses."""

    name: str
    given: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        """Those in force."""

    def has_endpoint(self, endpoint: str) -> bool | None:
        """Whether the server says that it has "METHOD /v1/…"; None when it lists nothing."""

    def request(self, method: str, identifier: Identifier, *below: str, **options: Any) -> Answer:
        """The answer to a request about a table."""

    @property
    def client(self) -> RestClient:
        """The client of the server."""


# Storage from the credentials of a plan, which has an id.
StorageOf = Callable[[list[StorageCredential], str | None], Storage]


class RestPlanning:
    """Has the scans of one table planned; in a worker's copy of a table there is none."""

    def __init__(
        self, catalog: PlanningServer, identifier: Identifier, storage_of: StorageOf
    ) -> None:
        self._catalog, self._identifier, self._storage_of = catalog, identifier, storage_of

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def plan(
        self, body: Mapping[str, Any], rows_wanted: int | None, query: QueryContext
    ) -> CatalogPlan:
        """As ``Planning.plan``. An abandoned plan is cancelled on the server."""
        return query.wait_for(lambda: _Plan(self, body, rows_wanted, query).made())

    # What one plan needs.

    def request(self, kind: Any, method: str, *below: str, **options: Any) -> Any:
        """One answer, decoded, and its body."""
        answer = self._catalog.request(method, self._identifier, *below, **options)
        check_unrestricted(answer.body, ".".join(self._identifier))
        return self._catalog.client.decoded(answer.body, kind), answer.body

    def decoded(self, body: bytes, kind: Any) -> Any:
        """A body as JSON of a type. Raises CatalogError."""
        return self._catalog.client.decoded(body, kind)

    def storage(self, credentials: list[StorageCredential], plan_id: str | None) -> Storage:
        """The storage that opens the files of a plan."""
        return self._storage_of(credentials, plan_id)

    def cancel(self, plan_id: str) -> None:
        """Tell the server that the plan is abandoned; failures are ignored."""
        if self._catalog.has_endpoint(_CANCEL) is not False:
            with suppress(Error):
                self._catalog.request("DELETE", self._identifier, "plan", plan_id)

    def seconds(self) -> float:
        """How long a plan may take."""
        value = self._catalog.properties.get(_TIMEOUT)
        try:
            found = float(value or _TIMEOUT_MS)
        except ValueError:
            found = -1.0
        if not found > 0:
            raise CatalogError(
                f"catalog {self._catalog.name}: {_TIMEOUT} is {value!r}, not a number above 0"
            )
        return found / 1000

    def problem(self, what: str) -> CatalogError:
        """The error of a catalog that could not plan, or gave an invalid response."""
        text = redact(what, self._catalog.properties)
        return CatalogError(
            f"catalog {self._catalog.name}: planning a scan of {'.'.join(self._identifier)}: {text}"
        )


class _Plan:
    """One plan on its way."""

    def __init__(
        self,
        planning: RestPlanning,
        body: Mapping[str, Any],
        rows_wanted: int | None,
        query: QueryContext,
    ) -> None:
        self._planning, self._request_body, self._query = planning, body, query
        self._rows_wanted = rows_wanted
        self._requests, self._is_cut = 0, False
        self._id: str | None = None

    def made(self) -> CatalogPlan:
        """The plan; one that fails, or is not wanted whole, is cancelled at the server."""
        try:
            plan = self._completed()
        except BaseException:
            self._cancel()
            raise
        if self._is_cut:
            self._cancel()
        return plan

    def _cancel(self) -> None:
        plan_id = self._id
        if plan_id is not None:
            # Nobody waits for this, either.
            request_pool().submit(lambda _: self._planning.cancel(plan_id), 0)

    def _completed(self) -> CatalogPlan:
        answer, body = self._request(
            PlanAnswer, "POST", "plan", body=self._request_body, again=True
        )
        self._id = answer.plan_id or None
        was_submitted = answer.status == "submitted"
        credentials = answer.storage_credentials
        if was_submitted:
            answer, body = self._polled()
            credentials = answer.storage_credentials or credentials
        if answer.status != "completed":
            raise self._planning.problem(self._status(answer))
        tasks: ScanTasks = self._planning.decoded(body, ScanTasks)
        answers = self._fetched(tasks)
        storage = self._planning.storage(credentials, self._id) if credentials else None
        count = self._requests
        description = f"{count} request{'' if count == 1 else 's'}"
        if was_submitted:
            description += ", asynchronously"
        return CatalogPlan(answers, storage, description)

    def _request(self, kind: Any, method: str, *below: str, **options: Any) -> Any:
        self._query.check()
        self._requests += 1
        return self._planning.request(kind, method, *below, **options)

    def _polled(self) -> tuple[PlanAnswer, bytes]:
        """The response of a finished plan."""
        if self._id is None:
            raise self._planning.problem("it was submitted without a plan-id")
        seconds = self._planning.seconds()
        until, wait = time.monotonic() + seconds, _FIRST_WAIT
        while True:
            answer, body = self._request(PlanAnswer, "GET", "plan", self._id)
            if answer.status != "submitted":
                return answer, body
            if time.monotonic() > until:
                raise self._planning.problem(
                    f"it took longer than {seconds:g} seconds; {_TIMEOUT} allows more"
                )
            self._query.cancel.wait(min(wait, max(until - time.monotonic(), 0.0)))
            wait = min(wait * 2, _LONGEST_WAIT)

    @staticmethod
    def _status(answer: PlanAnswer) -> str:
        error = answer.error or {}
        words = [str(error[key]) for key in ("type", "message") if error.get(key)]
        return ": ".join([f"status {answer.status[:60]}", *words])[:500]

    def _fetched(self, first: ScanTasks) -> tuple[ScanTasks, ...]:
        """All answers with tasks, those of plan tasks in the order in which they were named."""
        answers, seen, rows = [first], set[str](), _rows(first)
        waiting: deque[str] = deque()
        running: deque[Request[ScanTasks]] = deque()
        pool = request_pool()

        def name(tasks: ScanTasks) -> None:
            for each in tasks.plan_tasks or ():
                if each in seen or len(seen) > _MOST_TASKS:
                    raise self._planning.problem("its list of plan tasks does not end")
                seen.add(each)
                waiting.append(each)

        def fetch(task: str) -> Callable[[Any], ScanTasks]:
            return lambda _: self._tasks_of(task)

        name(first)
        try:
            while waiting or running:
                if self._rows_wanted is not None and rows >= self._rows_wanted:
                    self._is_cut = True
                    break
                while waiting and len(running) < _AT_ONCE:
                    running.append(pool.submit(fetch(waiting.popleft()), 0, self._query))
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

    def _tasks_of(self, task: str) -> ScanTasks:
        body = {"plan-task": task}
        found: ScanTasks = self._request(ScanTasks, "POST", "tasks", body=body, again=True)[0]
        return found


def _rows(answer: ScanTasks) -> int:
    """The rows of all files without deletes; the others may have none."""
    return sum(
        max(task.data_file.record_count, 0)
        for task in answer.file_scan_tasks or ()
        if not task.delete_file_references
    )
