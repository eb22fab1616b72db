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
from tests.catalog.rest_server import ORDERS, Server, rest
from tests.rows import rows_of
from tests.sessions import fetched
from tests.warm import fresh_python


def test_a_query_takes_one_request_for_the_table(server: Server, warehouse: Path) -> None:
    with icesql.connect(uri=server.uri) as connection:
        assert fetched(connection, "SELECT count(*) FROM shop.orders") == [(39,)]
        first = len(server.asked)
        fetched(connection, "SELECT * FROM shop.orders VERSION AS OF 'opening'")
        assert len(server.asked) == first + 1
    assert server.paths()[:2] == ["/v1/config", "/v1/namespaces/shop/tables/orders"]
    delegation = server.asked[1][3]["x-iceberg-access-delegation"]
    assert delegation == "vended-credentials"


def test_metadata_is_taken_from_the_answer(server: Server) -> None:
    server.tables[ORDERS]["metadata-location"] = "file:///nowhere/metadata/x.json"
    assert len(rest(server).load(ORDERS).metadata.snapshots) == 4


def test_a_table_that_did_not_change_is_not_sent_again(server: Server) -> None:
    server.tables[ORDERS]["etag"] = '"v1"'
    catalog = rest(server)
    first = catalog.load(ORDERS)
    second = catalog.load(ORDERS)
    assert server.asked[-1][3]["if-none-match"] == '"v1"'
    assert first.metadata.current_snapshot_id == second.metadata.current_snapshot_id


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


def test_a_prefix_and_an_uri_of_the_server_are_used(server: Server) -> None:
    server.config = {"defaults": {"a": "1"}, "overrides": {"prefix": "ws", "uri": server.uri}}
    catalog = rest(server, warehouse="main")
    catalog.load(ORDERS)
    assert server.asked[0][2] == {"warehouse": ["main"]}
    assert server.paths()[-1] == "/v1/ws/namespaces/shop/tables/orders"


def test_the_users_properties_stand_between_defaults_and_overrides(server: Server) -> None:
    server.config = {"defaults": {"a": "d", "b": "d"}, "overrides": {"c": "o"}}
    properties = rest(server, b="mine", c="mine").properties
    assert [properties[each] for each in "abc"] == ["d", "mine", "o"]


@pytest.mark.parametrize("page", [None, 1, 2])
def test_lists_come_in_pages(server: Server, page: int | None) -> None:
    table = server.tables[ORDERS]
    for number in range(5):
        server.tables["many", f"t{number}"] = table
    server.tables["a", "b", "deep"] = table
    server.page = page
    catalog = rest(server)
    assert catalog.namespaces() == [("a",), ("a", "b"), ("many",), ("shop",)]
    assert [name for _, name in catalog.tables(("many",))] == [f"t{n}" for n in range(5)]
    assert catalog.tables(("a", "b")) == [("a", "b", "deep")]


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


def test_a_token_is_fetched_once_and_again_when_it_is_refused(server: Server) -> None:
    server.needs_token = True
    catalog = rest(server, credential="me:s3cret!")
    catalog.load(ORDERS)
    catalog.load(ORDERS)
    assert server.tokens == ["token1"]
    server.tokens.append("another")  # the one that was given is no longer good
    catalog.load(ORDERS)
    assert server.tokens == ["token1", "another", "token3"]


def test_a_wrong_secret_is_told_without_it(server: Server) -> None:
    with pytest.raises(CatalogError, match="the token request was refused") as caught:
        rest(server, credential="me:wr0ng-secret").load(ORDERS)
    assert "no such client" in str(caught.value)
    assert "wr0ng" not in str(caught.value)


def test_a_wrong_address_is_no_missing_table(server: Server) -> None:
    server.config["overrides"] = {"oauth2-server-uri": "typo"}
    for catalog, told in (
        (
            RestCatalog("lake", {"uri": f"{server.uri}/typo"}),
            "/typo the address of an Iceberg REST catalog",
        ),
        (rest(server, credential="me:s3cret!"), "the token request was refused: no such path"),
    ):
        for ask in (lambda own=catalog: own.load(ORDERS), catalog.namespaces):
            with pytest.raises(CatalogError, match=told):
                ask()


def test_pyicebergs_block_auth_is_read(server: Server) -> None:
    server.needs_token = True
    own = {
        "client_id": "me",
        "client_secret": "s3cret!",
        "token_url": f"{server.uri}/v1/oauth/tokens",
    }
    rest(server, auth={"type": "oauth2", "oauth2": own}).load(ORDERS)
    assert server.tokens == ["token1"]
    wrong = {**own, "client_secret": "wr0ng-secret"}
    with pytest.raises(CatalogError, match="the token request was refused") as caught:
        rest(server, auth={"type": "oauth2", "oauth2": wrong}).load(ORDERS)
    assert "wr0ng" not in str(caught.value)
    with pytest.raises(CatalogError, match="auth of type oauth2 needs token_url"):
        rest(server, auth={"type": "oauth2", "oauth2": {**own, "token_url": ""}})
    server.needs_token = False
    login = {"username": "me", "password": "pass-word"}
    catalog = rest(server, auth={"type": "basic", "basic": login})
    catalog.load(ORDERS)
    assert server.asked[-1][3]["authorization"] == "Basic bWU6cGFzcy13b3Jk"
    rest(server, auth={"type": "noop"}).load(ORDERS)
    assert "authorization" not in server.asked[-1][3]


class Manager:
    """A proof of the user's own class, as PyIceberg takes one."""

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
    """Google's, Entra's and the user's own prove who asks; what is asked is icesql's."""
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


def test_an_overloaded_catalog_is_asked_again(server: Server) -> None:
    server.failures = [503, 429]
    assert rest(server).tables(("shop",)) == [ORDERS]
    server.failures = [503] * 9
    with pytest.raises(CatalogError, match="503 Service Unavailable: busy; try again later"):
        rest(server).tables(("shop",))


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


def test_vended_credentials_are_those_of_the_longest_prefix(server: Server) -> None:
    table = server.tables[ORDERS]
    table["metadata"] = {**table["metadata"], "location": "s3://bucket/shop/orders"}
    table["config"] = {"s3.access-key-id": "of-the-table"}
    table["storage-credentials"] = [
        {"prefix": "s3://bucket/", "config": {"s3.access-key-id": "wide"}},
        {"prefix": "s3://bucket/shop/orders", "config": {"s3.access-key-id": "near"}},
        {"prefix": "s3://bucket/shop/orders2", "config": {"s3.access-key-id": "other"}},
    ]
    catalog = rest(server, **{"s3.endpoint": "http://store", "s3.access-key-id": "mine"})
    properties = catalog.load(ORDERS).storage.properties
    assert properties["s3.access-key-id"] == "near"
    assert properties["s3.endpoint"] == "http://store"
    assert "uri" not in properties
    table["storage-credentials"][1]["config"] = {"s3.access-key-id": "fresh"}
    place = "s3://bucket/shop/orders"
    assert catalog.credentials(ORDERS, place)["s3.access-key-id"] == "fresh"


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


def test_a_view_is_refused_by_name(server: Server) -> None:
    server.views.add(("shop", "v"))
    server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    with pytest.raises(TableNotFoundError):
        rest(server).load(("shop", "v"))
    assert not any("views" in path for path in server.paths())
    del server.config["endpoints"]
    with pytest.raises(UnsupportedTableError, match=r'views of a catalog in table "shop\.v"'):
        rest(server).load(("shop", "v"))
    with pytest.raises(TableNotFoundError):
        rest(server).load(("shop", "w"))


def test_a_missing_table_is_told_as_it_was_written(server: Server) -> None:
    with icesql.connect(uri=server.uri) as connection:
        connection.execute("USE shop")
        with pytest.raises(TableNotFoundError, match=r'"shop\.nope" not found'):
            connection.execute("SELECT * FROM shop.nope")
        with pytest.raises(TableNotFoundError, match=r'"shop\.nope" not found'):
            connection.execute("SELECT * FROM nope")


def test_a_name_is_found_in_another_case(server: Server) -> None:
    assert rest(server).load(("Shop", "ORDERS")).identifier == ORDERS
    with pytest.raises(TableNotFoundError, match=r'did you mean "shop.orders"\?'):
        rest(server).load(("shop", "order"))


def test_the_protocol_needs_no_pyiceberg(server: Server) -> None:
    code = (
        "import icesql, sys\n"
        "connection = icesql.connect(uri=sys.argv[1])\n"
        "print(connection.execute('SELECT count(*) FROM shop.orders').fetchall())\n"
        "print([each for each in ('pyiceberg', 'requests', 'pydantic') if each in sys.modules])"
    )
    assert fresh_python(code, server.uri).splitlines()[:2] == ["[(39,)]", "[]"]
