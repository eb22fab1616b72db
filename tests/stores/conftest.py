"""A bucket with small tables, served by a store of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.stores.lake import make_lake
from tests.stores.server import Store


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bucket ``lake``."""
    folder = tmp_path_factory.mktemp("bucket")
    make_lake(folder)
    return folder


@pytest.fixture
def store(bucket: Path) -> Iterator[Store]:
    with Store(bucket).running() as running:
        yield running


Connect = Callable[..., icesql.Connection]


@pytest.fixture
def connect(bucket: Path, store: Store, tmp_path: Path) -> Iterator[Connect]:
    """Connections to the catalog of the bucket; the cache is a folder of the test."""
    opened = []

    def open_connection(key: str = "AKIATESTTESTTESTTEST", **settings: Any) -> icesql.Connection:
        chosen = {"cache_directory": str(tmp_path / "cache"), "temp_directory": str(tmp_path / "t")}
        connection = icesql.connect(
            uri=f"sqlite:///{bucket}/catalog.db",
            properties=store.properties(key),
            settings={**chosen, **settings},
        )
        opened.append(connection)
        return connection

    yield open_connection
    for each in opened:
        each.close()
