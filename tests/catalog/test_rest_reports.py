"""Scan reports reach the REST catalog in the background, and cost a query nothing."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import pytest

import icesql
from icesql.catalog.rest.answers import Refusal
from icesql.catalog.rest.scans import ScanReports
from icesql.errors import CatalogError
from tests.catalog.rest_server import ORDERS, Server, rest
from tests.sessions import answer, fetched
from tests.waits import wait_until

SQL = "SELECT sum(id) FROM shop.orders WHERE region = 'a-secret-value'"
METRICS = "/v1/namespaces/shop/tables/orders/metrics"


def test_a_scan_is_reported_without_the_values_of_its_filter(server: Server) -> None:
    with icesql.connect(uri=server.uri) as connection:
        fetched(connection, SQL)
        wait_until(lambda: server.reports)
    path, report = server.reports[0]
    assert (path, report["report-type"]) == (METRICS, "scan-report")
    assert report["table-name"] == "shop.orders"
    assert report["metrics"]["total-data-manifests"]["value"] >= 1
    assert set(report["projected-field-names"]) == {"id", "region"}
    assert "a-secret-value" not in str(report)


@pytest.mark.parametrize(
    ("properties", "endpoints"),
    [
        ({"rest-metrics-reporting-enabled": "false"}, None),
        ({}, ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]),
    ],
)
def test_nothing_is_reported_where_it_is_not_wanted(
    server: Server, properties: dict[str, str], endpoints: list[str] | None
) -> None:
    if endpoints:
        server.config["endpoints"] = endpoints
    assert rest(server, **properties).load(ORDERS).reports is None
    answer(SQL, uri=server.uri, properties=properties)
    assert server.reports == []


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_catalog_that_refuses_a_report_is_sent_no_more(server: Server, status: int) -> None:
    server.reporting = status
    server.redirects[METRICS] = (status, "")
    with icesql.connect(uri=server.uri) as connection:
        rows = fetched(connection, SQL)
        wait_until(lambda: METRICS in server.paths())
        time.sleep(0.05)
        assert fetched(connection, SQL) == rows
        time.sleep(0.05)
    assert server.paths().count(METRICS) == 1


def test_a_query_waits_for_no_report(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    held, free = threading.Event(), threading.Event()

    def hang(self: Any, *report: Any) -> None:
        held.set()
        free.wait(30)

    monkeypatch.setattr("icesql.catalog.rest.catalog.RestCatalog._post_report", hang)
    with icesql.connect(uri=server.uri) as connection:
        fetched(connection, SQL)
        assert held.wait(600)
        started = time.monotonic()
        fetched(connection, SQL)
    assert time.monotonic() - started < 25
    free.set()


def test_reports_that_wait_are_bounded_and_lost_in_the_end() -> None:
    free, sent = threading.Event(), []

    def post(identifier: tuple[str, ...], report: Any) -> None:
        free.wait(30)
        sent.append(report["number"])
        if report["number"] == 3:
            raise CatalogError("not reached")
        if report["number"] == 5:
            raise Refusal("no", 404)

    made = ScanReports(post)
    for number in range(1000):
        made.put(("a", "b"), {"number": number})
    assert len(made._waiting) <= 64
    free.set()
    wait_until(lambda: not made._running)
    assert sent == [0, 1, 2, 3, 4, 5]


def test_a_workers_copy_of_a_table_reports_nothing(server: Server) -> None:
    table = rest(server).load(ORDERS)
    assert table.reports is not None
    assert pickle.loads(pickle.dumps(table.reports)) is None
