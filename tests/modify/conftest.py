"""Connections to catalogs that are made for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.fixture
def catalog(request, tmp_path, monkeypatch) -> Iterator[dict[str, Any]]:
    """The arguments of ``connect`` for an empty catalog, by default a folder."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    uri = f"sqlite:///{tmp_path}/catalog.db"
    match getattr(request, "param", "directory"):
        case "directory":
            yield {"warehouse": str(warehouse)}
        case "rest":
            from tests.catalog.writes.rest_writes import WritableServer

            with closing(WritableServer(warehouse)) as server:
                yield {"uri": server.uri}
        case "pyiceberg":  # like any database other than SQLite
            monkeypatch.setattr("icesql.catalog.sqlite.sqlite_file", lambda uri: None)
            place = {"type": "sql", "uri": uri, "warehouse": str(warehouse)}
            yield {"catalog": "c", "properties": place}
        case _:
            from pyiceberg.catalog.sql import SqlCatalog

            SqlCatalog("c", uri=uri, warehouse=f"file://{warehouse}").engine.dispose()
            yield {"uri": uri, "warehouse": str(warehouse)}


@pytest.fixture
def con(catalog: dict[str, Any]) -> Iterator[icesql.Connection]:
    with icesql.connect(**catalog, files=True) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


@pytest.fixture
def other(catalog: dict[str, Any], con: icesql.Connection) -> Iterator[icesql.Connection]:
    """Another connection to the same catalog."""
    with icesql.connect(**catalog) as connection:
        yield connection


@pytest.fixture(scope="module")
def lasting(tmp_path_factory) -> Iterator[tuple[icesql.Connection, Path]]:
    """A connection to a folder for statements that change nothing, and the folder."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    with icesql.connect(warehouse=str(warehouse), files=True) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection, warehouse
