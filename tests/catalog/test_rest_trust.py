"""What a REST catalog's server cannot make the client do, whoever runs it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.rest import client as rest_client
from icesql.catalog.rest.origins import is_same_server
from icesql.errors import AccessDeniedError, CatalogError
from tests.catalog.rest_server import Server, rest

SECRETS = ("s3cret!", "t0ken-of-mine", "of-a-header")
PROOFS: list[dict[str, str]] = [
    {"credential": "me:s3cret!"},
    {"token": "t0ken-of-mine"},
    {"header.X-Api-Key": "of-a-header"},
]


@pytest.fixture
def other() -> Iterator[Server]:
    """Another server: what it is asked is what leaked."""
    made = Server()
    yield made
    made.close()


def unseen(other: Server) -> bool:
    """Whether nothing of the user's came to the other server."""
    return not any(secret in str(other.asked) for secret in SECRETS)


# ------------------------------------------------------------------ other servers


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("key", ["uri", "oauth2-server-uri"])
@pytest.mark.parametrize("part", ["defaults", "overrides"])
def test_credentials_do_not_follow_an_address_of_the_server(
    server: Server, other: Server, proof: dict[str, str], key: str, part: str
) -> None:
    server.config = {"defaults": {}, "overrides": {}, part: {key: other.uri, "scope": "all"}}
    catalog = rest(server, **proof)
    if (part, key) == ("defaults", "uri"):
        catalog.load(("shop", "orders"))  # the user's own address counts
    else:
        with pytest.raises(CatalogError, match=f"its server sets {key} to .* another server"):
            catalog.load(("shop", "orders"))
    assert other.asked == []


def test_an_address_that_the_user_gave_is_used_for_tokens(server: Server, other: Server) -> None:
    server.config["overrides"] = {"oauth2-server-uri": f"{other.uri}/v1/oauth/tokens"}
    given = {"credential": "me:s3cret!", "oauth2-server-uri": f"{other.uri}/v1/oauth/tokens"}
    rest(server, **given).load(("shop", "orders"))
    assert other.tokens == ["token1"]


@pytest.mark.parametrize("place", ["v1/oauth/tokens", "/v1/oauth/tokens"])
def test_a_path_for_tokens_is_below_the_catalog(server: Server, place: str) -> None:
    server.config["defaults"] = {"oauth2-server-uri": place}
    rest(server, credential="me:s3cret!").load(("shop", "orders"))
    given = {"credential": "me:s3cret!", "oauth2-server-uri": place}
    rest(server, **given).load(("shop", "orders"))
    assert server.paths().count("/v1/oauth/tokens") >= 2


@pytest.mark.parametrize("place", ["//evil.example/x", "\\\\evil/x"])
def test_a_path_that_is_an_address_is_none(server: Server, place: str) -> None:
    server.config["overrides"] = {"oauth2-server-uri": place}
    with pytest.raises(CatalogError):
        rest(server, credential="me:s3cret!").load(("shop", "orders"))


def test_a_header_of_the_protocol_proves_nobody(server: Server, other: Server) -> None:
    other.tables = server.tables
    server.config["overrides"] = {"uri": other.uri}
    given = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    rest(server, **given).load(("shop", "orders"))
    assert other.asked


def test_without_credentials_another_address_is_followed(server: Server, other: Server) -> None:
    other.tables = server.tables
    server.config["overrides"] = {"uri": other.uri}
    rest(server).load(("shop", "orders"))
    assert other.paths() == ["/v1/namespaces/shop/tables/orders"]


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://a/b", "//", "x y", "http://a\\b"])
def test_an_address_that_is_none_is_told(server: Server, place: str) -> None:
    server.config["overrides"] = {"uri": place}
    with pytest.raises(CatalogError, match="no http address"):
        rest(server).load(("shop", "orders"))


@pytest.mark.parametrize("proof", [{}, *PROOFS])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_goes_to_another_server_by_a_redirect(
    server: Server, other: Server, proof: dict[str, str], status: int
) -> None:
    server.redirects["/v1/namespaces/shop/tables/orders"] = (status, f"{other.uri}/x")
    with pytest.raises(CatalogError, match="redirects to another server"):
        rest(server, **proof).load(("shop", "orders"))
    assert other.asked == []


def test_a_redirect_on_the_same_server_is_followed_with_its_headers(server: Server) -> None:
    server.redirects["/v1/namespaces/shop/tables/old"] = (302, "../tables/orders")
    catalog = rest(server, token="t0ken-of-mine")
    assert catalog.load(("shop", "old")).metadata.snapshots
    assert server.asked[-1][3]["authorization"] == "Bearer t0ken-of-mine"


def test_redirects_in_a_circle_end(server: Server) -> None:
    server.redirects["/v1/namespaces/shop/tables/orders"] = (302, "orders")
    with pytest.raises(CatalogError, match="status 302, which is no answer"):
        rest(server).load(("shop", "orders"))
    assert len(server.asked) < 8


def test_a_token_request_follows_no_redirect(server: Server, other: Server) -> None:
    server.redirects["/v1/oauth/tokens"] = (307, f"{other.uri}/v1/oauth/tokens")
    with pytest.raises(CatalogError, match="the token request was refused: status 307"):
        rest(server, credential="me:s3cret!").load(("shop", "orders"))
    assert other.asked == []


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("https://a", "https://A:443/x", True),
        ("http://a", "https://a", True),
        ("https://a", "http://a", False),
        ("http://a:80", "http://a:81", False),
        ("https://a", "https://a.evil", False),
        ("https://a", "https://a@evil", False),
        ("https://a", "https://evil#@a", False),
        ("https://a", "https://evil\\@a", False),
        ("https://a", "//a", False),
        ("https://a", "https://a:99999", False),
    ],
)
def test_which_addresses_are_one_server(one: str, two: str, same: bool) -> None:
    assert is_same_server(two, [one]) is same


# ------------------------------------------------------------------ stores


@pytest.mark.parametrize(
    ("address", "given"),
    [
        ({"gcs.service.host": "https://evil.example"}, {"gcs.oauth2.token": "mine"}),
        ({"gcs.service.host": "http://storage.googleapis.com"}, {"gcs.oauth2.token": "mine"}),
        ({"gcs.service.host": "https://evil.example"}, {}),
        ({"adls.blob-storage-authority": ".evil.example"}, {"adls.sas-token": "mine"}),
        ({"adls.dfs-storage-authority": ".evil.example"}, {"adls.client-secret": "mine"}),
    ],
)
@pytest.mark.parametrize("where", ["overrides", "config"])
def test_a_secret_of_the_user_goes_to_no_store_of_the_server(
    server: Server, address: dict[str, str], given: dict[str, str], where: str
) -> None:
    if where == "config":
        server.tables["shop", "orders"]["config"] = address
    else:
        server.config["overrides"] = address
    with pytest.raises(CatalogError, match="your own are not sent there"):
        rest(server, **given).load(("shop", "orders"))


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ({"gcs.service.host": "https://s.example", "gcs.oauth2.token": "lent"}, {}),
        ({"gcs.service.host": "https://s.example"}, {"gcs.service.host": "https://s.example"}),
        ({"gcs.service.host": "https://storage.googleapis.com"}, {"gcs.oauth2.token": "mine"}),
        ({"s3.endpoint": "http://s.example"}, {"s3.access-key-id": "a"}),
    ],
)
def test_stores_that_the_server_may_name(
    server: Server, told: dict[str, str], given: dict[str, str]
) -> None:
    server.tables["shop", "orders"]["config"] = told
    found = rest(server, **given).load(("shop", "orders")).storage.properties
    assert {**found, **told} == found


def test_what_opens_the_catalog_stays_with_it(server: Server) -> None:
    """Storage goes to workers and into plans; it needs no more than opens the files."""
    given = {**PROOFS[1], **PROOFS[2], "oauth2-server-uri": server.uri, "rest.signing-region": "x"}
    found = rest(server, **given, **{"s3.region": "eu"}).load(("shop", "orders")).storage
    assert dict(found.properties) == {"s3.region": "eu"}


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
    table = server.tables["shop", "orders"]
    if place is not None:
        table["metadata-location"] = place
    given: dict[str, Any] = {"uri": server.uri, "properties": {"type": "rest"}}
    for access in ({"service": True}, {"confine": True}):
        with (
            icesql.connect("lake", **given, **access) as connection,
            pytest.raises(AccessDeniedError, match="confine"),
        ):
            connection.execute("SELECT count(*) FROM shop.orders")


@pytest.mark.parametrize(
    ("place", "location", "listed"),
    [
        ("s3://b/t/metadata/x.json", "file:///etc", "file:///etc/hosts"),
        ("s3://b/t/metadata/x.json", "s3://b/t", "file:///etc/hosts"),
        ("s3://b/t/metadata/x.json", "s3://b/t", "s3://b/other/metadata/snap-1.avro"),
        ("s3:///x.json", "s3://b/t", "s3://b/t/metadata/snap-1.avro"),
        ("s3://b.json", "s3://b/t", "s3://b/t/metadata/snap-1.avro"),
        ("", "file:///etc", "file:///etc/hosts"),
        ("", "/", "/etc/hosts"),
    ],
)
def test_a_confined_table_names_no_file_of_another_place(
    server: Server, place: str, location: str, listed: str
) -> None:
    table = server.tables["shop", "orders"]
    metadata = json.loads(json.dumps(table["metadata"]))
    for snapshot in metadata["snapshots"]:
        snapshot["manifest-list"] = listed
    table["metadata"] = {**metadata, "location": location}
    table["metadata-location"] = place or None
    given: dict[str, Any] = {"uri": server.uri, "properties": {"type": "rest", "s3.region": "r"}}
    with (
        icesql.connect("lake", **given, service=True) as connection,
        pytest.raises(AccessDeniedError, match="confine"),
    ):
        connection.execute("SELECT max(id) FROM shop.orders").fetchall()


def test_roots_that_the_owner_names_hold_for_a_server(server: Server, warehouse: Path) -> None:
    given: dict[str, Any] = {"uri": server.uri, "properties": {"type": "rest"}}
    with icesql.connect("lake", **given, confine=[warehouse]) as connection:
        assert connection.execute("SELECT max(id) IS NULL FROM shop.orders").fetchall()
    with (
        icesql.connect("lake", **given, confine=["/nowhere"]) as connection,
        pytest.raises(AccessDeniedError),
    ):
        connection.execute("SELECT max(id) FROM shop.orders").fetchall()


# ------------------------------------------------------------------ answers


def answering(server: Server, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Let everything after the configuration be answered with one body."""

    def odd(request: Any, *_: Any) -> None:
        request.send_response(200)
        for key, value in (headers or {}).items():
            request.send_header(key, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    server.catalog = odd  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"namespaces": [1]}',
        b'{"namespaces": ["ab"]}',
        b'{"namespaces": [[1]]}',
        b'{"namespaces": {}}',
        b'{"namespaces": [], "next-page-token": {"a": 1}}',
        b'{"namespaces": [["a"]], "identifiers": [7]}',
        b'{"namespaces": [["a"]], "identifiers": [{"namespace": 7, "name": "x"}]}',
        b"null",
        b"\xff\xfe",
        b"",
    ],
)
@pytest.mark.parametrize("ask", [lambda c: c.tables(), lambda c: c.load(("a", "b"))])
def test_answers_of_another_shape_are_errors_of_ours(
    server: Server, body: bytes, ask: Callable[[Any], Any]
) -> None:
    answering(server, body)
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
    answering(server, packed, {"Content-Encoding": "gzip"})
    with pytest.raises(CatalogError, match="its answer has more than 1,048,576 bytes"):
        catalog.namespaces()


def test_an_answer_that_drips_in_ends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_client, "_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(rest_client, "_STEP", 1)
    catalog = rest(server)
    catalog.tables(("shop",))

    def drip(request: Any, *_: Any) -> None:
        import time

        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        for _ in range(20):
            try:
                request.wfile.write(b" ")
                request.wfile.flush()
            except OSError:
                return
            time.sleep(0.05)

    server.catalog = drip  # type: ignore[method-assign]
    with pytest.raises(CatalogError, match="its answer did not come in"):
        catalog.namespaces()


def test_what_is_kept_of_tables_is_bounded(server: Server) -> None:
    catalog = rest(server)
    catalog._kept.max_bytes = 3 * len(json.dumps(server.tables["shop", "orders"]))
    for number in range(20):
        table = {**server.tables["shop", "orders"], "etag": f'"{number}"'}
        server.tables["shop", f"t{number}"] = table
        catalog.load(("shop", f"t{number}"))
    assert 0 < len(catalog._kept) <= 3
