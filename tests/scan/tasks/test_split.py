"""Splits follow the writer's offsets where they can be trusted, else a fixed size."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.scan.tasks.split import merge_adjacent, split_file
from icesql.scan.tasks.task import FileScanTask, usable_offsets


def task_of(
    size: int, offsets: tuple[int, ...] | None = None, file_format: str = "PARQUET"
) -> FileScanTask:
    data_file = DataFile(
        FileContent.DATA, f"f{size}", file_format, 0, (), 10, size, split_offsets=offsets
    )
    return FileScanTask(data_file, 0, size)


def ranges(task: FileScanTask, target: int) -> list[tuple[int, int]]:
    return [(split.start, split.length) for split in split_file(task, target)]


def test_offsets_make_one_split_each_from_the_first_offset_on() -> None:
    task = task_of(48, (4, 10, 15, 18, 30, 45))
    assert [length for _, length in ranges(task, 1 << 20)] == [6, 5, 3, 12, 15, 3]
    assert ranges(task, 2)[0] == (4, 6)


@pytest.mark.parametrize(
    "offsets",
    [(2, 12), (2, 2), (5, 3), (4, 8, 8), (-1, 4), (), None, (10,)],
    ids=["beyond the end", "twice", "descending", "twice at the end", "negative", "empty", "none",
         "at the end"],
)  # fmt: skip
def test_unusable_offsets_give_fixed_sizes(offsets: tuple[int, ...] | None) -> None:
    task = task_of(10, offsets)
    assert usable_offsets(task.data_file) is None
    assert ranges(task, 1) == [(start, 1) for start in range(10)]


def test_the_last_fixed_split_is_smaller() -> None:
    assert ranges(task_of(10), 4) == [(0, 4), (4, 4), (8, 2)]
    assert ranges(task_of(10), 10) == [(0, 10)]
    assert ranges(task_of(10), 11) == [(0, 10)]


@pytest.mark.parametrize("file_format", ["ORC", "AVRO", "PARQUET"])
def test_columnar_and_avro_files_are_split(file_format: str) -> None:
    assert len(ranges(task_of(10, None, file_format), 5)) == 2


def test_other_formats_and_unknown_sizes_stay_whole() -> None:
    assert ranges(task_of(10, (4, 6), "PUFFIN"), 1) == [(0, 10)]
    assert ranges(task_of(0), 1) == [(0, 0)]
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
