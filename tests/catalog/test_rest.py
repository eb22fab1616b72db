"""The REST catalog against a server of the tests that follows the OpenAPI specification."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.rest.catalog import RestCatalog
from icesql.errors import CatalogError, TableNotFoundError, UnsupportedTableError
from tests.catalog.client import Client
from tests.catalog.rest_server import ORDERS, Server, rest
from tests.rows import rows_of
from tests.scenes import Scene, scenes
from tests.sessions import fetched
from tests.warm import fresh_python


@scenes(__file__, "rest.scenes")
def test_what_a_catalog_asks_of_its_server(scene: Scene, server: Server, other: Server) -> None:
    Client(server, other).play(scene)


def test_a_query_takes_one_request_for_the_table(server: Server, warehouse: Path) -> None:
    with icesql.connect(uri=server.uri) as connection:
        assert fetched(connection, "SELECT count(*) FROM shop.orders") == [(39,)]
        first = len(server.asked)
        fetched(connection, "SELECT * FROM shop.orders VERSION AS OF 'opening'")
        assert len(server.asked) == first + 1
    assert server.paths()[:2] == ["/v1/config", "/v1/namespaces/shop/tables/orders"]
    delegation = server.asked[1][3]["x-iceberg-access-delegation"]
    assert delegation == "vended-credentials"


def test_a_commit_is_seen_where_no_metadata_file_is_named(server: Server) -> None:
    """The text of a query that comes again is not bound again, but for what has changed."""
    table = server.tables[ORDERS]
    del table["metadata-location"]
    latest = table["metadata"]
    first = latest["snapshots"][0]
    refs = {"main": {"type": "branch", "snapshot-id": first["snapshot-id"]}}
    old = {
        **latest, "refs": refs, "current-snapshot-id": first["snapshot-id"],
        "last-updated-ms": first["timestamp-ms"],
    }  # fmt: skip
    sql = "SELECT sum(id) FROM shop.orders WHERE id > 0"
    with icesql.connect("lake", uri=server.uri) as connection:
        connection.execute("SET local_reader = 'arrow'")
        for metadata, total in ((latest, 1140), (old, 190)) * 3:
            table["metadata"] = metadata
            for _ in range(2):
                assert fetched(connection, sql) == [(total,)]


def test_a_list_that_never_ends_is_an_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(request: Any, key: str, items: list[Any], query: dict[str, Any]) -> None:
        server.send(request, 200, {key: items, "next-page-token": "again"})

    monkeypatch.setattr(server, "listed", endless)
    with pytest.raises(CatalogError, match="does not end"):
        rest(server).tables(("shop",))


@pytest.mark.parametrize("name", ["a/b", "a..b", "a b%2F", "ü?x=1#y", "%1F"])
def test_names_are_one_segment_whatever_is_in_them(server: Server, name: str) -> None:
    server.tables["shop", name] = server.tables[ORDERS]
    assert rest(server).load(("shop", name)).identifier == ("shop", name)


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_reaches_no_other_path(server: Server, name: str) -> None:
    catalog = rest(server)
    catalog.tables(("shop",))
    asked = len(server.asked)
    with pytest.raises(TableNotFoundError):
        catalog.load((name, "x"))
    assert not any("tables" in path for path in server.paths()[asked:])


class Manager:
    """An authentication manager of the user's, with PyIceberg's interface."""

    def __init__(self, word: str) -> None:
        self.word, self.asked = word, 0

    def auth_header(self) -> str:
        self.asked += 1
        return f"Bearer {self.word}{self.asked}"


@pytest.fixture
def own_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("managers_of_mine")
    module.Manager = Manager  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "managers_of_mine", module)


def test_other_kinds_of_auth_are_pyicebergs(server: Server, own_manager: None) -> None:
    """Managers of Google, Entra or the user authenticate requests; icesql sends them."""
    auth = {"type": "custom", "impl": "managers_of_mine.Manager", "custom": {"word": "mine-"}}
    catalog = rest(server, auth=auth)
    assert isinstance(catalog, RestCatalog)
    catalog.load(ORDERS)
    assert [each[3]["authorization"] for each in server.asked] == ["Bearer mine-1", "Bearer mine-2"]
    server.tables[ORDERS]["read-restrictions"] = {"required-row-filter": {}}
    server.tables["shop", "other"] = server.tables[ORDERS]
    with pytest.raises(UnsupportedTableError, match="read restrictions"):
        catalog.load(("shop", "other"))


def test_a_proof_that_pyiceberg_cannot_give_is_told_without_secrets(
    server: Server, own_manager: None
) -> None:
    wrong = {
        "type": "custom",
        "impl": "managers_of_mine.Manager",
        "custom": {"password": "s3cret!"},
    }
    for auth, text in (
        (wrong, "password"),
        ({"type": "custom"}, "auth needs impl for the type custom"),
        ({"type": "oauth2", "impl": "managers_of_mine.Manager"}, "auth needs impl"),
        ({"type": "nonsense"}, "nonsense"),
    ):
        with pytest.raises(CatalogError, match=text) as raised:
            rest(server, auth=auth)
        assert "s3cret!" not in str(raised.value)
    assert server.asked == []


def test_only_referenced_snapshots_are_loaded_until_another_is_asked_for(server: Server) -> None:
    table = server.tables[ORDERS]
    named = {each["snapshot-id"] for each in table["metadata"]["refs"].values()}
    kept = [each for each in table["metadata"]["snapshots"] if each["snapshot-id"] in named]
    other = next(
        each["snapshot-id"]
        for each in table["metadata"]["snapshots"]
        if each["snapshot-id"] not in named
    )
    table["refs"] = {**table["metadata"], "snapshots": kept}
    given = {"snapshot-loading-mode": "refs"}
    with icesql.connect("lake", uri=server.uri, properties=given) as connection:
        assert fetched(connection, "SELECT count(*) FROM shop.orders") == [(39,)]
        assert all(query.get("snapshots") == ["refs"] for _, _, query, _ in server.asked[1:])
        sql = f"SELECT count(*) FROM shop.orders VERSION AS OF {other}"
        assert fetched(connection, sql) in ([(40,)], [(60,)])
        assert "snapshots" not in server.asked[-1][2]
        assert len(fetched(connection, "SHOW SNAPSHOTS FROM shop.orders")) == 4


@rows_of(__file__, "read_restrictions.tsv", "field", "value", "refused")
def test_read_restrictions_are_refused_by_name(
    server: Server, field: str, value: str, refused: str
) -> None:
    server.tables[ORDERS][field] = json.loads(value)
    if refused == "-":
        assert rest(server).load(ORDERS).metadata.snapshots
        return
    for _ in range(2):
        with pytest.raises(UnsupportedTableError, match="read restrictions of the") as raised:
            rest(server).load(ORDERS)
        assert refused in str(raised.value)
    with icesql.connect(uri=server.uri) as connection:
        for sql in (
            "SELECT * FROM shop.orders",
            "SELECT count(*) FROM shop.orders",
            "SELECT * FROM shop.orders.files",
            "SHOW SNAPSHOTS FROM shop.orders",
        ):
            with pytest.raises(UnsupportedTableError, match="read restrictions"):
                connection.execute(sql)


def test_a_missing_table_is_told_as_it_was_written(server: Server) -> None:
    with icesql.connect(uri=server.uri) as connection:
        connection.execute("USE shop")
        with pytest.raises(TableNotFoundError, match=r'"shop\.nope" not found'):
            connection.execute("SELECT * FROM shop.nope")
        with pytest.raises(TableNotFoundError, match=r'"shop\.nope" not found'):
            connection.execute("SELECT * FROM nope")


def test_the_protocol_needs_no_pyiceberg(server: Server) -> None:
    code = (
        "import icesql, sys\n"
        "connection = icesql.connect(uri=sys.argv[1])\n"
        "print(connection.execute('SELECT count(*) FROM shop.orders').fetchall())\n"
        "print([each for each in ('pyiceberg', 'requests', 'pydantic') if each in sys.modules])"
    )
    assert fresh_python(code, server.uri).splitlines()[:2] == ["[(39,)]", "[]"]
