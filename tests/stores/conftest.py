"""A bucket with small tables, served by a store of this machine."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from tests.stores.published import new_table, publish
from tests.stores.server import Store

SMALL_FILES, SMALL_ROWS = 24, 40
LARGE_FILES, LARGE_ROWS, GROUP_ROWS = 2, 40_000, 5_000


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    day = datetime.date(2026, 1, 1)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"name-{number * 7919 % 1_000_003:07}" for number in numbers]),
            "price": pa.array([number % 977 / 4 for number in numbers], pa.float64()),
            "day": pa.array([day + datetime.timedelta(number % 365) for number in numbers]),
        }
    )


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables lake.small (24 files) and lake.large (2 files of 8 row groups, with bloom filters)."""
    folder = tmp_path_factory.mktemp("bucket")
    for name, files, count, group in (
        ("small", SMALL_FILES, SMALL_ROWS, SMALL_ROWS),
        ("large", LARGE_FILES, LARGE_ROWS, GROUP_ROWS),
    ):
        table = new_table(folder, name, _rows(0, 1).schema)
        paths = []
        for number in range(files):
            path = folder / "lake" / name / "data" / f"{number:05}-{number:016x}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(
                _rows(number * count, count).cast(table.schema().as_arrow()),
                path,
                row_group_size=group,
                bloom_filter_options={"name": True} if name == "large" else None,
            )
            paths.append(f"file://{path}")
        table.add_files(paths)
        publish(folder, table, name)
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
