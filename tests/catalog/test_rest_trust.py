"""Limits on what a REST catalog's server, even a malicious one, can make the client do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.rest import client as rest_client
from icesql.catalog.rest.auth import is_same_server
from icesql.errors import AccessDeniedError, CatalogError
from tests.catalog.rest_server import ORDERS, Server, rest
from tests.rows import rows_of
from tests.sessions import answer


@rows_of(__file__, "same_servers.tsv", "one", "two", "same")
def test_which_addresses_are_one_server(one: str, two: str, same: str) -> None:
    assert is_same_server(two, [one]) is (same == "yes")


# ------------------------------------------------------------------ stores


@rows_of(__file__, "stores_of_a_server.tsv", "told", "given", "used")
@pytest.mark.parametrize("where", ["overrides", "config"])
def test_a_secret_of_the_user_goes_to_no_store_of_the_server(
    server: Server, told: str, given: str, used: str, where: str
) -> None:
    place = server.tables[ORDERS] if where == "config" else server.config
    place[where] = json.loads(told)
    if used == "yes":
        found = rest(server, **json.loads(given)).load(ORDERS).storage.properties
        assert {**found, **json.loads(told)} == found
        return
    with pytest.raises(CatalogError, match="your own are not sent there"):
        rest(server, **json.loads(given)).load(ORDERS)


@pytest.mark.parametrize("name", ["2130706433#", "localhost?", "evil/", "a.b", "a:80", ""])
def test_an_account_is_a_name_and_no_address(name: str) -> None:
    from icesql.storage.open import Storage

    properties = {"adls.sas-token": "mine", "adls.account-name": name}
    with pytest.raises(icesql.Error, match="is no account"):
        Storage(properties).read(f"abfss://c@{name}.dfs.core.windows.net/x")


# ------------------------------------------------------------------ files of this machine


@pytest.mark.parametrize("place", ["file:///metadata/x.json", "/etc/metadata/x.json", None])
def test_a_confined_connection_takes_no_folder_from_a_server(
    server: Server, place: str | None
) -> None:
    if place is not None:
        server.tables[ORDERS]["metadata-location"] = place
    for access in ({"service": True}, {"confine": True}):
        with pytest.raises(AccessDeniedError, match="confine"):
            answer("SELECT count(*) FROM shop.orders", uri=server.uri, **access)


@rows_of(__file__, "confined_to_a_server.tsv", "place", "location", "listed")
def test_a_confined_table_names_no_file_of_another_place(
    server: Server, place: str, location: str, listed: str
) -> None:
    table = server.tables[ORDERS]
    table["metadata"]["location"] = location
    for snapshot in table["metadata"]["snapshots"]:
        snapshot["manifest-list"] = listed
    table["metadata-location"] = place or None
    properties = {"s3.region": "r"}
    with pytest.raises(AccessDeniedError, match="confine"):
        answer(
            "SELECT max(id) FROM shop.orders", uri=server.uri, properties=properties, service=True
        )


def test_roots_that_the_owner_names_hold_for_a_server(server: Server, warehouse: Path) -> None:
    assert answer("SELECT max(id) IS NULL FROM shop.orders", uri=server.uri, confine=[warehouse])
    with pytest.raises(AccessDeniedError):
        answer("SELECT max(id) FROM shop.orders", uri=server.uri, confine=["/nowhere"])


# ------------------------------------------------------------------ answers


@rows_of(__file__, "answers_of_no_catalog.tsv", "text", "times")
@pytest.mark.parametrize("ask", [lambda c: c.tables(), lambda c: c.load(("a", "b"))])
def test_answers_of_another_shape_are_errors_of_ours(
    server: Server, text: str, times: str, ask: Callable[[Any], Any]
) -> None:
    server.answer_all(text.encode("latin-1") * int(times))
    with pytest.raises(icesql.Error) as caught:
        ask(rest(server))
    assert "bug" not in str(caught.value)


def test_namespaces_without_end_are_an_error(server: Server) -> None:
    def deeper(request: Any, parts: list[str], query: dict[str, Any], headers: Any) -> None:
        above = query["parent"][0].split("\x1f") if "parent" in query else []
        server.send(request, 200, {"namespaces": [[*above, "a"]]})

    server.catalog = deeper  # type: ignore[method-assign]
    with pytest.raises(CatalogError, match="its list of namespaces does not end"):
        rest(server).namespaces()


def test_an_answer_is_bounded_also_when_it_is_packed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_client, "_LARGEST", 1 << 20)
    catalog = rest(server)
    catalog.tables(("shop",))
    packed = gzip.compress(b'{"namespaces": [' + b" " * (64 << 20), 1)
    assert len(packed) < 1 << 20
    server.answer_all(packed, headers={"Content-Encoding": "gzip"})
    with pytest.raises(CatalogError, match="its answer has more than 1,048,576 bytes"):
        catalog.namespaces()


def test_what_is_kept_of_tables_is_bounded(server: Server) -> None:
    catalog = rest(server)
    catalog._kept.max_bytes = 3 * len(json.dumps(server.tables[ORDERS]))
    for number in range(20):
        table = {**server.tables[ORDERS], "etag": f'"{number}"'}
        server.tables["shop", f"t{number}"] = table
        catalog.load(("shop", f"t{number}"))
    assert 0 < len(catalog._kept) <= 3
