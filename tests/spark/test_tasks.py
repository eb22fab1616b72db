"""Spark's tasks of a scan: as many as run at once, of about equal size, every byte once."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icesql.config import Settings
from icesql.engine.spark.tasks import SparkTasks, most_at_once
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.scan.plan import ScanPlan
from icesql.scan.tasks import OPEN_FILE_COST, TARGET_SIZE, FileScanTask
from tests.scan.metadata_only import MetadataOnly, data_file, planned


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> ScanPlan:
    """A plan without files, of a table with a small target size."""
    properties = {TARGET_SIZE: "1000", OPEN_FILE_COST: "10"}
    built = MetadataOnly(tmp_path_factory.mktemp("tasks"), properties=properties)
    built.manifest(data_file("f"))
    return replace(planned(built.table()), files=())


def with_files(empty: ScanPlan, *sizes: int) -> ScanPlan:
    """Files of these sizes, with three row groups each if large enough."""
    files = []
    for at, size in enumerate(sizes):
        offsets = (4, size // 2, size // 2 + size // 5) if size > 40 else None
        file = DataFile(
            FileContent.DATA, f"f{at}", "PARQUET", 0, (), 1, size, split_offsets=offsets
        )
        files.append(FileScanTask(file, 0, size, ()))
    return replace(empty, files=tuple(files))


def lengths(plan: ScanPlan, slots: int) -> list[int]:
    return [sum(file.length for file in task.tasks) for task in SparkTasks([plan], slots)[0]]


def test_a_scan_of_less_than_two_splits_is_divided_evenly(empty: ScanPlan) -> None:
    assert lengths(with_files(empty, 400, 400, 400, 400), 2) == [792, 792]


def test_the_last_round_is_full(empty: ScanPlan) -> None:
    found = lengths(with_files(empty, *[500] * 9), 4)
    assert len(found) == 8
    assert max(found) <= 4500 // 8 * 1.5


def test_a_size_that_the_user_set_stays(empty: ScanPlan) -> None:
    plan = replace(with_files(empty, 400, 400, 400), settings=Settings(split_target_size=800))
    assert SparkTasks([plan], 2)[0] is plan.tasks


def test_many_rounds_are_packed_as_everywhere(empty: ScanPlan) -> None:
    plan = with_files(empty, *[900] * 20)
    assert SparkTasks([plan], 2)[0] is plan.tasks


@pytest.mark.parametrize("count", [None, 1, 2, 3, 7, 99])
def test_tasks_are_put_together(empty: ScanPlan, count: int | None) -> None:
    plan = with_files(empty, *[900] * 20)
    tasks = SparkTasks([plan], 2)
    merged = tasks.merged(0, count)
    assert len(merged) == min(count or 99, len(plan.tasks))
    spread = [len(task.tasks) for task in merged]
    assert max(spread) - min(spread) <= max(len(task.tasks) for task in plan.tasks) + 1
    read = Counter[str]()
    for file in (file for task in merged for file in task.tasks):
        read[file.data_file.path] += file.length
        assert 0 <= file.start < file.start + file.length <= 900
    assert read == Counter({f"f{at}": 900 if count == 1 else 896 for at in range(20)})


def test_one_task_is_there_for_no_files(empty: ScanPlan) -> None:
    (task,) = SparkTasks([empty], 2).merged(0, 1)
    assert task.tasks == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 2),
        ({"dynamicAllocation.enabled": "false", "dynamicAllocation.maxExecutors": "9"}, 2),
        ({"dynamicAllocation.enabled": "true"}, 200),
        ({"dynamicAllocation.enabled": "TRUE", "sql.shuffle.partitions": "64"}, 64),
        ({"dynamicAllocation.enabled": "true", "dynamicAllocation.maxExecutors": "2147483647"}, 200),
        ({"dynamicAllocation.enabled": "true", "dynamicAllocation.maxExecutors": "infinity"}, 200),
        ({"dynamicAllocation.enabled": "true", "dynamicAllocation.maxExecutors": "9",
          "executor.cores": "4", "task.cpus": "2"}, 18),
        ({"dynamicAllocation.enabled": "true", "dynamicAllocation.maxExecutors": "1"}, 2),
    ],
)  # fmt: skip
def test_executors_that_come_when_they_are_needed_count(
    settings: dict[str, str], expected: int
) -> None:
    class Session:
        conf = SimpleNamespace(get=lambda name, default: settings.get(name[6:], default))
        sparkContext = SimpleNamespace(defaultParallelism=2)

    assert most_at_once(Session()) == expected


def test_no_files_are_no_tasks(empty: ScanPlan) -> None:
    assert SparkTasks([empty], 2)[0] == ()


@given(st.lists(st.integers(11, 3_000), min_size=1, max_size=30), st.integers(1, 8))
def test_every_byte_comes_once_and_no_round_is_begun_for_a_rest(
    empty: ScanPlan, sizes: list[int], slots: int
) -> None:
    plan = with_files(empty, *sizes)
    tasks = SparkTasks([plan], slots)[0]
    ranges: dict[str, list[tuple[int, int]]] = {}
    for task in tasks:
        for file in task.tasks:
            ranges.setdefault(file.data_file.path, []).append((file.start, file.length))
    for at, size in enumerate(sizes):
        pieces = sorted(ranges[f"f{at}"])
        assert pieces[0][0] in (0, 4)
        assert all(one[0] + one[1] == next_[0] for one, next_ in itertools.pairwise(pieces))
        assert sum(pieces[-1]) == size
    rounds = -(-sum(sizes) // (1_000 * slots))
    assert rounds > 8 or len(tasks) <= rounds * slots
