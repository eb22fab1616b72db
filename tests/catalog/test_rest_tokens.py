"""A token that a catalog gives with a table is sent with further requests about that table."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from icesql.catalog.rest.answers import Refusal
from icesql.catalog.rest.catalog import Renewal, RestCatalog
from icesql.catalog.rest.changes import swap
from icesql.catalog.rest.loaded import LoadedTable
from icesql.catalog.writes.change import TableChange
from icesql.iceberg.metadata.changes.updates import SetProperties
from tests.catalog.rest_server import ORDERS, Server, rest

METRICS = "/v1/namespaces/shop/tables/orders/metrics"
CREDENTIALS = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
OWN, TABLES = "Bearer catalogs-own", "Bearer of-the-table"


@pytest.fixture
def giving(server: Server) -> Server:
    """A server that issues a token with the table, and records requests for metrics."""
    server.tables[ORDERS]["config"] = {"token": "of-the-table"}
    server.redirects[METRICS], server.reporting = (204, ""), 0
    return server


def own(server: Server) -> RestCatalog:
    return rest(server, token="catalogs-own")


def loaded(server: Server) -> RestCatalog:
    """Its catalog, which has loaded the table."""
    catalog = own(server)
    catalog.load(ORDERS)
    return catalog


def ask(catalog: RestCatalog, identifier: tuple[str, ...] = ORDERS) -> None:
    endpoint = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
    catalog.request(endpoint, identifier, body={})


def proofs(server: Server) -> list[tuple[str, str | None]]:
    """The last part of each path and its token, without the request for the configuration."""
    return [
        (path.rpartition("/")[2], headers.get("authorization"))
        for _, path, _, headers in server.asked
        if path != "/v1/config"
    ]


def test_a_commit_and_credentials_are_asked_for_with_it(giving: Server) -> None:
    giving.config["endpoints"] = [
        CREDENTIALS, "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    ]  # fmt: skip
    catalog = own(giving)
    table = catalog.load(ORDERS)
    giving.asked.clear()
    with pytest.raises(Refusal):
        catalog.credentials(ORDERS, table.metadata.location)
    change = TableChange((SetProperties({"a": "b"}),), (), table.storage, 0)
    swap(catalog, ORDERS, table.metadata_location, change)
    assert proofs(giving) == [("credentials", TABLES), ("orders", TABLES)]


def test_one_that_has_expired_is_followed_by_the_catalogs_own(
    giving: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = loaded(giving)
    plain = giving.answer

    def strict(request: Any) -> None:
        if request.headers["Authorization"] == TABLES:
            giving.redirects[METRICS] = (401, "")
        else:
            giving.redirects[METRICS] = (204, "")
        plain(request)

    monkeypatch.setattr(giving, "answer", strict)
    ask(catalog)
    assert proofs(giving)[-2:] == [("metrics", TABLES), ("metrics", OWN)]


def test_no_error_shows_it(giving: Server) -> None:
    catalog = loaded(giving)
    del giving.redirects[METRICS]
    giving.reporting = 403

    def told(request: Any, status: int, *_: Any) -> None:
        plain(request, 403, {"error": {"message": "of-the-table may not, catalogs-own may"}})

    plain, giving.send = giving.send, told  # type: ignore[method-assign]
    with pytest.raises(Refusal) as found:
        ask(catalog)
    assert "may not" in str(found.value)
    assert "of-the-table" not in str(found.value)
    assert "catalogs-own" not in str(found.value)


def test_a_worker_asks_with_it_too(giving: Server) -> None:
    giving.config["endpoints"] = [CREDENTIALS]
    catalog = own(giving)
    table = catalog.load(ORDERS)
    renewal = pickle.loads(pickle.dumps(Renewal(catalog, ORDERS, table.metadata.location)))
    again = pickle.loads(pickle.dumps(renewal))
    for each in (renewal, again):
        with pytest.raises(Refusal):
            each()
        assert proofs(giving)[-1] == ("credentials", TABLES)


def test_few_are_kept(giving: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icesql.catalog.rest.server._MOST_TOKENS", 2)
    catalog = own(giving)
    for name in "abc":
        catalog.use_token(("shop", name), name)
    assert [catalog.token_of(("shop", name)) for name in "abc"] == [None, "b", "c"]


def test_it_is_read_of_the_answer() -> None:
    import msgspec

    answer = b'{"metadata": {}, "config": {"token": "t"}}'
    assert msgspec.json.decode(answer, type=LoadedTable).token == "t"
    assert msgspec.json.decode(b'{"metadata": {}}', type=LoadedTable).token is None
