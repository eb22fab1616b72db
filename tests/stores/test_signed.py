"""S3 requests that the catalog signs: requests to it and to the store, and cached signatures."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import icesql
from icesql.errors import CatalogError, NotSupportedError, StorageError
from icesql.storage.stores.principal import identity
from icesql.storage.stores.signed import Signature, _with_signed
from tests.catalog.rest_server import Server, rest
from tests.sessions import fetched
from tests.stores.conftest import Connect, metadata_of
from tests.stores.server import Answer, Fault, Request, Store, at_random, error

SQL = "SELECT count(*), sum(id) FROM lake.small"
ROWS = [(24 * 40, sum(range(24 * 40)))]
DEFAULT = "/v1/aws/s3/sign"
OWN = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"


class Notary(Server):
    """A catalog that signs requests; its store accepts no others.

    The signature covers method, address and a generation, but not the range, as Java's servlet.
    """

    def __init__(self, bucket: Path, store: Store) -> None:
        super().__init__()
        self.generation, self.lets_keep, self.status = 1, True, 200
        self.address: Callable[[str], str] = lambda uri: uri
        self.signed: list[dict[str, Any]] = []
        self.signing_paths: set[str] = set()
        self.signing_headers: list[dict[str, str]] = []
        self.store = store
        self.fault: Fault = lambda request: None
        for name in ("small", "large"):
            signing = {"config": {"s3.remote-signing-enabled": "true"}}
            self.tables["lake", name] = metadata_of(bucket, name) | signing
        store.fault = self.check

    def seal(self, method: str, uri: str) -> str:
        text = f"{self.generation} {method} {uri}"
        return hashlib.sha256(text.encode()).hexdigest()

    def answer(self, request: Any) -> None:
        if not urlsplit(request.path).path.endswith("/sign"):
            super().answer(request)
            return
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.signed.append(body)
        self.signing_paths.add(request.path)
        self.signing_headers.append({k.lower(): v for k, v in request.headers.items()})
        if self.status != 200:
            self.send(request, self.status, {"error": {"message": "not this object"}})
            return
        seal = self.seal(body["method"], body["uri"])
        headers = {**body["headers"], "Authorization": [seal], "Cache-Control": ["private"]}
        kept = {"Cache-Control": "private"} if self.lets_keep else {}
        self.send(request, 200, {"uri": self.address(body["uri"]), "headers": headers}, kept)

    def check(self, request: Request) -> Answer | None:
        uri = f"{self.store.endpoint}{quote(request.path, safe='/-_.~')}"
        if request.headers.get("authorization") != self.seal(request.method, uri):
            return error(403, "SignatureDoesNotMatch", "The signature does not match.")
        return self.fault(request)


@pytest.fixture
def notary(bucket: Path, store: Store) -> Iterator[Notary]:
    with closing(Notary(bucket, store)) as made:
        yield made


@pytest.fixture
def signed(notary: Notary, connect_to: Connect) -> Connect:
    """Connections to the signing catalog."""
    return partial(connect_to, notary.uri)


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_rows_come_through_signed_requests(signed: Connect, notary: Notary, reader: str) -> None:
    with signed() as connection:
        connection.execute(f"SET local_reader = '{reader}'")
        assert fetched(connection, SQL) == ROWS
    first = notary.signed[0]
    assert first["method"] == "GET"
    assert first["region"] == "us-east-1"
    assert first["provider"] == "s3"
    assert notary.signing_paths == {DEFAULT}


@pytest.mark.parametrize("lets_keep", [True, False])
def test_one_signature_serves_all_ranges_of_a_file(
    signed: Connect, notary: Notary, store: Store, lets_keep: bool
) -> None:
    notary.lets_keep = lets_keep
    connection = signed()
    connection.execute("SET whole_file_size = '1kB'")
    sql = "SELECT count(*), max(id) FROM lake.large WHERE price > 10"
    wanted = sum(number % 977 / 4 > 10 for number in range(80_000))
    assert fetched(connection, sql) == [(wanted, 79_999)]
    data = [each for each in notary.signed if each["uri"].endswith(".parquet")]
    # Requests that begin together may each have requested a signature.
    assert (len(data) < len(store.data_requests)) is lets_keep
    assert len(data) <= len(store.data_requests)


def test_a_kept_signature_that_is_refused_is_asked_for_anew(
    signed: Connect, notary: Notary
) -> None:
    storage = rest(notary, **notary.store.place).load(("lake", "small")).storage
    path = notary.tables["lake", "small"]["metadata"]["snapshots"][-1]["manifest-list"]
    whole = storage.read(path)
    notary.generation += 1
    assert storage.read(path) == whole
    assert len(notary.signed) == 2
    # A worker's copy opens the catalog for itself.
    assert pickle.loads(pickle.dumps(storage)).read(path) == whole
    assert storage.size(path) == len(whole)


@pytest.mark.parametrize(
    ("table", "listed", "expected"),
    [
        ({"s3.signer.endpoint": "v1/here/sign"}, False, "/v1/here/sign"),
        ({"signer.endpoint": "/v1/there/sign"}, False, "/v1/there/sign"),
        ({}, True, "/v1/namespaces/lake/tables/small/sign"),
        ({"s3.signer.endpoint": "v1/here/sign"}, True, "/v1/here/sign"),
    ],
)
def test_where_requests_are_signed(
    signed: Connect, notary: Notary, table: dict[str, str], listed: bool, expected: str
) -> None:
    notary.tables["lake", "small"]["config"] |= table
    if listed:
        notary.config["endpoints"] = [OWN]
    assert fetched(signed(), SQL) == ROWS
    assert notary.signing_paths == {expected}


def test_what_the_server_wants_to_see_is_shown(signed: Connect, notary: Notary) -> None:
    notary.tables["lake", "small"]["remote-signing-config"] = {
        "properties": {"warehouse": "w"},
        "headers": {"X-Tenant": ["a", "b"]},
    }
    assert fetched(signed(token="tok-of-the-user"), SQL) == ROWS
    assert notary.signed[0]["properties"] == {"warehouse": "w"}
    assert notary.signing_headers[0]["x-tenant"] == "a, b"
    assert notary.signing_headers[0]["authorization"] == "Bearer tok-of-the-user"
    assert not any("Bearer" in str(each.headers) for each in notary.store.requests)


def test_the_users_token_goes_to_no_other_signer(signed: Connect, notary: Notary) -> None:
    notary.tables["lake", "small"]["config"] |= {"s3.signer.uri": "http://signer.example"}
    with pytest.raises(CatalogError, match=r"signed by http://signer\.example/v1/aws/s3/sign, wh"):
        signed(token="tok-of-the-user").execute(SQL)
    notary.tables["lake", "small"]["config"]["s3.signer.uri"] = notary.uri
    assert fetched(signed(token="tok-of-the-user"), SQL) == ROWS


def test_a_signature_for_another_address_is_refused(signed: Connect, notary: Notary) -> None:
    for address in ("http://127.0.0.1:1/x", notary.store.endpoint + "/lake/other"):
        notary.address = lambda uri, address=address: address  # type: ignore[misc]
        with pytest.raises(StorageError, match="signed a request to another address"):
            signed().execute(SQL)


def test_a_signer_adds_headers_and_changes_none() -> None:
    """With names in lower case, none is sent twice, and no host is sent."""
    told = {"range": "bytes=0-1", "host": "other.bucket", "authorization": "seal"}
    sent = {"Accept-Encoding": "identity", "Range": "bytes=5-9"}
    for added in (told, {name.title(): text for name, text in told.items()}):
        made = _with_signed(sent, Signature("https://b/x", added))
        names = {name.lower(): text for name, text in made.items()}
        assert len(names) == len(made) == 3
        assert (names["range"], names["authorization"]) == ("bytes=5-9", "seal")


@pytest.mark.parametrize(
    ("status", "fault", "told"),
    [
        (403, None, r"was not signed: .*403 Forbidden: not this object"),
        (200, error(403, "AccessDenied", "no"), "AccessDenied: no"),
        (200, error(404, "NoSuchKey", "gone"), "no such file"),
    ],
)
def test_a_refusal_to_sign_and_one_of_the_store_are_told(
    signed: Connect, notary: Notary, status: int, fault: Answer | None, told: str
) -> None:
    notary.status, notary.fault = status, lambda request: fault
    with pytest.raises(StorageError, match=told):
        signed().execute(SQL)


def test_a_store_that_fails_now_and_then_gives_all_rows(signed: Connect, notary: Notary) -> None:
    notary.fault = at_random(7, 0.1, 0.05, 0.05, 0.05)
    with signed() as connection:
        for _ in range(5):
            assert fetched(connection, SQL) == ROWS


def test_a_signer_that_hangs_is_left_at_once(signed: Connect, notary: Notary) -> None:
    with signed() as connection:
        fetched(connection, "SHOW TABLES FROM lake")
        released = threading.Event()
        notary.address = lambda uri: uri if released.wait(60) else ""
        connection.execute("SET query_timeout = 0.4")
        started = time.monotonic()
        with pytest.raises(icesql.OperationalError, match="time limit"):
            fetched(connection, SQL)
        assert time.monotonic() - started < 30
        released.set()


def test_keys_that_are_given_need_no_signing(signed: Connect, notary: Notary) -> None:
    notary.store.fault = None
    assert fetched(signed(**notary.store.properties()), SQL) == ROWS
    assert not notary.signed


def test_a_listing_and_what_writes_are_refused_by_name(notary: Notary) -> None:
    storage = rest(notary, **notary.store.place).load(("lake", "small")).storage
    with pytest.raises(NotSupportedError, match=r"listing .* where the catalog signs"):
        storage.list_folder("s3://lake/small")
    with pytest.raises(NotSupportedError, match=r"signed by the catalog: .* writes nothing"):
        storage.remote_files().filesystem("s3://lake/small/data/new.parquet")


def test_what_is_kept_of_one_user_is_not_anothers(notary: Notary) -> None:
    """Signed reads have no key: users are distinguished by their credentials for the catalog."""
    names = set()
    for token in ("one-token-of-mine", "another-token", "another-token"):
        storage = rest(notary, token=token, **notary.store.place).load(("lake", "small")).storage
        assert "token" not in storage.properties
        names.add(identity("s3", "lake", storage.properties))
    assert len(names) == 2
