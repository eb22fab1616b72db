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
    UnsupportedTableError,
)
from tests.catalog.planning_server import PlanningServer
from tests.catalog.rest_server import ORDERS, rest
from tests.property.test_histories import problems
from tests.rows import rows_of
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
    """A query fails with such an error."""
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


def test_the_request_says_what_is_read(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        sql = "SELECT id FROM shop.orders VERSION AS OF 'opening' WHERE region = 'eu' AND id < 20"
        fetched(connection, sql)
        fetched(connection, "SELECT * FROM shop.orders")
    asked, whole = planner.planned
    # Nothing is chosen of all columns: Java's server knows lists of variants by no name.
    assert "select" not in whole
    assert asked["use-snapshot-schema"] is False
    assert asked["case-sensitive"] is True
    assert set(asked["select"]) == {"id", "region"}
    assert asked["filter"] == {
        "type": "and",
        "left": {"type": "eq", "term": "region", "value": "eu"},
        "right": {"type": "lt", "term": "id", "value": 20},
    }
    assert not any(method == "GET" and "/plan" in path for method, path, _, _ in planner.asked)


def test_explain_says_that_the_catalog_planned(planner: PlanningServer) -> None:
    planner.later, planner.page = 1, 1
    with connected(planner) as connection:
        lines = fetched(connection, "EXPLAIN SELECT * FROM shop.orders")
    told = [line.strip() for (line,) in lines]
    files = next(line for line in told if line.startswith("data files:"))
    count = int(files.split()[2])
    assert files == f"data files: {count} to read"
    # One to plan, one to poll, one for each further page.
    assert f"planned by: the catalog ({count + 1} requests, asynchronously)" in told
    assert not any(line.startswith("manifests:") for line in told)


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


@pytest.mark.parametrize(
    ("catalog", "table", "planned"),
    [
        (None, None, False),
        ("server", None, True),
        ("SERVER", "client", False),
        (None, "server", True),
        ("client", "server", True),
    ],
)
def test_the_word_of_the_server_about_a_table_counts_first(
    planner: PlanningServer, catalog: str | None, table: str | None, planned: bool
) -> None:
    planner.config["overrides"].clear()
    if table is not None:
        planner.tables[ORDERS]["config"] = {"scan-planning-mode": table}
    with connected(planner, **({"scan-planning-mode": catalog} if catalog else {})) as connection:
        assert fetched(connection, "SELECT count(*) FROM shop.orders") == [(39,)]
    assert bool(planner.planned) is planned


def test_a_server_without_the_endpoint_and_a_mode_of_no_meaning_are_told(
    planner: PlanningServer,
) -> None:
    planner.tables[ORDERS]["config"] = {"scan-planning-mode": "sometimes"}
    refused(planner, CatalogError, "'sometimes', not client or server")
    planner.tables[ORDERS]["config"] = {}
    planner.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    refused(planner, CatalogError, "planTableScan")


@pytest.mark.parametrize("column", ["_last_updated_sequence_number", "_snapshot_id"])
def test_what_a_plan_has_no_values_for_is_refused_by_name(
    planner: PlanningServer, column: str
) -> None:
    told = f"{column}.* where the catalog plans the scans"
    refused(planner, UnsupportedTableError, told, f"SELECT {column} FROM shop.orders")


def test_full_verification_is_refused(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        connection.execute("SET verify = 'full'")
        with pytest.raises(UnsupportedTableError, match="verify = full where the catalog plans"):
            connection.execute("SELECT * FROM shop.orders")


# ---------------------------------------------------------------------- a stranger's words


def test_a_plan_that_restricts_what_may_be_read_is_refused_by_name(planner: PlanningServer) -> None:
    restricted = {"read-restrictions": {"required-row-filter": {"type": "eq"}}}
    planner.change = lambda answer: answer | restricted
    refused(planner, UnsupportedTableError, r"restrictions.*required-row-filter\), which")


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


def test_a_filter_of_the_catalogs_own_is_refused(planner: PlanningServer) -> None:
    """Rows that a policy hides: reading them anyway, or hiding what was asked for, is wrong."""
    hidden = {"type": "eq", "term": "region", "value": "eu"}

    def change(answer: dict[str, Any]) -> None:
        for task in answer["file-scan-tasks"]:
            task["residual-filter"] = hidden

    planner.change = change
    with connected(planner) as connection:
        with pytest.raises(UnsupportedTableError, match="a filter of the catalog's own"):
            connection.execute("SELECT * FROM shop.orders")
        # It says no more than the query does.
        sql = "SELECT count(*) FROM shop.orders WHERE region = 'eu' AND id > 0"
        assert fetched(connection, sql) != [(0,)]


def test_a_file_of_this_machine_is_not_read_for_a_remote_table(planner: PlanningServer) -> None:
    planner.tables[ORDERS]["metadata"]["location"] = "s3://bucket/orders"
    keys = {"s3.region": "x", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    refused(planner, CorruptFileError, "is on this machine, the table is not", **keys)


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


def test_a_plan_that_takes_too_long_is_told_and_cancelled(planner: PlanningServer) -> None:
    planner.later = 1_000_000
    name = "rest-scan-planning.poll-timeout-ms"
    with connected(planner, **{name: "300"}) as connection:
        with pytest.raises(CatalogError, match=r"took longer than 0\.3 seconds"):
            connection.execute("SELECT * FROM shop.orders")
        wait_until(lambda: planner.cancelled)
    refused(planner, CatalogError, "'soon', not a number above 0", **{name: "soon"})


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
    """They are renewed by the plan's id, and the table's own are left aside."""
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
