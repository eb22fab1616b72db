"""The data source is tested on the Spark of tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.conftest import (
    all_types,
    cluster_tables,
    connect,
    corrupt,
    has_release,
    mark,
    server,
    session,
    spark,
    spark_here,
)

__all__ = [
    "all_types",
    "cluster_tables",
    "connect",
    "corrupt",
    "server",
    "session",
    "spark",
    "spark_here",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, Path(__file__).parent)


@pytest.fixture(autouse=True)
def has_sources(spark_here: None) -> None:
    if not has_release(4, 0):
        pytest.skip("PySpark 4.0 brought data sources")
