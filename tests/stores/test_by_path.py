"""Tables of a store by their path, with the properties of the connection."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql import cli
from icesql.catalog.configuration import of_storage
from icesql.errors import StorageError
from tests.sessions import answer, fetched
from tests.stores.server import Store

SQL = "SELECT count(*), sum(id) FROM iceberg_scan('s3://lake/small')"
ROWS = [(960, 460320)]


@pytest.fixture(autouse=True)
def _no_keys_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ICESQL_CACHE_DIRECTORY", str(tmp_path / "cache"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def test_the_properties_of_a_connection_open_tables_by_path(store: Store) -> None:
    with icesql.connect(properties=store.properties()) as connection:
        assert fetched(connection, SQL) == ROWS
        connection.register_table("small", "s3://lake/small")
        assert fetched(connection, "SELECT count(*), sum(id) FROM small") == ROWS
    assert store.requests


def test_the_command_line_takes_properties(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"--property={name}={value}" for name, value in store.properties().items()]
    assert cli.main([*given, "-c", SQL, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["960,460320"]


def test_a_property_without_a_value_is_a_wrong_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["--property", "s3.region", "-c", "SELECT 1"]) == cli.USAGE
    assert "'s3.region' is not NAME=VALUE" in capsys.readouterr().err


def test_a_secret_of_them_is_in_no_error(store: Store) -> None:
    properties = {**store.properties(), "s3.endpoint": "http://127.0.0.1:1"}
    with pytest.raises(StorageError) as caught:
        answer(SQL, properties=properties)
    assert "s3://lake/small" in str(caught.value)
    assert properties["s3.secret-access-key"] not in repr(caught.value)


def test_what_shows_a_catalog_who_asks_is_not_for_files() -> None:
    given = {
        "uri": "http://c", "token": "t", "credential": "a:b", "header.X": "y", "rest.signing-name": "z",
        "oauth2-server-uri": "http://o", "ssl": {"cabundle": "x"}, "s3.region": "eu", "s3.none": None,
    }  # fmt: skip
    assert of_storage(given) == {"s3.region": "eu"}
