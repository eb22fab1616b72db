"""The data source is tested on the Spark of tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.datasource.reads import two_snapshots
from tests.spark.conftest import (
    SOURCES,
    all_types,
    cluster_tables,
    connect,
    corrupt,
    mark,
    needs,
    server,
    session,
    spark,
    spark_here,
)
from tests.writer.table import TableWriter

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
    folder = Path(__file__).parent
    mark(items, folder)
    for item in items:
        if folder in Path(item.path).parents:
            item.add_marker(needs("4.0", why=SOURCES))


@pytest.fixture(autouse=True)
def pyspark_here(spark_here: None) -> None:
    """Every test imports PySpark."""


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return two_snapshots(tmp_path / "t")
