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
from tests.tables import read_table

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


LONG_PATH = "s3://bucket/warehouse/t/data/region=eu/d.parquet"


def read(text: str) -> DataFile:
    """A file as the table describes it."""
    kind, path, number, *described = text.split()
    given = dict(each.split("=", 1) for each in described)
    others: dict[str, Any] = {
        f"{end}_bounds": {PATH_ID: named(given[end]).encode()}
        for end in ("lower", "upper") if end in given
    }  # fmt: skip
    if "of" in given or kind == "vector":
        others["referenced_data_file"] = named(given.get("of"))
    if "ids" in given:
        others["equality_ids"] = tuple(map(int, given["ids"])) or None
    others["spec_id"] = int(given.get("spec", 1))
    others["partition"] = (given.get("partition", "eu") or None,)
    return KINDS[kind](named(path), int(number), **others)


def named(path: Any) -> Any:
    return LONG_PATH if path == "L" else path


KINDS: dict[str, Callable[..., DataFile]] = {
    "data": data,
    "positions": positions,
    "keys": keys,
    "vector": lambda path, number, **others: positions(
        path, number, file_format="PUFFIN", **others
    ),
}


@pytest.mark.parametrize(("deletes", "data_file", "expected"), read_table(__file__, "applying.tsv"))
def test_what_applies(deletes: str, data_file: str, expected: str) -> None:
    made, found = [read(each) for each in deletes.split("; ")], read(f"data {data_file}")
    if expected.startswith("! "):
        with pytest.raises(CorruptFileError, match=expected[2:]):
            applying(made, found)
    else:
        assert " ".join(applying(made, found)) == expected.strip("-")


def test_files_of_one_commit_share_their_deletes() -> None:
    index = DeleteIndex([keys("e6", 6), keys("e4", 4), keys("e7", 7)], SPECS, SCHEMA, str)
    first, second = (index.deletes_of(data(f"d{n}", 5)) for n in range(2))
    assert [each.path for each in first] == ["e6", "e7"]
    assert first is second


def test_partition_keys_tell_zeros_apart_and_nan_is_itself() -> None:
    nan = float("nan")
    assert partition_key((nan,)) == partition_key((-nan,))
    assert partition_key((0.0,)) != partition_key((-0.0,))
    assert partition_key((1.5, "a", None)) == partition_key((1.5, "a", None))
    assert partition_key(("a", 1)) == ("a", 1)


# ------------------------------------------------------------------ paths


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
    deletes = [positions("p", 9, referenced_data_file="file:/t/a%2520b.parquet")]
    path_of = {"file:/t/a%2520b.parquet": "/t/a%20b.parquet"}
    assert applying(deletes, data("/t/a%20b.parquet"), lambda path: path_of.get(path, path)) == [
        "p"
    ]


def test_verbatim_paths_are_matched_without_asking_the_file_system() -> None:
    def never(path: str) -> str:
        raise AssertionError(path)

    deletes = [positions("p", 9, referenced_data_file=LONG_PATH)]
    assert applying(deletes, data(LONG_PATH), never) == ["p"]
    assert applying(deletes, data("/t/other.parquet"), never) == []


def test_vectors_of_two_files_in_one_puffin_file_are_told_apart() -> None:
    deletes = [vector("v", 7, LONG_PATH, content_offset=4), vector("v", 7, "/o", content_offset=50)]
    index = DeleteIndex(deletes, SPECS, SCHEMA, str)
    assert [each.content_offset for each in index.deletes_of(data("/o"))] == [50]


# ------------------------------------------------------------------ order and size


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
