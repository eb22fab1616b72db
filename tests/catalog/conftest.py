"""A writer of small table folders for the tests of catalogs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    """The module ``tables`` beside this file; test folders are no packages."""
    spec = importlib.util.spec_from_file_location("tables", Path(__file__).with_name("tables.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
