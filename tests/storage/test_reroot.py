"""Where the files of a moved table are found, and where they must not be."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path

import pytest

from icesql.errors import StorageError
from icesql.storage.open import Reroot, components, local_spellings, split_path

UUID = "5a3c1b2e-1111-4222-8333-9944aa55bb66"


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"here")
    return str(path)


@pytest.mark.parametrize(
    ("recorded", "parts"),
    [
        ("s3://bucket/a/b.parquet", ("a", "b.parquet")),
        ("s3a://bucket//a///b.parquet", ("a", "b.parquet")),
        ("hdfs://localhost:20500/test-warehouse/t", ("test-warehouse", "t")),
        ("file:/tmp/t", ("tmp", "t")),
        ("file:///tmp/t", ("tmp", "t")),
        ("/tmp/./t/", ("tmp", "t")),
        ("./x/y", ("x", "y")),
        ("x/y", ("x", "y")),
        ("a/../b", ("b",)),
        ("gs://bucket", ()),
        ("data/c=2024-01-01T10:00:00/f", ("data", "c=2024-01-01T10:00:00", "f")),
    ],
)
def test_spelling_is_dropped_and_names_are_kept(recorded: str, parts: tuple[str, ...]) -> None:
    assert components(recorded) == parts


def test_a_colon_in_a_name_is_no_scheme() -> None:
    assert split_path("ts=10:00/f.parquet") == ("", "", "ts=10:00/f.parquet")


def test_a_path_is_taken_as_written_when_it_exists(tmp_path: Path) -> None:
    old = put(tmp_path / "old/t/data/f.parquet")
    put(tmp_path / "new/t/data/f.parquet")
    reroot = Reroot(str(tmp_path / "old/t"), str(tmp_path / "new/t"))
    assert reroot.locate(old) == old
    assert reroot.locate("file:" + old) == old
    assert reroot.locate("file://" + old) == old


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/wh/t",
        "s3a://bucket/wh/t/",
        "hdfs://localhost:20500/wh/t",
        "file:/gone/wh/t",
        "file:///gone/wh/t",
        "/gone/wh/t",
        "wh/t",
        "./wh/t",
        "gs://bucket",
    ],
)
def test_the_recorded_location_stands_for_the_folder(tmp_path: Path, location: str) -> None:
    here = put(tmp_path / "copy/data/p=1/000000_0")
    reroot = Reroot(location, str(tmp_path / "copy"))
    assert reroot.locate(location.rstrip("/") + "/data/p=1/000000_0") == here


def test_scheme_authority_and_slashes_may_differ_from_those_of_the_location(tmp_path: Path) -> None:
    here = put(tmp_path / "t/data/f.parquet")
    reroot = Reroot("/test-warehouse/t", str(tmp_path / "t"))
    for spelling in (
        "hdfs://localhost:20500/test-warehouse/t/data/f.parquet",
        "hdfs:/test-warehouse//t/data/f.parquet",
        "/test-warehouse/t/./data/f.parquet",
        "test-warehouse/t/data/f.parquet",
    ):
        assert reroot.locate(spelling) == here


def test_data_beside_the_table_is_found_relative_to_it(tmp_path: Path) -> None:
    here = put(tmp_path / "repo/column_mapping/data/f.parquet")
    folder = tmp_path / "repo/column_mapping/warehouse/default.db/my_table"
    folder.mkdir(parents=True)
    reroot = Reroot("data/column_mapping/warehouse/default.db/my_table", str(folder))
    assert reroot.locate("data/column_mapping/data/f.parquet") == here


def test_the_longest_suffix_wins(tmp_path: Path) -> None:
    folder = tmp_path / "x/t"
    put(folder / f"data/{UUID}.parquet")
    longer = put(folder / f"old/data/{UUID}.parquet")
    reroot = Reroot("s3://elsewhere/entirely", str(folder))
    assert reroot.locate(f"s3://bucket/old/data/{UUID}.parquet") == longer


def test_a_suffix_is_never_looked_for_above_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x/meta/t"
    folder.mkdir(parents=True)
    put(tmp_path / f"x/t/data/{UUID}.parquet")
    reroot = Reroot("s3://elsewhere/entirely", str(folder))
    assert reroot.find(f"s3://bucket/wh/t/data/{UUID}.parquet") is None
    assert reroot.find(f"t/data/{UUID}.parquet") is None


def test_a_suffix_is_not_followed_out_of_the_folder_by_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "x/t"
    (folder / "data").mkdir(parents=True)
    outside, inside = put(tmp_path / "y/p.parquet"), put(folder / "data/q.parquet")
    (folder / "data/out.parquet").symlink_to(outside)
    (folder / "data/in.parquet").symlink_to(inside)
    reroot = Reroot("s3://elsewhere/entirely", str(folder))
    assert reroot.find("s3://bucket/wh/data/out.parquet") is None
    assert reroot.find("s3://bucket/wh/data/in.parquet") == f"{folder}/data/in.parquet"


def test_what_lies_beside_is_found_where_the_whole_warehouse_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "new/db/t"
    folder.mkdir(parents=True)
    beside = put(tmp_path / "new/shared/p.parquet")
    moved = Reroot("s3://bucket/old/db/t", str(folder))
    assert moved.find("s3://bucket/old/shared/p.parquet") == beside
    # The names below the common parent differ: nothing says that it is this folder's parent.
    assert (
        Reroot("s3://bucket/old/x/y", str(folder)).find("s3://bucket/old/shared/p.parquet") is None
    )


def test_a_bare_name_counts_only_in_the_folder_and_only_if_it_is_unique(tmp_path: Path) -> None:
    folder = tmp_path / "x/t"
    flat = put(folder / f"snap-1-{UUID}.avro")
    put(folder / "000000_0")
    put(tmp_path / f"x/other-{UUID}.avro")
    reroot = Reroot("s3://bucket/wh/t", str(folder))
    assert reroot.locate(f"s3://bucket/wh/t/metadata/snap-1-{UUID}.avro") == flat
    assert reroot.find("s3://bucket/wh/t/data/p=1/000000_0") is None
    assert reroot.find(f"s3://bucket/wh/t/metadata/other-{UUID}.avro") is None


def test_a_file_of_another_partition_never_stands_in(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    put(folder / "data/p=1/000000_0")
    reroot = Reroot("/gone/wh/t", str(folder))
    assert reroot.find("/gone/wh/t/data/p=2/000000_0") is None
    with pytest.raises(StorageError, match="p=2/000000_0"):
        reroot.locate("/gone/wh/t/data/p=2/000000_0")


def test_a_file_of_another_table_beside_never_stands_in(tmp_path: Path) -> None:
    put(tmp_path / "wh/data/000000_0")  # a table or folder that happens to be called data
    (tmp_path / "wh/t").mkdir()
    assert Reroot("s3://b/x/t", str(tmp_path / "wh/t")).find("/old/u/data/000000_0") is None


def test_two_recorded_paths_never_meet_in_one_file_by_guessing(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    put(folder / "data/000000_0")
    reroot = Reroot("/gone/t", str(folder))
    reroot.locate("/gone/t/data/000000_0")
    with pytest.raises(StorageError, match="already /gone/t/data/000000_0"):
        reroot.locate("/imported/u/data/000000_0")


def test_spellings_of_one_unique_file_may_meet(tmp_path: Path) -> None:
    here = put(tmp_path / f"t/data/{UUID}.parquet")
    reroot = Reroot("/new/t", str(tmp_path / "t"))
    assert reroot.locate(f"/new/t/data/{UUID}.parquet") == here
    assert reroot.locate(f"s3://before/the/move/t/data/{UUID}.parquet") == here


def test_percent_signs_are_literal_first_and_escapes_second(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    literal = put(folder / "data/p=a%2Fb/f.parquet")
    reroot = Reroot("s3://b/t", str(folder))
    assert reroot.locate("s3://b/t/data/p=a%2Fb/f.parquet") == literal
    spaced = put(folder / "data/p=a b/f.parquet")
    assert reroot.locate("s3://b/t/data/p=a%20b/f.parquet") == spaced


def test_an_escaped_parent_does_not_climb_out_of_the_folder(tmp_path: Path) -> None:
    put(tmp_path / "secret.parquet")
    (tmp_path / "t/data").mkdir(parents=True)
    reroot = Reroot("s3://b/t", str(tmp_path / "t"))
    assert reroot.find("s3://b/t/data/%2E%2E/%2E%2E/secret.parquet") is None


def test_a_pasted_relative_folder_after_file_slashes_is_understood(tmp_path: Path) -> None:
    here = put(tmp_path / "cities/data/f.parquet")
    reroot = Reroot("file://wh/default.db/cities", str(tmp_path / "cities"))
    assert reroot.locate("file://wh/default.db/cities/data/f.parquet") == here


def test_file_uris_name_local_paths() -> None:
    assert local_spellings("file:/a/b") == ["/a/b"]
    assert local_spellings("file:///a/b") == ["/a/b"]
    assert local_spellings("file://localhost/a/b") == ["/a/b"]
    assert local_spellings("file:///a%20b") == ["/a%20b", "/a b"]
    assert local_spellings("/a%20b") == ["/a%20b"]


def test_a_missing_remote_file_is_reported_as_recorded_and_never_fetched(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"s3://bucket/t/data/x\.parquet.*no such file"):
        Reroot("s3://bucket/t", str(tmp_path)).locate("s3://bucket/t/data/x.parquet")


def test_it_travels_to_workers(tmp_path: Path) -> None:
    here = put(tmp_path / f"t/old/data/{UUID}.parquet")
    reroot = Reroot("s3://b/t", str(tmp_path / "t"))
    assert reroot.locate(f"gs://c/old/data/{UUID}.parquet") == here
    copy = pickle.loads(pickle.dumps(reroot))
    assert copy.locate(f"gs://c/old/data/{UUID}.parquet") == here
    assert (copy.recorded_location, copy.folder) == (reroot.recorded_location, reroot.folder)


def test_each_of_many_paths_is_looked_for_in_two_places_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t"
    (folder / "old/data").mkdir(parents=True)
    names = [f"{number:08x}-1111-4222-8333-9944aa55bb66.parquet" for number in range(10_000)]
    for name in names:
        (folder / "old/data" / name).touch()
    reroot = Reroot("s3://bucket/elsewhere", str(folder))
    looks = Counter[str]()

    def isfile(path: str) -> bool:
        looks[path] += 1
        return is_there(path)

    is_there = os.path.isfile
    monkeypatch.setattr(os.path, "isfile", isfile)
    found = [reroot.find(f"gs://other/a/b/c/old/data/{name}") for name in names * 2]
    assert found == [str(folder / "old/data" / name) for name in names] * 2
    # What the first path teaches of where the others are costs it a few looks.
    assert looks.total() < 2 * len(names) + 10, looks.most_common(3)
