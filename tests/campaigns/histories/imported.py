"""All modules that statements import, so that a forked process has them."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import suppress

import duckdb  # noqa: F401
import pyarrow.parquet  # noqa: F401

import icesql
import tests.campaigns.histories.killed  # noqa: F401

for _each in pkgutil.walk_packages(icesql.__path__, "icesql."):
    if not {"__main__", "spark", "datasource", "pyiceberg", "demo"} & {*_each.name.split(".")}:
        with suppress(Exception):
            importlib.import_module(_each.name)
