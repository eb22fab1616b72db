"""Credentials that a REST catalog lends: renewed once for all threads when they expire."""

from __future__ import annotations

import json
import pickle
import re
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from icesql.errors import StorageError
from icesql.storage.stores import files
from icesql.storage.stores.principal import VENDED, expires_at, properties_at
from tests.catalog.rest_server import Server, rest
from tests.sessions import fetched
from tests.stores.conftest import Connect, metadata_of
from tests.stores.server import Answer, Request, Store, error

SQL = "SELECT count(*), sum(id) FROM lake.small"
ROWS = [(24 * 40, sum(range(24 * 40)))]
TABLE = "/v1/namespaces/lake/tables/small"
LIST = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"


class Lender(Server):
    """A catalog that vends one key at a time, the only one that its store accepts."""

    def __init__(self, bucket: Path, store: Store) -> None:
        super().__init__()
        self.key, self.life, self.refusal = 1, 3600.0, error(400, "ExpiredToken", "It is over.")
        self.store, self.lives, self.data_requests = store, 10**9, 0
        for name in ("small", "large"):
            self.tables["lake", name] = metadata_of(bucket, name) | {"etag": '"same"'}
        store.fault = self.check
        self.vend()

    def vend(self) -> None:
        lent = {
            "s3.access-key-id": f"ASIA{self.key:016}",
            "s3.secret-access-key": f"secret-of-{self.key:016}",
            "s3.session-token": f"session-{self.key:016}",
            "s3.session-token-expires-at-ms": str(int((time.time() + self.life) * 1000)),
        }
        vended = [
            {"prefix": "s3://lake/other", "config": {"s3.access-key-id": "wrong"}},
            {"prefix": "s3://lake/", "config": lent},
        ]
        for table in self.tables.values():
            table["storage-credentials"] = vended

    def renew(self) -> None:
        """Change to another key."""
        self.key += 1
        self.vend()

    def check(self, request: Request) -> Answer | None:
        found = re.search(r"Credential=ASIA(\d+)/", request.headers.get("authorization", ""))
        if request.is_data:
            self.data_requests += 1
            if self.data_requests == self.lives:
                self.renew()
        return None if found and int(found[1]) == self.key else self.refusal

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        if parts[-1] == "credentials":
            lent = self.tables["lake", "small"]["storage-credentials"]
            self.send(request, 200, {"storage-credentials": lent})
            return
        super().catalog(request, parts, query, headers)

    def renewals(self, table: str = "small") -> list[str]:
        """The requests for credentials after the first one for the table."""
        wanted = TABLE.replace("small", table)
        return [path for path in self.paths() if path.startswith(wanted)][1:]


@pytest.fixture
def lender(bucket: Path, store: Store) -> Iterator[Lender]:
    with closing(Lender(bucket, store)) as made:
        yield made


@pytest.fixture
def lend(lender: Lender, connect_to: Connect) -> Connect:
    """Connections to the lending catalog."""
    return partial(connect_to, lender.uri)


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_key_that_expires_in_a_scan_is_renewed_once(
    lend: Connect, lender: Lender, status: int, reader: str
) -> None:
    code = "ExpiredToken" if status == 400 else "AccessDenied"
    lender.refusal, lender.lives = error(status, code, "It is over."), 5
    with lend() as connection:
        connection.execute(f"SET local_reader = '{reader}'")
        assert fetched(connection, SQL) == ROWS
    assert lender.renewals() == [TABLE]


def test_a_key_that_expires_within_a_large_file_is_renewed_once(
    lend: Connect, lender: Lender, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many requests at once, as larger files take: some are refused while the key is renewed.
    monkeypatch.setattr(files, "PART_BYTES", 1 << 16)
    lender.lives = 4
    with lend() as connection:
        connection.execute("SET whole_file_size = '1kB'")
        sql = "SELECT count(*), max(id) FROM lake.large WHERE price > 10"
        wanted = sum(number % 977 / 4 > 10 for number in range(80_000))
        assert fetched(connection, sql) == [(wanted, 79_999)]
    assert len(store.data_requests) > 6
    assert len(lender.renewals("large")) == 1


def test_the_endpoint_for_credentials_is_used_where_the_catalog_lists_it(
    lend: Connect, lender: Lender
) -> None:
    lender.config["endpoints"] = [LIST, f"{LIST}/credentials"]
    lender.lives = 5
    assert fetched(lend(), SQL) == ROWS
    assert lender.renewals() == [f"{TABLE}/credentials"]


def test_a_key_is_renewed_before_it_expires(lend: Connect, lender: Lender, store: Store) -> None:
    lender.life = 60.0
    lender.vend()
    assert fetched(lend(), SQL) == ROWS
    assert lender.renewals() == [TABLE]
    assert len(lender.store.requests) == 24 + 2  # and none that was refused


def test_an_unchanged_table_does_not_keep_old_keys(lend: Connect, lender: Lender) -> None:
    connection = lend()
    lender.life = 200.0
    lender.vend()
    fetched(connection, SQL)
    asked = len(lender.asked)
    fetched(connection, SQL)
    assert "if-none-match" not in lender.asked[asked][3]
    lender.life = 3600.0
    lender.vend()
    fetched(connection, SQL)
    fetched(connection, SQL)
    assert lender.asked[-1][3]["if-none-match"] == '"same"'


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", "AccessDenied: Not for you. [s3:GetObject] (status 403)"),
        (400, "ExpiredToken", "ExpiredToken: Not for you. (status 400)"),
        (404, "NoSuchBucket", "NoSuchBucket: Not for you. (status 404)"),
    ],
)
def test_a_store_that_refuses_every_key_is_told_with_its_reason(
    lend: Connect, lender: Lender, store: Store, status: int, code: str, words: str
) -> None:
    lender.refusal = error(status, code, "Not for you.")
    store.fault = lambda request: lender.refusal
    with pytest.raises(StorageError) as caught:
        fetched(lend(), SQL)
    told = str(caught.value)
    assert "s3://lake/small/metadata/" in told
    assert words in told
    assert "secret-of" not in told
    assert len(lender.renewals()) <= 1


def test_a_catalog_that_gives_no_other_keys_is_told_beside_the_store(
    lend: Connect, lender: Lender
) -> None:
    connection = lend()
    lender.lives = 5
    renew = lender.renew

    def refuse() -> None:
        renew()
        lender.tables.clear()

    lender.renew = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match=r"ExpiredToken: It is over.*no new credentials came: "):
        fetched(connection, SQL)
    assert lender.renewals() == [TABLE]


def test_a_worker_renews_for_itself(lender: Lender, store: Store) -> None:
    lender.needs_token = True
    table = rest(lender, credential="me:s3cret!", **store.place).load(("lake", "small"))
    there = pickle.loads(pickle.dumps(table.storage))
    lender.renew()
    path = table.metadata.snapshots[table.metadata.current_snapshot_id].manifest_list
    assert there.read(path)[:3] == b"Obj"
    assert lender.tokens == ["token1", "token2"]
    assert "s3cret" not in repr(there)


def test_renewal_is_switched_off_as_java_does(lend: Connect, lender: Lender) -> None:
    lender.lives = 5
    connection = lend(**{"client.refresh-credentials-enabled": "false"})
    with pytest.raises(StorageError, match="ExpiredToken: It is over"):
        fetched(connection, SQL)
    assert lender.renewals() == []


def test_what_is_kept_on_disk_outlives_a_key(lend: Connect, lender: Lender, store: Store) -> None:
    assert fetched(lend("on"), SQL) == ROWS
    lender.renew()
    store.clear()
    assert fetched(lend("on"), SQL) == ROWS
    assert store.requests == []
    assert fetched(lend("on", token="another-principal"), SQL) == ROWS
    assert len(store.data_requests) == 24


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("s3.session-token-expires-at-ms", "1500", 1.5),
        ("gcs.oauth2.token-expires-at", "2000", 2.0),
        ("adls.sas-token-expires-at-ms.account", "3000", 3.0),
        ("s3.session-token-expires-at-ms", "soon", None),
        ("s3.session-token", "1500", None),
    ],
)
def test_when_credentials_expire(name: str, value: str, found: float | None) -> None:
    assert expires_at({name: value}) == found


@pytest.mark.parametrize(
    ("places", "reads"),
    [
        (("s3://lake/small/metadata/", "s3://lake/small/data"), True),
        (("s3a://lake/", "s3://lake/small/data/"), True),
        (("s3://lake/small/metadata", "s3://lake/large/"), False),
        (("s3://lake/small/metadata", None), False),
    ],
)
def test_credentials_open_nothing_outside_of_their_prefix(
    places: tuple[str, str | None],
    reads: bool,
    lender: Lender,
    lend: Connect,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    keys = [f"ASIA{number:016}" for number in range(len(places))]
    lender.tables["lake", "small"]["storage-credentials"] = [
        {"prefix": place, "config": {"s3.access-key-id": key, "s3.secret-access-key": f"of-{key}"}}
        for place, key in zip(places, keys, strict=True)
        if place is not None
    ]
    store.fault = None
    connection = lend(**{"s3.access-key-id": "AKIAOFTHEUSER", "s3.secret-access-key": "own-secret"})
    assert fetched(connection, SQL) == ROWS
    for request in store.requests:
        found = re.search(r"Credential=(\w+)/", request.headers["authorization"])
        assert found is not None
        signed = keys[request.is_data] if reads or not request.is_data else "AKIAOFTHEUSER"
        assert found[1] == signed, request.path
    assert any(each.is_data for each in store.requests)


def test_a_path_with_dots_is_of_no_prefix() -> None:
    vended = {"s3://lake/a": {"k": "lent"}, "s3://lake/a/b": {"k": "closer"}, "": {"k": "own"}}
    properties = {VENDED: json.dumps(vended)}
    for uri, key in {
        "s3://lake/a/x": "lent", "s3n://lake/a/b/x": "closer", "s3://lake/c": "own", "gs://lake/a/x": "own",
        "s3://lake/a/../c": "own", "s3://lake/a/%2e%2E/c": "own", "s3://lake/a/./c": "own",
    }.items():  # fmt: skip
        assert properties_at(properties, uri)[1] == {"k": key}, uri
    assert properties_at({"k": "v"}, "s3://any") == ("", {"k": "v"})
