"""A REST catalog for the tests of catalogs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.catalog.rest_server import ORDERS, Server


@pytest.fixture
def server(warehouse: Path) -> Iterator[Server]:
    """A server with the orders of the warehouse as ``shop.orders``."""
    made = Server()
    folder = next(warehouse.rglob("orders")) / "metadata"
    metadata = max(folder.glob("*.metadata.json"))
    made.tables[ORDERS] = {
        "metadata-location": f"file://{metadata}",
        "metadata": json.loads(metadata.read_text()),
        "config": {},
    }
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Server]:
    """Another server: any request to it is a leak."""
    made = Server()
    yield made
    made.close()
