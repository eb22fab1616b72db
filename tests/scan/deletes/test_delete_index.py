"""Which deletes apply to a data file: kinds, scopes, sequence numbers, spellings of paths."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from icesql.errors import CorruptFileError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import LONG, STRING, NestedField
from icesql.scan.deletes.delete_index import DeleteIndex, partition_key

PATH_ID = 2147483546
SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "region", STRING)))
IDENTITY = PartitionField((2,), 1000, "identity", "region")
SPECS = {
    0: PartitionSpec(0),
    1: PartitionSpec(1, (IDENTITY,)),
    2: PartitionSpec(2, (PartitionField((2,), 1000, "void", "region"),)),
    3: PartitionSpec(3, (PartitionField((2,), 1000, "identity", "region"),)),
}


def file(
    path: str,
    sequence_number: int,
    *,
    content: FileContent = FileContent.DATA,
    file_format: str = "PARQUET",
    spec_id: int = 1,
    partition: tuple[Any, ...] = ("eu",),
    **others: Any,
) -> DataFile:
    if spec_id == 0:
        partition = ()
    elif spec_id == 2:
        partition = (None,)
    return DataFile(
        content, path, file_format, spec_id, partition, 10, 100, sequence_number, **others
    )


def data(path: str = "d.parquet", sequence_number: int = 5, **others: Any) -> DataFile:
    return file(path, sequence_number, **others)


def positions(path: str, sequence_number: int, **others: Any) -> DataFile:
    return file(path, sequence_number, content=FileContent.POSITION_DELETES, **others)


def keys(path: str, sequence_number: int, **others: Any) -> DataFile:
    others.setdefault("equality_ids", (1,))
    return file(path, sequence_number, content=FileContent.EQUALITY_DELETES, **others)


def vector(path: str, sequence_number: int, of: str | None, **others: Any) -> DataFile:
    return positions(path, sequence_number, file_format="PUFFIN", referenced_data_file=of, **others)


def applying(
    deletes: list[DataFile],
    data_file: DataFile,
    same_file_key: Callable[[str], str] = str,
) -> list[str]:
    index = DeleteIndex(deletes, SPECS, SCHEMA, same_file_key)
    return [delete.path for delete in index.deletes_of(data_file)]


# ------------------------------------------------------------------ sequence numbers


def test_position_deletes_reach_their_own_commit_and_equality_deletes_do_not() -> None:
    deletes = [positions(f"p{n}", n) for n in (4, 5, 6)] + [keys(f"e{n}", n) for n in (4, 5, 6)]
    assert applying(deletes, data(sequence_number=5)) == ["e6", "p5", "p6"]


def test_deletes_of_equal_sequence_numbers_all_apply() -> None:
    deletes = [positions("p1", 5), keys("e1", 6), positions("p2", 5), keys("e2", 6)]
    assert applying(deletes, data(sequence_number=5)) == ["e1", "e2", "p1", "p2"]


def test_files_of_one_commit_share_their_deletes() -> None:
    index = DeleteIndex([keys("e6", 6), keys("e4", 4), keys("e7", 7)], SPECS, SCHEMA, str)
    first, second = (index.deletes_of(data(f"d{n}", 5)) for n in range(2))
    assert [each.path for each in first] == ["e6", "e7"]
    assert first is second


# ------------------------------------------------------------------ scopes


def test_deletes_in_another_partition_do_not_apply() -> None:
    other = {"partition": ("us",)}
    assert applying([positions("p", 9, **other), keys("e", 9, **other)], data()) == []


def test_the_same_partition_of_another_spec_is_another_partition() -> None:
    assert applying([positions("p", 9, spec_id=3), keys("e", 9, spec_id=3)], data()) == []


def test_null_partitions_are_equal() -> None:
    null = {"partition": (None,)}
    assert applying([positions("p", 9, **null)], data(**null)) == ["p"]


@pytest.mark.parametrize("spec_id", [0, 2], ids=["no fields", "all void"])
def test_unpartitioned_equality_deletes_are_global_and_position_deletes_are_not(
    spec_id: int,
) -> None:
    deletes = [keys("e", 9, spec_id=spec_id), positions("p", 9, spec_id=spec_id)]
    assert applying(deletes, data()) == ["e"]
    assert applying(deletes, data(spec_id=spec_id)) == ["e", "p"]


def test_partitioned_equality_deletes_do_not_reach_unpartitioned_files() -> None:
    assert applying([keys("e", 9)], data(spec_id=0)) == []


def test_partition_keys_tell_zeros_apart_and_nan_is_itself() -> None:
    nan = float("nan")
    assert partition_key((nan,)) == partition_key((-nan,))
    assert partition_key((0.0,)) != partition_key((-0.0,))
    assert partition_key((1.5, "a", None)) == partition_key((1.5, "a", None))
    assert partition_key(("a", 1)) == ("a", 1)


# ------------------------------------------------------------------ paths


LONG_PATH = "s3://bucket/warehouse/t/data/region=eu/d.parquet"


def bounded(path: str, lower: str, upper: str) -> DataFile:
    return positions(
        path,
        9,
        lower_bounds={PATH_ID: lower.encode()},
        upper_bounds={PATH_ID: upper.encode()},
    )


def test_a_named_data_file_is_the_only_one_reached() -> None:
    deletes = [positions("p", 9, referenced_data_file=LONG_PATH)]
    assert applying(deletes, data(LONG_PATH)) == ["p"]
    assert applying(deletes, data(LONG_PATH.replace("d.p", "other.p"))) == []
    assert applying(deletes, data("s3://bucket/warehouse/t/data/d.parquet")) == []
    assert applying(deletes, data(LONG_PATH, 10)) == []


def test_equal_path_bounds_name_a_data_file() -> None:
    deletes = [bounded("p", LONG_PATH, LONG_PATH)]
    assert applying(deletes, data(LONG_PATH)) == ["p"]
    assert applying(deletes, data("s3://bucket/elsewhere/e.parquet")) == []


def test_different_path_bounds_reach_the_whole_partition() -> None:
    deletes = [bounded("p", LONG_PATH, LONG_PATH + "x")]
    assert applying(deletes, data("s3://bucket/elsewhere/e.parquet")) == ["p"]


def test_equal_bounds_that_were_cut_reach_the_whole_partition() -> None:
    cut = LONG_PATH[:16]
    assert applying([bounded("p", cut, cut)], data(LONG_PATH)) == ["p"]


def without_scheme(path: str) -> str:
    return path.split("//", 1)[1].split("/", 1)[1] if "//" in path else path.lstrip("/")


def test_another_spelling_of_the_path_reaches_the_file_too() -> None:
    here, there = "/test-warehouse/t/d.parquet", "hdfs://localhost:20500/test-warehouse/t/d.parquet"
    deletes = [
        positions("p1", 9, referenced_data_file=there),
        positions("p2", 9, referenced_data_file=here),
        positions("p3", 9, referenced_data_file="/test-warehouse/u/d.parquet"),
    ]
    assert applying(deletes, data(here), without_scheme) == ["p1", "p2"]
    assert applying([vector("v", 9, there)], data(here), without_scheme) == ["v"]


def test_a_spelling_with_escapes_reaches_the_file() -> None:
    deletes = [positions("p", 9, referenced_data_file="/t/a%20b.parquet")]
    assert applying(deletes, data("/t/a b.parquet"), lambda path: path.replace("%20", " ")) == ["p"]


def test_verbatim_paths_are_matched_without_asking_the_file_system() -> None:
    def never(path: str) -> str:
        raise AssertionError(path)

    deletes = [positions("p", 9, referenced_data_file=LONG_PATH)]
    assert applying(deletes, data(LONG_PATH), never) == ["p"]
    assert applying(deletes, data("/t/other.parquet"), never) == []


@pytest.mark.parametrize("elsewhere", [{"partition": ("us",)}, {"spec_id": 3}])
def test_a_position_delete_of_this_file_applies_from_any_partition(elsewhere: Any) -> None:
    delete = positions("p", 9, referenced_data_file=LONG_PATH, **elsewhere)
    assert applying([delete], data(LONG_PATH)) == ["p"]
    assert applying([delete], data("/t/other.parquet")) == []


# ------------------------------------------------------------------ deletion vectors


def test_a_deletion_vector_stands_for_all_position_deletes_but_no_equality_deletes() -> None:
    deletes = [
        positions("by partition", 9),
        positions("by path", 9, referenced_data_file=LONG_PATH),
        keys("equality", 9),
        vector("vector", 7, LONG_PATH),
    ]
    assert applying(deletes, data(LONG_PATH)) == ["equality", "vector"]
    assert applying(deletes, data("other")) == ["equality", "by partition"]


def test_two_deletion_vectors_of_one_file_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match=r"v2: a second deletion vector for .*v1"):
        applying([vector("v1", 7, LONG_PATH), vector("v2", 8, LONG_PATH)], data(LONG_PATH))


def test_vectors_of_two_files_in_one_puffin_file_are_told_apart() -> None:
    deletes = [vector("v", 7, LONG_PATH, content_offset=4), vector("v", 7, "/o", content_offset=50)]
    index = DeleteIndex(deletes, SPECS, SCHEMA, str)
    assert [each.content_offset for each in index.deletes_of(data("/o"))] == [50]


@pytest.mark.parametrize(
    ("delete", "message"),
    [
        (vector("v", 4, LONG_PATH), "older than the file's 5"),
        (vector("v", 9, LONG_PATH, partition=("us",)), "but is in partition"),
        (vector("v", 9, LONG_PATH, spec_id=3), "of spec 3"),
    ],
)
def test_a_deletion_vector_that_cannot_be_its_files_is_corrupt(
    delete: DataFile, message: str
) -> None:
    with pytest.raises(CorruptFileError, match=message):
        applying([delete], data(LONG_PATH))


def test_a_deletion_vector_of_no_file_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="names no data file"):
        applying([vector("v", 9, None)], data())


def test_equality_deletes_without_columns_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="without equality ids"):
        applying([keys("e", 9, equality_ids=None)], data())


# ------------------------------------------------------------------ order and size


def test_global_equality_deletes_come_first_then_the_partitions_then_positions() -> None:
    deletes = [
        positions("path", 9, referenced_data_file=LONG_PATH),
        positions("partition", 9),
        keys("equality", 9),
        keys("global", 9, spec_id=0),
        keys("two columns", 9, equality_ids=(2, 1)),
    ]
    assert applying(deletes, data(LONG_PATH)) == [
        "global", "equality", "two columns", "partition", "path",
    ]  # fmt: skip


def long_bounds(low: int, high: int) -> dict[str, Any]:
    return {
        "lower_bounds": {1: low.to_bytes(8, "little")},
        "upper_bounds": {1: high.to_bytes(8, "little")},
        "null_value_counts": {1: 0},
        "value_counts": {1: 10},
    }


def test_bounds_that_do_not_overlap_leave_a_delete_out() -> None:
    deletes = [keys(f"e{n}", 9, **long_bounds(n * 10, n * 10 + 9)) for n in range(5)]
    assert applying(deletes, data(**long_bounds(15, 25))) == ["e1", "e2"]
    assert applying(deletes, data(**long_bounds(50, 60))) == []
    assert applying(deletes, data()) == ["e0", "e1", "e2", "e3", "e4"]
    everything = DeleteIndex(deletes, SPECS, SCHEMA, str, compare_bounds=False)
    assert len(everything.deletes_of(data(**long_bounds(50, 60)))) == 5


def test_every_pair_of_a_long_upsert_stream_is_what_the_rule_says() -> None:
    commits = 60
    # Keys of a file overlap with those of three neighbours: both ways of testing take part.
    bounds = [long_bounds(n * 10, n * 10 + 25 + 400 * (n % 7 == 0)) for n in range(commits)]
    index = DeleteIndex([keys(f"e{n}", n, **bounds[n]) for n in range(commits)], SPECS, SCHEMA, str)
    for n in range(commits):
        low, high = n * 10, n * 10 + 25
        expected = [
            f"e{m}"
            for m in range(n + 1, commits)
            if m * 10 <= high and low <= m * 10 + 25 + 400 * (m % 7 == 0)
        ]
        found = index.deletes_of(data(f"d{n}", n, **long_bounds(low, high)))
        assert [each.path for each in found] == expected


def test_an_upsert_stream_of_2000_commits_is_indexed_in_seconds() -> None:
    started, wide = time.process_time(), long_bounds(0, 1 << 40)
    deletes = [keys(f"e{n}", n, **wide) for n in range(2000)]
    index = DeleteIndex(deletes, SPECS, SCHEMA, str)
    found = [len(index.deletes_of(data(f"d{n}", n, **wide))) for n in range(2000)]
    assert found == list(range(1999, -1, -1))
    assert time.process_time() - started < 20
