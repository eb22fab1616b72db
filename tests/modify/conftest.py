"""Connections to catalogs that are made for one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.fixture
def catalog(request: Any, tmp_path: Path) -> dict[str, Any]:
    """The arguments of ``connect`` for an empty catalog, a folder unless the test says SQLite."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    if getattr(request, "param", "directory") == "directory":
        return {"warehouse": str(warehouse)}
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{tmp_path}/catalog.db"
    SqlCatalog("c", uri=uri, warehouse=f"file://{warehouse}").engine.dispose()
    return {"uri": uri, "warehouse": str(warehouse)}


@pytest.fixture
def con(catalog: dict[str, Any]) -> Iterator[icesql.Connection]:
    with icesql.connect(**catalog, files=True) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: Any) -> Iterator[tuple[icesql.Connection, Path]]:
    """A connection to a folder for statements that change nothing, and that folder."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    with icesql.connect(warehouse=str(warehouse), files=True) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection, warehouse
