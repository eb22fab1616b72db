"""Splits follow the writer's offsets where they can be trusted, else a fixed size."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.scan.tasks import FileScanTask, merge_adjacent, split_file, usable_offsets
from tests.tables import read_table


def task_of(
    size: int, offsets: tuple[int, ...] | None = None, file_format: str = "PARQUET"
) -> FileScanTask:
    data_file = DataFile(
        FileContent.DATA, f"f{size}", file_format, 0, (), 10, size, split_offsets=offsets
    )
    return FileScanTask(data_file, 0, size)


@pytest.mark.parametrize(
    ("size", "offsets", "file_format", "target", "expected"), read_table(__file__, "splits.tsv")
)
def test_splits(size: str, offsets: str, file_format: str, target: str, expected: str) -> None:
    written = json.loads(offsets)
    task = task_of(int(size), None if written is None else tuple(written), file_format)
    found = [[split.start, split.length] for split in split_file(task, int(target))]
    assert found == json.loads(expected)
    usable = usable_offsets(task.data_file)
    begins = [start for start, _ in found]
    assert usable is None or file_format == "PUFFIN" or list(usable) == begins


def test_the_split_of_a_file_of_unknown_size_is_whole() -> None:
    assert next(split_file(task_of(0), 1)).is_whole_file


def test_a_file_of_one_row_group_is_whole_in_its_only_split() -> None:
    (split,) = split_file(task_of(48, (4,)), 1)
    assert (split.start, split.length) == (4, 44)
    assert split.is_whole_file


def test_a_split_is_not_whole_because_the_offsets_are_corrupt() -> None:
    splits = list(split_file(task_of(10, (5, 3)), 3))
    assert [split.is_whole_file for split in splits] == [False] * 4


def test_every_split_carries_the_deletes_and_the_residual() -> None:
    delete = DataFile(FileContent.POSITION_DELETES, "d", "PARQUET", 0, (), 1, 5)
    task = replace(task_of(10), deletes=(delete,))
    assert all(split.deletes == (delete,) for split in split_file(task, 3))
    assert all(split.data_file is task.data_file for split in split_file(task, 3))


def test_only_neighbours_in_the_list_are_merged() -> None:
    a1, a2 = split_file(replace(task_of(128)), 64)
    b = task_of(129)
    c1, c2 = split_file(task_of(64), 32)
    merged = merge_adjacent([a1, a2, b, c1, c2])
    assert [(task.data_file.path, task.length) for task in merged] == [
        ("f128", 128), ("f129", 129), ("f64", 64),
    ]  # fmt: skip
    assert [task.length for task in merge_adjacent([a1, b, a2])] == [64, 129, 64]
    assert [task.start for task in merge_adjacent([a2, a1])] == [64, 0]


def test_two_entries_of_one_path_are_not_merged() -> None:
    first, second = split_file(task_of(10), 5)
    other = replace(second, data_file=replace(second.data_file, sequence_number=7))
    assert len(merge_adjacent([first, other])) == 2


@given(
    st.integers(1, 200),
    st.integers(1, 250),
    st.one_of(st.none(), st.lists(st.integers(-3, 220), max_size=6).map(tuple)),
)
def test_splits_tile_the_file(size: int, target: int, offsets: tuple[int, ...] | None) -> None:
    task = task_of(size, offsets)
    splits = list(split_file(task, target))
    usable = usable_offsets(task.data_file)
    assert splits[0].start == (usable[0] if usable else 0)
    assert all(one.start + one.length == other.start for one, other in pairwise(splits))
    assert splits[-1].start + splits[-1].length == size
    assert all(split.length > 0 for split in splits)
    (whole,) = merge_adjacent(splits)
    assert whole.is_whole_file
