"""The store of a configured catalog opens the paths that the connection's owner wrote, no other."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import icesql
from icesql.catalog.configuration import of_store, with_given
from icesql.errors import AccessDeniedError, UnsupportedSqlError
from tests.rows import rows_of
from tests.sessions import fetched
from tests.stores.server import Store

KEY = "AKIAOFTHECATALOG0000"
BACKUP = "s3://backup/small"
SQL = f"SELECT count(*), sum(id) FROM iceberg_scan('{BACKUP}')"
ROWS = [(960, 460320)]

Open = Callable[..., icesql.Connection]


@pytest.fixture
def own(bucket: Path, tmp_path: Path) -> Iterator[Store]:
    """The catalog's store: the buckets ``lake`` and ``backup``."""
    folder = tmp_path / "store"
    shutil.copytree(bucket, folder)
    (folder / "backup").mkdir()
    with Store(folder).running() as running:
        yield running


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store for requests without a known endpoint: replaces AWS, with this machine's keys."""
    folder = tmp_path / "vendor"
    folder.mkdir()
    with Store(folder).running() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", running.endpoint)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHISMACHINE000")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-this-machine")
        yield running


@pytest.fixture
def lake(
    own: Store, vendor: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    """Connections to the catalog ``lake``, which is configured with the store and its key."""
    monkeypatch.setenv("ICESQL_CACHE_DIRECTORY", str(tmp_path / "cache"))
    properties = {"type": "sql", "uri": f"sqlite:///{own.folder}/catalog.db", **own.properties(KEY)}
    for name, value in properties.items():
        variable = name.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{variable}", value)
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(icesql.connect("lake", **given))


def test_copy_restore_and_scan_of_a_configured_catalog(
    lake: Open, own: Store, vendor: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    from icesql.cli import main

    manual = (Path(icesql.__file__).parent / "manual" / "maintain.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(icesql copy \S+ TO s3://.*?)```", manual, re.DOTALL)
    here = {"sales.orders_again": "lake.again", "sales.orders": "lake.small", "prod": "lake",
            "s3://backup/orders": BACKUP}  # fmt: skip
    for command in block.splitlines():
        words = [here.get(each, each) for each in command.split()[1:]]
        assert main(words) == 0, words
    assert main(["--catalog", "lake", "--format", "csv", "-c", SQL]) == 0
    assert capsys.readouterr().out.endswith("\n960,460320\n")
    connection = lake()
    assert fetched(connection, "SELECT count(*), sum(id) FROM lake.again") == ROWS
    for path in (BACKUP, "s3a://backup/small/"):
        assert fetched(connection, SQL.replace(BACKUP, path)) == ROWS
    connection.register_table("kept", BACKUP)
    assert fetched(connection, "SELECT count(*), sum(id) FROM kept") == ROWS
    sql = "SELECT count(*), sum(id) FROM iceberg_scan(?)"
    assert fetched(connection, sql, [BACKUP]) == ROWS
    assert own.keys == {KEY}
    assert vendor.requests == []


@pytest.fixture
def backup(lake: Open, own: Store) -> str:
    lake().execute(f"CALL system.copy_table('lake.small', '{BACKUP}')")
    own.clear()
    return BACKUP


def test_the_path_of_a_view_or_of_a_service_is_no_owners(
    backup: str, lake: Open, own: Store, vendor: Store
) -> None:
    with sqlite3.connect(own.folder / "catalog.db") as database:
        database.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
    lake().execute("CREATE VIEW lake.innocent AS SELECT count(*) AS n FROM lake.small")
    (view,) = _views(own)
    text = view.read_text().replace("FROM lake.small", f"FROM iceberg_scan('{backup}')")
    view.write_text(text)
    connections: list[tuple[icesql.Connection, str, type[icesql.Error]]] = [
        (lake(), "SELECT * FROM lake.innocent", UnsupportedSqlError),
        (lake(service=True, tables_by_path=["s3://backup"]), SQL, AccessDeniedError),
        (lake(service=True), SQL, AccessDeniedError),
    ]
    own.clear()
    for connection, sql, kind in connections:
        with pytest.raises(kind):
            fetched(connection, sql)
    assert not any("backup" in each.path for each in own.requests)
    assert vendor.requests == []


def _views(store: Store) -> list[Path]:
    with sqlite3.connect(store.folder / "catalog.db") as database:
        rows = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE iceberg_type = 'VIEW'"
        ).fetchall()
    return [
        Path(str(row[0]).replace("s3://", f"{store.folder}/").removeprefix("file://"))
        for row in rows
    ]


def test_what_metadata_names_elsewhere_is_not_asked_for(
    backup: str, lake: Open, own: Store, vendor: Store
) -> None:
    """A foreign table, with a manifest list in a bucket that only the catalog may read."""
    (metadata,) = sorted((own.folder / "backup/small/metadata").glob("*.metadata.json"))[-1:]
    text = metadata.read_text()
    for elsewhere in ("s3://lake/small", "s3://private/small", "s3a://lake/small"):
        metadata.write_text(
            text.replace("s3://backup/small/metadata/snap", f"{elsewhere}/metadata/snap")
        )
        own.clear()
        with pytest.raises(AccessDeniedError):
            fetched(lake(), SQL)
        assert {each.path.split("/")[1] for each in own.requests} <= {"backup"}
    assert vendor.requests == []


def test_limits_of_the_connection_hold(backup: str, lake: Open, own: Store) -> None:
    for limit in (
        {"tables_by_path": False},
        {"tables_by_path": ["s3://lake"]},
        {"confine": ["s3://lake"]},
    ):
        with pytest.raises(AccessDeniedError):
            lake(**limit).execute(SQL)
    assert not any("backup" in each.path for each in own.requests)
    assert fetched(lake(tables_by_path=["s3://backup"], confine=["s3://backup"]), SQL) == ROWS


def test_another_store_of_a_call_gets_no_key_of_the_catalog(
    backup: str, lake: Open, own: Store, vendor: Store, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with Store(tmp_path / "other").running() as other:
        for call in (
            f"restore_table('{backup}', ",
            "copy_table('lake.small', 's3://there/small', ",
        ):
            sql = f"CALL system.{call}properties => map('s3.endpoint', '{other.endpoint}', 's3.region', 'x'))"
            with suppress(icesql.Error):
                lake().execute(sql)
        assert {each.path.split("/")[1] for each in other.requests} == {"backup", "there"}
        assert KEY not in other.keys


S3 = {"s3.endpoint": "http://s", "s3.access-key-id": "k", "client.region": "r"}
STORES: dict[str, dict[str, str]] = {
    "s3": S3,
    "gcs": {"gcs.oauth2.token": "t"},
    "azure": {"adls.account-name": "lake", "adls.account-key": "k"},
    "hdfs": {"hdfs.host": "node", "hdfs.port": "8020", "hdfs.user": "u"},
    "-": {},
}


@rows_of(__file__, "stores_of_paths.tsv", "path", "store")
def test_the_store_of_a_path(path: str, store: str) -> None:
    signed = {"s3.signer": "S3V4RestSigner", "s3.remote-signing-enabled": "true", "py-io-impl": "x"}
    given = {**signed, "uri": "u", "token": "t"}
    for properties in STORES.values():
        given |= properties
    assert of_store(given, path) == STORES[store]


def test_the_store_of_a_connection_string() -> None:
    own = {"adls.connection-string": "A=b;AccountName=lake;AccountKey=k"}
    for host in ("lake.dfs.core.windows.net", "own.test"):
        given = {**own, "warehouse": "abfss://c@own.test/w"}
        assert of_store(given, f"abfss://c@{host}/t") == own
    assert of_store({"adls.sas-token": "s"}, "abfss://c@any.dfs.core.windows.net/t") == {}


def test_properties_for_another_endpoint_are_alone() -> None:
    assert with_given(S3, {}, {"s3.endpoint": "http://o"}) == {"s3.endpoint": "http://o"}
    more = {"s3.endpoint": "http://s", "s3.region": "x"}
    assert with_given(S3, {}, more) == S3 | more
