"""The division of files among tasks, and the statements that use Spark's own joins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icesql import errors
from icesql.config import Settings
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.modify.tasks.run import division_of, parts_of
from icesql.scan.tasks import FileScanTask


def task(number: int, partition: int, size: int) -> FileScanTask:
    file = DataFile(FileContent.DATA, f"f{number}", "PARQUET", 0, (partition,), 1, size)
    return FileScanTask(file, 0, size)


@pytest.mark.parametrize("slots", [1, 2, 7, 40])
def test_parts_hold_each_file_once_and_neighbours_in_partitions(slots: int) -> None:
    files = [task(number, number % 3, 1_000 + number) for number in range(20)]
    parts = parts_of(files, slots)
    assert len(parts) == min(slots, 20)
    assert sorted(each.data_file.path for part in parts for each in part) == sorted(
        each.data_file.path for each in files
    )
    order = [each.data_file.partition for part in parts for each in part]
    assert order == sorted(order)


def test_large_files_make_more_parts_than_run_at_once() -> None:
    assert len(parts_of([task(number, 0, 1 << 30) for number in range(9)], 2)) == 9


def test_what_spark_alone_can_say_is_left_to_spark() -> None:
    def plan_here(*given: Any) -> Any:
        raise errors.UnsupportedSqlError("a function")

    query = SimpleNamespace(settings=Settings(engine="spark"))
    work: Any = SimpleNamespace(engines=object(), query=query, plan_here=plan_here)
    read: Any = SimpleNamespace(refused=None, spark=object())
    assert division_of(read, 0, work) is None
    read.spark = None
    with pytest.raises(errors.UnsupportedSqlError):
        division_of(read, 0, work)
