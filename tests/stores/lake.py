"""The tables of the store tests: lake.small of 24 files, lake.large of 2 with bloom filters."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.stores.published import new_table, publish

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


def make_lake(folder: Path) -> None:
    """Write the tables into a bucket below ``folder``."""
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
