"""Where the files of a moved table are found, and where they must not be."""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from pathlib import Path

import pytest

from icesql.errors import StorageError
from icesql.storage.open import Reroot, components, local_spellings, split_path
from tests.rows import rows_of

UUID = "5a3c1b2e-1111-4222-8333-9944aa55bb66"


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"here")
    return str(path)


@rows_of(__file__, "path_parts.tsv", "recorded", "parts")
def test_spelling_is_dropped_and_names_are_kept(recorded: str, parts: str) -> None:
    assert components(recorded) == tuple(parts.split())


def test_a_colon_in_a_name_is_no_scheme() -> None:
    assert split_path("ts=10:00/f.parquet") == ("", "", "ts=10:00/f.parquet")


@rows_of(__file__, "moved_files.tsv", "files", "location", "folder", "path", "found")
def test_where_a_recorded_path_is_found(
    files: str, location: str, folder: str, path: str, found: str, tmp_path: Path
) -> None:
    for each in files.split():
        put(tmp_path / each.replace("␣", " "))
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    reroot = Reroot(location.replace("{tmp}", str(tmp_path)), str(tmp_path / folder))
    wanted = path.replace("{tmp}", str(tmp_path))
    if found == "-":
        assert reroot.find(wanted) is None
        with pytest.raises(StorageError, match=re.escape(path.rpartition("/")[2])):
            reroot.locate(wanted)
    else:
        assert reroot.locate(wanted) == str(tmp_path / found.replace("␣", " "))


def test_a_suffix_is_not_followed_out_of_the_folder_by_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "x/t"
    (folder / "data").mkdir(parents=True)
    outside, inside = put(tmp_path / "y/p.parquet"), put(folder / "data/q.parquet")
    (folder / "data/out.parquet").symlink_to(outside)
    (folder / "data/in.parquet").symlink_to(inside)
    reroot = Reroot("s3://elsewhere/entirely", str(folder))
    assert reroot.find("s3://bucket/wh/data/out.parquet") is None
    assert reroot.find("s3://bucket/wh/data/in.parquet") == f"{folder}/data/in.parquet"


def test_two_recorded_paths_never_meet_in_one_file_by_guessing(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    put(folder / "data/000000_0")
    reroot = Reroot("/gone/t", str(folder))
    reroot.locate("/gone/t/data/000000_0")
    with pytest.raises(StorageError, match="already /gone/t/data/000000_0"):
        reroot.locate("/imported/u/data/000000_0")


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
