"""Bin packing gives Java's groups, and every byte exactly once."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icesql.config import Settings
from icesql.errors import ProgrammingError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.scan.tasks import (
    LOOKBACK,
    OPEN_FILE_COST,
    TARGET_SIZE,
    FileScanTask,
    Packing,
    adjust_split_size,
    pack,
    pack_files,
    weight,
)
from tests.tables import read_table

MB = 1 << 20


def file_task(
    path: str, size: int, *delete_sizes: int, offsets: tuple[int, ...] | None = None
) -> FileScanTask:
    deletes = tuple(
        DataFile(FileContent.POSITION_DELETES, f"{path}-d{i}", "PARQUET", 0, (), 1, delete_size)
        for i, delete_size in enumerate(delete_sizes)
    )
    data_file = DataFile(FileContent.DATA, path, "PARQUET", 0, (), 1, size, split_offsets=offsets)
    return FileScanTask(data_file, 0, size, deletes)


@pytest.mark.parametrize(("items", "options", "bins"), read_table(__file__, "bins.tsv"))
def test_items_go_to_the_bins_of_java(items: str, options: str, bins: str) -> None:
    given = {"lookback": 100, **json.loads(options)}
    found = pack(json.loads(items), weigh=lambda item: item, **given)
    assert list(found) == json.loads(bins)


def test_deletes_weigh_as_much_as_they_hold_and_cost_to_open() -> None:
    files = [
        file_task("1", 150, 50, 100),
        file_task("2", 50, 1, 50),
        file_task("3", 50, 100),
        file_task("4", 1, 1),
        file_task("5", 75, 75),
    ]
    packed = pack_files(files, Packing(target_size=300, lookback=3, open_file_cost=50))
    assert [[task.data_file.path for task in group] for group in packed] == [
        ["1"], ["2", "3"], ["4", "5"],
    ]  # fmt: skip


def test_a_deletion_vector_weighs_its_blob_not_its_puffin_file() -> None:
    vector = DataFile(
        FileContent.POSITION_DELETES, "v", "PUFFIN", 0, (), 1, 10_000, content_size_in_bytes=20
    )
    assert weight(replace(file_task("a", 100), deletes=(vector,)), open_file_cost=0) == 120


def test_small_files_weigh_what_opening_them_costs() -> None:
    assert weight(file_task("a", 1, 1), open_file_cost=4) == 8


def test_defaults_are_those_of_the_table_properties() -> None:
    assert Packing.choose(Settings(), {}) == Packing(128 * MB, 10, 4 * MB)


def test_a_setting_wins_over_the_property_and_that_over_the_default() -> None:
    properties = {TARGET_SIZE: "1000", LOOKBACK: "3", OPEN_FILE_COST: "0"}
    assert Packing.choose(Settings(), properties) == Packing(1000, 3, 0)
    settings = Settings().with_text("split_target_size", "1MB").with_text("split_lookback", "7")
    assert Packing.choose(settings, properties) == Packing(MB, 7, 0)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({TARGET_SIZE: "0"}, r"Split size must be > 0: 0"),
        ({TARGET_SIZE: "-5"}, r"target-size is '-5'; it has to be a number from 0"),
        ({LOOKBACK: "0"}, r"Split planning lookback must be > 0: 0"),
        ({OPEN_FILE_COST: "-1"}, r"open-file-cost is '-1'; it has to"),
        ({TARGET_SIZE: "128MB"}, r"read\.split\.target-size is '128MB'.*SET split_target_size"),
    ],
)
def test_unusable_properties_are_named(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        Packing.choose(Settings(), properties)


def test_adaptive_splits_shrink_only_while_workers_would_idle() -> None:
    scan_size = 500 << 30
    assert adjust_split_size(scan_size, 500, 128 * MB) == 128 * MB
    assert adjust_split_size(scan_size, 500, 2 << 30) == 1 << 30
    assert adjust_split_size(100 * MB, 50, 128 * MB) == 16 * MB
    assert adjust_split_size(100 * MB, 50, 8 * MB) == 8 * MB
    for arguments in ((1, 0, 1), (1, 1, 0), (-1, 1, 1)):
        with pytest.raises(ProgrammingError, match="must be > 0"):
            adjust_split_size(*arguments)


sizes = st.integers(1, 400)


@given(
    st.lists(st.tuples(sizes, st.lists(sizes, max_size=3), st.booleans()), max_size=25),
    st.integers(1, 300),
    st.integers(1, 5),
    st.integers(0, 60),
)
def test_packing_keeps_every_byte_exactly_once(
    described: list[tuple[int, list[int], bool]], target: int, lookback: int, cost: int
) -> None:
    files = [
        file_task(str(i), size, *deletes, offsets=(0, size // 2) if offsets and size > 1 else None)
        for i, (size, deletes, offsets) in enumerate(described)
    ]
    packing = Packing(target, lookback, cost)
    read: Counter[tuple[str, int]] = Counter()
    packed = list(pack_files(files, packing))
    for group in packed:
        assert group
        for task in group:
            read.update(
                (task.data_file.path, byte) for byte in range(task.start, task.start + task.length)
            )
    assert read == Counter(
        (task.data_file.path, byte) for task in files for byte in range(task.length)
    )
