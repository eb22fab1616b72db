"""Vectors of Java's planner tests, and what its code says."""

from __future__ import annotations

from msgspec.structs import replace

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.maintain.rewrite.grouping import expected_files, group_files, split_size
from icesql.maintain.rewrite.options import RewriteOptions
from icesql.scan.tasks.task import FileScanTask


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


def sizes(files, given, *, spec_id=0, fields=0):
    grouped = group_files(files, spec_id, fields, given)
    return [[each.length for each in group.files] for group in grouped.groups]


def test_files_of_a_wrong_size_are_chosen():
    files = [task(100), task(450), task(1000)]
    assert sizes(files, options(min_input_files=2)) == [[100, 1000]]
    grouped = group_files(files, 0, 0, options(min_input_files=2))
    assert grouped.groups[0].reasons == ("100 bytes, less than 250", "1,000 bytes, more than 750")
    assert [each.file.length for each in grouped.left] == [450]


def test_enough_input_files():
    given = options(150, 1000, 5000, min_input_files=3)
    assert sizes([task(100)] * 4, given) == [[100] * 4]
    assert sizes([task(100)] * 2, given) == []
    left = group_files([task(100)] * 2, 0, 0, given).left
    assert left[0].reason.endswith("only 2 such files in its group, fewer than min-input-files 3")


def test_enough_content_of_two_files_and_too_much_of_one():
    assert sizes([task(240)] * 3, options()) == [[240] * 3]  # 720 > target
    assert sizes([task(240)] * 2, options()) == []
    assert sizes([task(800)], options()) == [[800]]
    assert sizes([task(10)], options(min_input_files=1)) == []  # one file alone stays one


def test_a_group_of_two_among_right_sizes():
    assert sizes([task(10), task(20), task(30)], options(30, 40, 80, min_input_files=1)) == [
        [10, 20]
    ]


def test_partitions_and_packing():
    files = [task(10, ("p0",))] * 3 + [task(11, ("p1",))] * 2 + [task(50, ("p2",))]
    every = options(15, 21, 37, rewrite_all=True)
    assert sizes(files, every, fields=1) == [[10] * 3, [11] * 2, [50]]
    assert len(sizes(files, replace(every, max_file_group_size_bytes=10), fields=1)) == 6
    limited = replace(every, max_file_group_input_files=2)
    assert sizes(files, limited, fields=1) == [[10, 10], [10], [11, 11], [50]]
    by_files = replace(every, rewrite_job_order="files-desc")
    assert sizes(files, by_files, fields=1) == [[10] * 3, [11] * 2, [50]]
    by_bytes = replace(every, rewrite_job_order="bytes-desc")
    assert sizes(files, by_bytes, fields=1) == [[50], [10] * 3, [11] * 2]
    assert [group.number for group in group_files(files, 0, 1, by_bytes).groups] == [0, 1, 2]
    assert [group.output_files for group in group_files(files, 0, 1, every).groups] == [2, 1, 3]


def test_files_of_another_spec_are_a_group_of_their_own():
    files = [
        task(10, ("a",), spec_id=1),
        task(10, (1,)),
        task(10, (2,)),
        task(10, (None,), spec_id=1),
    ]
    grouped = group_files(files, 1, 1, options(rewrite_all=True))
    found = [(each.partition, len(each.files)) for each in grouped.groups]
    # Java's key of other specs is the tuple of nothing, which a partition of NULL has, too.
    assert found == [(("a",), 1), (None, 3)]


def test_deletes_make_a_file_worth_rewriting():
    right, scoped = 450, "/nowhere/450"
    many = options(delete_file_threshold=2)
    assert sizes([task(right, deletes=[delete(1), delete(1)])], many) == [[right]]
    assert sizes([task(right, deletes=[delete(1)])], many) == []
    assert sizes([task(right, deletes=[delete(30, scoped)])], options()) == [[right]]
    assert sizes([task(right, deletes=[delete(29, scoped)])], options()) == []
    assert sizes([task(right, deletes=[delete(15, scoped)] * 2)], options()) == [[right]]
    assert sizes([task(right, deletes=[delete(30, scoped, vector=True)])], options()) == [[right]]
    # Of deletes that concern several files nobody knows how many rows are this one's.
    assert sizes([task(right, deletes=[delete(90)])], options()) == []
    assert sizes([task(right, deletes=[delete(90, keys=[1])])], options()) == []


def test_no_more_files_than_asked_for():
    files = [task(10, ("a",))] * 3 + [task(10, ("b",))] * 3
    given = options(rewrite_all=True, max_files_to_rewrite=4)
    assert sizes(files, given, fields=1) == [[10] * 3, [10]]
    assert len(group_files(files, 0, 1, given).left) == 2


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
