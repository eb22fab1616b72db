"""A bucket with small tables, served by a local store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
    with ExitStack() as stack:

        def opened(key: str = "AKIATESTTESTTESTTEST", **settings: Any) -> icesql.Connection:
            folders = {"cache_directory": f"{tmp_path}/cache", "temp_directory": f"{tmp_path}/t"}
            connection = icesql.connect(
                uri=f"sqlite:///{bucket}/catalog.db",
                properties=store.properties(key),
                settings={**folders, **settings},
            )
            return stack.enter_context(connection)

        yield opened


@pytest.fixture
def connect_to(store: Store, tmp_path: Path) -> Iterator[Connect]:
    """Connections to a REST catalog, without keys; ``cache`` is whether bytes are kept."""
    with ExitStack() as stack:

        def opened(uri: str, cache: str = "off", **properties: str) -> icesql.Connection:
            settings = {"cache": cache, "cache_directory": f"{tmp_path}/cache"}
            given = {**store.place, **properties}
            connection = icesql.connect("lake", uri=uri, properties=given, settings=settings)
            return stack.enter_context(connection)

        yield opened


def metadata_of(bucket: Path, name: str) -> dict[str, Any]:
    """The response of a catalog for a table of the bucket."""
    path = max((bucket / "lake" / name / "metadata").glob("*.metadata.json"))
    metadata = json.loads(path.read_text())
    place = f"{metadata['location']}/metadata/v1.metadata.json"
    return {"metadata": metadata, "metadata-location": place}
