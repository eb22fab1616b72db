"""Scans that the catalog plans: at once, later, in pages, given up, and wrongly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.context import QueryContext
from icesql.errors import (
    CatalogError,
    CorruptFileError,
    QueryCancelledError,
)
from tests.catalog.planning_server import PlanningServer
from tests.catalog.rest_server import ORDERS, rest
from tests.property.test_histories import problems
from tests.rows import rows_of
from tests.scenes import Scene, Session, scenes
from tests.sessions import fetched
from tests.waits import wait_until
from tests.writer.history import History


@pytest.fixture
def planner(warehouse: Path) -> Iterator[PlanningServer]:
    """A server that plans the scans of ``shop.orders`` and the others of the warehouse."""
    made = PlanningServer()
    for folder in warehouse.rglob("metadata"):
        publish(made, folder.parent.name, max(folder.glob("*.metadata.json")))
    yield made
    made.close()


def publish(server: PlanningServer, name: str, path: Path) -> None:
    server.tables["shop", name] = {
        "metadata-location": f"file://{path}",
        "metadata": json.loads(path.read_text()),
        "config": {},
    }


def connected(server: PlanningServer, **properties: str) -> icesql.Connection:
    return icesql.connect("lake", uri=server.uri, properties=properties)


def refused(
    server: PlanningServer,
    kind: type[icesql.Error],
    told: str,
    sql: str = "SELECT * FROM shop.orders",
    **properties: str,
) -> None:
    """Assert that a query fails with this error."""
    with connected(server, **properties) as connection, pytest.raises(kind, match=told):
        fetched(connection, sql)


@pytest.mark.parametrize(("later", "page", "fan"), [(0, None, 1), (0, 1, 1), (1, 2, 3)])
def test_rows_are_those_of_ones_own_planning(
    planner: PlanningServer, warehouse: Path, later: int, page: int | None, fan: int
) -> None:
    planner.later, planner.page, planner.fan = later, page, fan
    own = icesql.connect("own", uri=f"sqlite:///{warehouse}/catalog.db")
    with connected(planner) as connection, own:
        for sql in (
            "SELECT count(*) FROM shop.orders",
            "SELECT * FROM shop.orders ORDER BY ALL",
            "SELECT * FROM shop.orders VERSION AS OF 'opening' ORDER BY ALL",
            "SELECT id, _file IS NULL, _partition FROM shop.orders WHERE region = 'eu' ORDER BY id",
            "SELECT min(id), max(id) FROM shop.orders",
            "SELECT * FROM shop.types ORDER BY ALL",
        ):
            assert fetched(connection, sql) == fetched(own, sql)
    assert not planner.cancelled


class Planned(Session):
    """A connection to a catalog that plans its scans."""

    def __init__(self, server: PlanningServer) -> None:
        super().__init__(None)
        self.server = server

    def connect(self, *words: str) -> None:
        """Connect with these properties."""
        self.con = connected(self.server, **dict(each.split("=") for each in words))

    def close(self) -> None:
        if self.con is not None:
            self.con.close()

    def later(self, times: str) -> None:
        """A plan is ready after this number of polls."""
        self.server.later = int(times)

    def page(self, tasks: str) -> None:
        self.server.page = int(tasks)

    def table(self, text: str) -> None:
        self.server.tables[ORDERS] |= json.loads(text)

    def location(self, place: str) -> None:
        self.server.tables[ORDERS]["metadata"]["location"] = place

    def config(self, text: str) -> None:
        self.server.config |= json.loads(text)

    def answers(self, text: str) -> None:
        """Add members to each response."""
        own = json.loads(text)
        self.server.change = lambda answer: answer | own

    def residuals(self, text: str) -> None:
        """Set the residual filter of each file."""

        def change(answer: dict[str, Any]) -> None:
            for task in answer["file-scan-tasks"]:
                task["residual-filter"] = json.loads(text)

        self.server.change = change

    def planned(self, count: str) -> None:
        assert len(self.server.planned) == int(count)

    def request(self, name: str, text: str = "") -> None:
        """A member of the last plan request; "" means that it is missing. Lists are sorted."""
        found = self.server.planned[-1]
        if text:
            value = found[name]
            assert (sorted(value) if isinstance(value, list) else value) == json.loads(text)
        assert (name in found) == bool(text)

    def never_polls(self) -> None:
        assert not any(way == "GET" and "/plan" in path for way, path, _, _ in self.server.asked)

    def lacks(self, text: str) -> None:
        """No line of the result begins with this text."""
        assert not any(str(line).strip().startswith(text) for (line,) in self.answer)

    def cancelled(self) -> None:
        wait_until(lambda: self.server.cancelled)


@scenes(__file__, "scan_planning.scenes")
def test_what_the_catalog_plans(scene: Scene, planner: PlanningServer) -> None:
    with closing(Planned(planner)) as planned:
        planned.play(scene)


def test_a_limit_asks_for_no_more_pages_than_it_takes(planner: PlanningServer) -> None:
    planner.page = 1
    with connected(planner) as connection:
        assert len(fetched(connection, "SELECT * FROM shop.customers LIMIT 1")) == 1
        planner.asked_tasks.clear()
        assert len(fetched(connection, "SELECT * FROM shop.orders LIMIT 1")) == 1
        assert len(planner.asked_tasks) < 8
        wait_until(lambda: planner.cancelled)


@pytest.mark.parametrize("seed", [260, 300])
def test_deletes_apply_to_the_files_that_the_catalog_says(tmp_path: Path, seed: int) -> None:
    """Tables of every kind of delete, without one sequence number, against the model's rows."""
    history = History(seed, tmp_path)
    with closing(PlanningServer()) as server, connected(server) as connection:
        server.page = 3
        publish(server, "t", Path(history.metadata_path))
        connection.execute("USE shop")
        found = [
            each for reader in ("auto", "arrow") for each in problems(history, connection, reader)
        ]
        assert found == [], "\n".join(found)
        assert server.planned


# ---------------------------------------------------------------------- who plans


# ---------------------------------------------------------------------- a stranger's words


@rows_of(__file__, "contradictions_of_a_plan.tsv", "task", "file", "deletes", "told")
def test_an_answer_that_contradicts_itself_is_told(
    planner: PlanningServer, task: str, file: str, deletes: str, told: str
) -> None:
    def change(answer: dict[str, Any]) -> None:
        first = answer["file-scan-tasks"][0]
        if task == "twice":
            answer["file-scan-tasks"].append(first)
        else:
            first |= json.loads(task)
        first["data-file"] |= json.loads(file)
        if found := json.loads(deletes):
            answer["delete-files"] = [first["data-file"] | each for each in found]

    planner.change = change
    refused(planner, CorruptFileError, rf"the catalog's plan for shop\.orders: .*{told}")


@rows_of(__file__, "no_plans.tsv", "how", "members", "told")
def test_an_answer_that_is_no_plan_is_told(
    planner: PlanningServer, how: str, members: str, told: str
) -> None:
    own = json.loads(members)
    planner.change = lambda answer: answer | own if how == "with" else own
    refused(planner, CatalogError, told)


# ---------------------------------------------------------------------- giving up


@pytest.mark.parametrize("hangs", ["POST", "GET", "never ready"])
def test_a_plan_that_does_not_come_is_left_at_once(planner: PlanningServer, hangs: str) -> None:
    planner.later = 1_000_000
    released, reached = threading.Event(), threading.Event()
    answer = planner.catalog

    def slow(request: Any, parts: list[str], *others: Any) -> None:
        if "plan" in parts and request.command == (hangs if hangs == "POST" else "GET"):
            reached.set()
            if hangs != "never ready":
                released.wait(60)
        answer(request, parts, *others)

    planner.catalog = slow  # type: ignore[method-assign]
    try:
        with connected(planner) as connection:
            fetched(connection, "SHOW TABLES FROM shop")
            cursor = connection.cursor()
            threading.Thread(target=lambda: (reached.wait(60), cursor.cancel())).start()
            with pytest.raises(QueryCancelledError):
                cursor.execute("SELECT * FROM shop.orders").fetchall()
            released.set()
            if hangs != "POST":  # the connection is closed before the plan has a name
                wait_until(lambda: planner.cancelled)
    finally:
        released.set()


def test_an_overloaded_server_is_asked_again(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        fetched(connection, "SHOW TABLES FROM shop")
        answer = planner.catalog

        def busy(request: Any, parts: list[str], *others: Any) -> None:
            if parts[-1] == "plan" and not planner.planned:
                planner.planned.append({})
                planner.send(request, 503, {"error": {"message": "busy"}})
                return
            answer(request, parts, *others)

        planner.catalog = busy  # type: ignore[method-assign]
        assert fetched(connection, "SELECT count(*) FROM shop.orders") == [(39,)]


# ---------------------------------------------------------------------- credentials


def test_the_credentials_of_a_plan_open_its_files(planner: PlanningServer) -> None:
    """They are renewed with the plan's id; the table's own credentials are not used."""
    vended = {"prefix": "file:", "config": {"s3.access-key-id": "of the plan"}}
    planner.change = lambda answer: {**answer, "storage-credentials": [vended]}
    with closing(rest(planner)) as catalog:
        table = catalog.load(ORDERS)
        assert table.planning is not None
        snapshot = table.metadata.current_snapshot_id
        asked = {"snapshot-id": snapshot, "use-snapshot-schema": False, "select": []}
        plan = table.planning.plan(asked, None, QueryContext())
    assert plan.storage is not None
    assert plan.storage.properties["s3.access-key-id"] == "of the plan"
    assert plan.storage.lease is not None
    sent = [headers for method, path, _, headers in planner.asked if path.endswith("/plan")]
    assert sent[0]["x-iceberg-access-delegation"] == "vended-credentials"
