"""Each request to a store and to a catalog is a line of the log at DEBUG, without secrets."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

import icesql
from icesql.errors import CatalogError, StorageError
from tests.catalog.rest_server import Server, rest
from tests.sessions import fetched
from tests.stores.conftest import Connect
from tests.stores.server import Store, error

SQL = "SELECT count(*), sum(id) FROM lake.small"
LINE = re.compile(r"(GET|HEAD|LIST|POST) (\S+): (.+) · (\d+) B · \d+\.\d ms")
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as made:
        yield made


def requests(log: pytest.LogCaptureFixture) -> list[tuple[str, ...]]:
    """Method, URL, outcome and bytes of the lines of requests."""
    lines = [each.getMessage() for each in log.records if each.name == "icesql"]
    assert SECRET not in "\n".join(lines)
    return [found.groups() for found in map(LINE.fullmatch, lines) if found]


def test_each_request_to_a_store_is_a_line(
    connect: Connect, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect()
    store.clear()
    with caplog.at_level(logging.DEBUG, logger="icesql"):
        fetched(connection, SQL)
    told = requests(caplog)
    assert len(told) == len(store.requests) > 3
    assert all(url.startswith("s3://lake/") and done == "answered" for _, url, done, _ in told)
    assert sum(int(size) for *_, size in told) > 1_000


def test_what_a_store_refused_is_told(
    connect: Connect, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.fault = lambda request: error(403, "AccessDenied", f"{SECRET} may not do this.")
    with caplog.at_level(logging.DEBUG, logger="icesql"), pytest.raises(StorageError):
        fetched(connect(), SQL)
    told = requests(caplog)
    assert len(told) == 1
    assert told[0][2] != "answered"


def test_at_info_no_request_is_told(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="icesql"):
        fetched(connect(), SQL)
    assert requests(caplog) == []
    assert "lake.small" in caplog.text


def test_each_request_to_a_catalog_is_a_line(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG, logger="icesql"),
        pytest.raises(icesql.TableNotFoundError),
    ):
        rest(server, token=SECRET).load(("shop", "orders"))
    told = requests(caplog)
    assert [each[1].removeprefix(server.uri) for each in told] == [
        path for _, path, *_ in server.asked
    ]
    assert told[0][2] == "status 200"
    assert told[1][:3] == ("GET", f"{server.uri}/v1/namespaces/shop/tables/orders", "status 404")
    assert all(int(size) > 10 for method, *_, size in told if method == "GET")


def test_a_catalog_that_is_not_there_is_told_with_its_password_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.DEBUG, logger="icesql"),
        icesql.connect(uri=f"http://me:{SECRET}@127.0.0.1:9/?sig={SECRET}") as connection,
        pytest.raises(CatalogError),
    ):
        connection.execute("SELECT * FROM s.t")
    told = requests(caplog)
    assert told
    assert {each[2] for each in told} == {"no answer"}
    assert SECRET not in caplog.text
