"""A writer of small table folders for the tests of catalogs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.catalog.rest_server import Server


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    """The module ``tables`` beside this file; test folders are no packages."""
    spec = importlib.util.spec_from_file_location("tables", Path(__file__).with_name("tables.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(warehouse: Path) -> Iterator[Server]:
    """A server with the orders of the warehouse as ``shop.orders``."""
    made = Server()
    folder = next(warehouse.rglob("orders")) / "metadata"
    metadata = max(folder.glob("*.metadata.json"))
    made.tables["shop", "orders"] = {
        "metadata-location": f"file://{metadata}",
        "metadata": json.loads(metadata.read_text()),
        "config": {},
    }
    yield made
    made.close()
