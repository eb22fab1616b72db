"""Cases of Java's planner tests, and results computed by its code."""

from __future__ import annotations

from ast import literal_eval

import pytest
from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.maintain.rewrite.plan import RewriteOptions, expected_files, group_files, split_size
from icesql.scan.tasks import FileScanTask
from tests.tables import read_table


def task(size, partition=(), *, spec_id=0, rows=100, deletes=()):
    file = DataFile(FileContent.DATA, f"/nowhere/{size}", "PARQUET", spec_id, partition, rows, size)
    return FileScanTask(file, 0, size, tuple(deletes))


def delete(rows, path=None, *, vector=False, keys=()):
    content = FileContent.EQUALITY_DELETES if keys else FileContent.POSITION_DELETES
    return DataFile(
        content, "/nowhere/d", "PUFFIN" if vector else "PARQUET", 0, (), rows, 10,
        referenced_data_file=path, equality_ids=tuple(keys) or None,
    )  # fmt: skip


def options(least=250, target=500, most=750, **others):
    return RewriteOptions(target, least, most, **others)


@pytest.mark.parametrize(
    ("files", "deletes", "given", "expected"), read_table(__file__, "groups.tsv")
)
def test_files_are_grouped(files, deletes, given, expected):
    attached = [delete(**each) for each in literal_eval(deletes)]
    parts = [each.partition(":") for each in files.split()]
    tasks = [
        task(int(size), (place,) if place else (), deletes=attached) for size, _, place in parts
    ]
    grouped = group_files(tasks, 0, int(":" in files), options(**literal_eval(given)))
    found = [[each.length for each in group.files] for group in grouped.groups]
    assert found == literal_eval(expected)
    assert [group.number for group in grouped.groups] == [*range(len(found))]
    assert len(grouped.left) == len(tasks) - sum(map(len, found))


def test_reasons_are_given():
    grouped = group_files([task(100), task(450), task(1000)], 0, 0, options(min_input_files=2))
    assert grouped.groups[0].reasons == ("100 bytes, less than 250", "1,000 bytes, more than 750")
    assert [each.length for each in grouped.left] == [450]
    few = group_files([task(100)] * 2, 0, 0, options(150, 1000, 5000, min_input_files=3))
    assert (few.groups, len(few.left)) == ((), 2)


def test_files_that_a_group_becomes():
    files = [task(10, ("p0",))] * 3 + [task(11, ("p1",))] * 2 + [task(50, ("p2",))]
    grouped = group_files(files, 0, 1, options(15, 21, 37, rewrite_all=True))
    assert [group.output_files for group in grouped.groups] == [2, 1, 3]


def test_files_of_another_spec_are_a_group_of_their_own():
    files = [
        task(10, ("a",), spec_id=1),
        task(10, (1,)),
        task(10, (2,)),
        task(10, (None,), spec_id=1),
    ]
    grouped = group_files(files, 1, 1, options(rewrite_all=True))
    found = [(each.partition, len(each.files)) for each in grouped.groups]
    # Java's key for other specs is the tuple of NULLs, which the partition of NULL has, too.
    assert found == [(("a",), 1), (None, 3)]


def test_expected_files_and_split_sizes():
    given = RewriteOptions(100, 75, 180)
    assert [expected_files(size, given) for size in (99, 100, 109, 111, 176, 200, 219, 230, 275)] == [
        1, 1, 1, 2, 2, 2, 2, 3, 3
    ]  # fmt: skip
    assert split_size(99, given) == 140  # the overhead exceeds so small a target
    large = RewriteOptions(100 << 20, 75 << 20, 180 << 20)
    assert split_size(230 << 20, large) == 100 << 20
    assert split_size(218 << 20, large) == (109 << 20) + 5 * 1024
    half = replace(large, compression_factor=0.5)
    assert expected_files(230 << 20, half) == 2
