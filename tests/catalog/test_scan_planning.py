"""Scans that the catalog plans: at once, later, in pages, given up, and wrongly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
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
from tests.property.test_histories import problems
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
    given = {"type": "rest", **properties}
    return icesql.connect("lake", uri=server.uri, properties=given)


@pytest.mark.parametrize(("later", "page", "fan"), [(0, None, 1), (0, 1, 1), (1, 2, 3)])
def test_rows_are_those_of_ones_own_planning(
    planner: PlanningServer, warehouse: Path, later: int, page: int | None, fan: int
) -> None:
    planner.later, planner.page, planner.fan = later, page, fan
    own = icesql.connect("own", uri=f"sqlite:///{warehouse}/catalog.db", properties={"type": "sql"})
    with connected(planner) as connection, own:
        for sql in (
            "SELECT count(*) FROM shop.orders",
            "SELECT * FROM shop.orders ORDER BY ALL",
            "SELECT * FROM shop.orders VERSION AS OF 'opening' ORDER BY ALL",
            "SELECT id, _file IS NULL, _partition FROM shop.orders WHERE region = 'eu' ORDER BY id",
            "SELECT min(id), max(id) FROM shop.orders",
            "SELECT * FROM shop.types ORDER BY ALL",
        ):
            assert connection.execute(sql).fetchall() == own.execute(sql).fetchall()
    assert not planner.cancelled


def test_the_request_says_what_is_read(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        sql = "SELECT id FROM shop.orders VERSION AS OF 'opening' WHERE region = 'eu' AND id < 20"
        connection.execute(sql).fetchall()
        connection.execute("SELECT * FROM shop.orders").fetchall()
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
        lines = connection.execute("EXPLAIN SELECT * FROM shop.orders").fetchall()
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
        assert len(connection.execute("SELECT * FROM shop.customers LIMIT 1").fetchall()) == 1
        planner.asked_tasks.clear()
        assert len(connection.execute("SELECT * FROM shop.orders LIMIT 1").fetchall()) == 1
        assert len(planner.asked_tasks) < 8
        wait_until(lambda: planner.cancelled)


@pytest.mark.parametrize("seed", [260, 300])
def test_deletes_apply_to_the_files_that_the_catalog_says(tmp_path: Path, seed: int) -> None:
    """Tables of every kind of delete, without one sequence number, against the model's rows."""
    history = History(seed, tmp_path)
    server = PlanningServer()
    server.page = 3
    publish(server, "t", Path(history.metadata_path))
    try:
        with connected(server) as connection:
            connection.execute("USE shop")
            found = [
                each
                for reader in ("auto", "arrow")
                for each in problems(history, connection, reader)
            ]
        assert found == [], "\n".join(found)
        assert server.planned
    finally:
        server.close()


def wait_until(condition: Any) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


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
        planner.tables["shop", "orders"]["config"] = {"scan-planning-mode": table}
    with connected(planner, **({"scan-planning-mode": catalog} if catalog else {})) as connection:
        assert connection.execute("SELECT count(*) FROM shop.orders").fetchall() == [(39,)]
    assert bool(planner.planned) is planned


def test_a_server_without_the_endpoint_and_a_mode_of_no_meaning_are_told(
    planner: PlanningServer,
) -> None:
    with connected(planner) as connection:
        planner.tables["shop", "orders"]["config"] = {"scan-planning-mode": "sometimes"}
        with pytest.raises(CatalogError, match="'sometimes', not client or server"):
            connection.execute("SELECT * FROM shop.orders")
    planner.tables["shop", "orders"]["config"] = {}
    planner.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    with connected(planner) as connection, pytest.raises(CatalogError, match="planTableScan"):
        connection.execute("SELECT * FROM shop.orders")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT _last_updated_sequence_number FROM shop.orders", "_last_updated_sequence_number"),
        ("SELECT _snapshot_id FROM shop.orders", "_snapshot_id"),
    ],
)
def test_what_a_plan_has_no_values_for_is_refused_by_name(
    planner: PlanningServer, sql: str, told: str
) -> None:
    with (
        connected(planner) as connection,
        pytest.raises(UnsupportedTableError, match=f"{told}.* where the catalog plans the scans"),
    ):
        connection.execute(sql)


def test_full_verification_is_refused(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        connection.execute("SET verify = 'full'")
        with pytest.raises(UnsupportedTableError, match="verify = full where the catalog plans"):
            connection.execute("SELECT * FROM shop.orders")


# ---------------------------------------------------------------------- a stranger's words


def test_a_plan_that_restricts_what_may_be_read_is_refused_by_name(planner: PlanningServer) -> None:
    def restricted(answer: dict[str, Any]) -> None:
        answer["read-restrictions"] = {"required-row-filter": {"type": "eq"}}

    planner.change = restricted
    with (
        connected(planner) as connection,
        pytest.raises(UnsupportedTableError, match=r"restrictions.*required-row-filter\), which"),
    ):
        connection.execute("SELECT * FROM shop.orders").fetchall()


def first_task(answer: dict[str, Any]) -> dict[str, Any]:
    return answer["file-scan-tasks"][0]


def out_of_range(answer: dict[str, Any]) -> None:
    first_task(answer)["delete-file-references"] = [7]


def below_range(answer: dict[str, Any]) -> None:
    first_task(answer)["delete-file-references"] = [-1]


def twice(answer: dict[str, Any]) -> None:
    answer["file-scan-tasks"].append(first_task(answer))


def other_spec(answer: dict[str, Any]) -> None:
    first_task(answer)["data-file"]["spec-id"] = 77


def short_partition(answer: dict[str, Any]) -> None:
    first_task(answer)["data-file"]["partition"] = [1]


def other_value(answer: dict[str, Any]) -> None:
    first_task(answer)["data-file"]["partition"] = ["x", 5]


def no_data(answer: dict[str, Any]) -> None:
    first_task(answer)["data-file"]["content"] = "equality-deletes"


def foreign_vector(answer: dict[str, Any]) -> None:
    file = first_task(answer)["data-file"]
    vector = {
        **file, "content": "position-deletes", "file-format": "puffin", "content-offset": 4,
        "content-size-in-bytes": 40, "referenced-data-file": "file:///another.parquet",
    }  # fmt: skip
    answer["delete-files"] = [vector]
    first_task(answer)["delete-file-references"] = [0]


def data_as_deletes(answer: dict[str, Any]) -> None:
    answer["delete-files"] = [first_task(answer)["data-file"]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (out_of_range, "refers to delete file 7 of 0"),
        (below_range, "refers to delete file -1 of 0"),
        (twice, "is to be read twice"),
        (other_spec, "has spec 77, which the table has not"),
        (short_partition, "a partition of 1 values, where spec 0 has 2"),
        (other_value, "is not a value of type"),
        (no_data, "is one of deletes"),
        (foreign_vector, r"refers to the deletion vector of file:///another\.parquet"),
        (data_as_deletes, "is one of data"),
    ],
)
def test_an_answer_that_contradicts_itself_is_told(
    planner: PlanningServer, change: Any, told: str
) -> None:
    planner.change = change
    with (
        connected(planner) as connection,
        pytest.raises(CorruptFileError, match=rf"the catalog's plan for shop\.orders: .*{told}"),
    ):
        connection.execute("SELECT * FROM shop.orders")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda answer: {"status": "cancelled"}, "status cancelled"),
        (
            lambda answer: {
                "status": "failed",
                "error": {"message": "no such column", "type": "ValidationException", "code": 400},
            },
            "status failed: ValidationException: no such column",
        ),
        (lambda answer: {"status": "submitted"}, "without a plan-id"),
        (lambda answer: {**answer, "plan-tasks": ["a", "a"]}, "plan tasks does not end"),
        (lambda answer: {**answer, "file-scan-tasks": [{}]}, "invalid response"),
        (lambda answer: {"plan-id": "x"}, "invalid response"),
    ],
)
def test_an_answer_that_is_no_plan_is_told(planner: PlanningServer, change: Any, told: str) -> None:
    planner.change = change
    with connected(planner) as connection, pytest.raises(CatalogError, match=told):
        connection.execute("SELECT * FROM shop.orders")


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
        assert connection.execute(sql).fetchall() != [(0,)]


def test_a_file_of_this_machine_is_not_read_for_a_remote_table(planner: PlanningServer) -> None:
    table = planner.tables["shop", "orders"]
    remote = {**table["metadata"], "location": "s3://bucket/orders"}
    planner.tables["shop", "orders"] = {**table, "metadata": remote}
    keys = {"s3.region": "x", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    with (
        connected(planner, **keys) as connection,
        pytest.raises(CorruptFileError, match="is on this machine, the table is not"),
    ):
        connection.execute("SELECT * FROM shop.orders")


# ---------------------------------------------------------------------- giving up


@pytest.mark.parametrize("hangs", ["POST", "GET", "never ready"])
def test_a_plan_that_does_not_come_is_left_at_once(planner: PlanningServer, hangs: str) -> None:
    planner.later = 1_000_000
    released = threading.Event()
    answer = planner.catalog

    def slow(request: Any, parts: list[str], *others: Any) -> None:
        if "plan" in parts and request.command == hangs:
            released.wait(60)
        answer(request, parts, *others)

    planner.catalog = slow  # type: ignore[method-assign]
    try:
        with connected(planner) as connection:
            connection.execute("SHOW TABLES FROM shop").fetchall()
            connection.execute("SET query_timeout = 0.4")
            started = time.monotonic()
            with pytest.raises(QueryCancelledError):
                connection.execute("SELECT * FROM shop.orders").fetchall()
            assert time.monotonic() - started < 30
            released.set()
            if hangs != "POST":  # the connection is closed before the plan has a name
                wait_until(lambda: planner.cancelled)
    finally:
        released.set()


def test_a_plan_that_takes_too_long_is_told_and_cancelled(planner: PlanningServer) -> None:
    planner.later = 1_000_000
    with connected(planner, **{"rest-scan-planning.poll-timeout-ms": "300"}) as connection:
        with pytest.raises(CatalogError, match=r"took longer than 0\.3 seconds"):
            connection.execute("SELECT * FROM shop.orders")
        wait_until(lambda: planner.cancelled)
    with (
        connected(planner, **{"rest-scan-planning.poll-timeout-ms": "soon"}) as connection,
        pytest.raises(CatalogError, match="'soon', not a number above 0"),
    ):
        connection.execute("SELECT * FROM shop.orders")


def test_an_overloaded_server_is_asked_again(planner: PlanningServer) -> None:
    with connected(planner) as connection:
        connection.execute("SHOW TABLES FROM shop").fetchall()
        answer = planner.catalog

        def busy(request: Any, parts: list[str], *others: Any) -> None:
            if parts[-1] == "plan" and not planner.planned:
                planner.planned.append({})
                planner.send(request, 503, {"error": {"message": "busy"}})
                return
            answer(request, parts, *others)

        planner.catalog = busy  # type: ignore[method-assign]
        assert connection.execute("SELECT count(*) FROM shop.orders").fetchall() == [(39,)]


# ---------------------------------------------------------------------- credentials


def test_the_credentials_of_a_plan_open_its_files(planner: PlanningServer) -> None:
    """They are renewed by the plan's id, and the table's own are left aside."""
    vended = {"prefix": "file:", "config": {"s3.access-key-id": "of the plan"}}
    planner.change = lambda answer: {**answer, "storage-credentials": [vended]}
    from icesql.catalog.open import open_catalog

    catalog = open_catalog("lake", uri=planner.uri, properties={"type": "rest"})
    assert catalog is not None
    table = catalog.load(("shop", "orders"))
    assert table.planning is not None
    snapshot = table.metadata.current_snapshot_id
    asked = {"snapshot-id": snapshot, "use-snapshot-schema": False, "select": []}
    plan = table.planning.plan(asked, None, QueryContext())
    assert plan.storage is not None
    assert plan.storage.properties["s3.access-key-id"] == "of the plan"
    assert plan.storage.lease is not None
    planner.config["endpoints"] = []
    sent = [headers for method, path, _, headers in planner.asked if path.endswith("/plan")]
    assert sent[0]["x-iceberg-access-delegation"] == "vended-credentials"
    catalog.close()
