"""Paths become bytes, and everything that goes wrong names the path."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from icesql.errors import CorruptFileError, StorageError
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Reroot, Storage
from tests.warm import fresh_python


@pytest.fixture
def moved(tmp_path: Path) -> tuple[Storage, str]:
    """A storage of a table that was at s3://b/t, and the local path of its one file."""
    path = tmp_path / "t/data/f.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(range(100)))
    return Storage({}, Reroot("s3://b/t", str(tmp_path / "t"))), str(path)


def test_all_ways_to_a_file_go_through_reroot(moved: tuple[Storage, str]) -> None:
    storage, local = moved
    path = "s3a://b/t/data/f.bin"
    assert storage.location(path) == storage.local_path(path) == local
    assert storage.size(path) == 100
    assert storage.exists(path)
    assert not storage.exists("s3://b/t/data/g.bin")
    assert storage.read(path) == bytes(range(100))
    assert storage.read(path, offset=10, length=3) == bytes([10, 11, 12])
    assert storage.read(path, offset=98) == bytes([98, 99])
    with storage.open(path) as file:
        file.seek(50)
        assert file.read(2) == bytes([50, 51])


def test_a_limit_holds_for_a_device_without_a_size() -> None:
    assert Storage({}).read("/dev/zero", most=1000) == b""


def test_a_file_that_ends_too_early_is_corrupt_at_its_end(moved: tuple[Storage, str]) -> None:
    storage, local = moved
    with pytest.raises(CorruptFileError) as caught:
        storage.read("s3://b/t/data/f.bin", offset=90, length=20)
    assert (caught.value.path, caught.value.offset) == (local, 100)


def test_spellings_of_one_file_have_one_key(moved: tuple[Storage, str]) -> None:
    storage, local = moved
    spellings = [
        "s3://b/t/data/f.bin",
        "s3a://b//t/data/f.bin",
        "/t/data/./f.bin",
        local,
        f"file:{local}",
    ]
    assert {storage.same_file_key(path) for path in spellings} == {local}


def test_spellings_of_a_missing_file_have_one_key_too(moved: tuple[Storage, str]) -> None:
    storage, _ = moved
    gone = ["hdfs://h:1/wh/t/data/gone", "hdfs:/wh/t//data/gone", "/wh/t/data/gone"]
    assert {storage.same_file_key(path) for path in gone} == {"/wh/t/data/gone"}
    assert storage.same_file_key("/wh/t/data/other") != storage.same_file_key(gone[0])


def test_remote_files_are_told_apart_by_bucket_but_not_by_scheme_dialect() -> None:
    storage = Storage()
    assert storage.same_file_key("s3a://b/x//f") == storage.same_file_key("s3://b/x/f")
    assert storage.same_file_key("s3://b/x/f") != storage.same_file_key("s3://c/x/f")
    assert storage.same_file_key("hdfs://nn:8020/x/f") == storage.same_file_key("hdfs:///x/f")
    assert storage.location("s3://b/x//f") == "s3://b/x//f"
    assert storage.local_path("s3://b/x/f") is None


def test_failures_are_storage_errors_that_name_the_path(tmp_path: Path) -> None:
    storage = Storage()
    missing = str(tmp_path / "missing")
    for attempt in (storage.read, storage.open, storage.size, storage.list_folder):
        with pytest.raises(StorageError, match="no such file") as caught:
            attempt(missing)
        assert caught.value.path == missing
    with pytest.raises(StorageError, match="is a directory"):
        storage.read(str(tmp_path))


def test_credentials_are_not_shown() -> None:
    storage = Storage({"s3.secret-access-key": "wJalrXUtnFEMI", "s3.region": "eu-west-1"})
    assert "wJalrXUtnFEMI" not in repr(storage)
    assert "eu-west-1" in repr(storage)


def test_a_worker_gets_properties_and_reroot_but_not_the_cache(moved: tuple[Storage, str]) -> None:
    storage = Storage({"s3.region": "r"}, moved[0].reroot, cache=BoundedCache(10))
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.properties == {"s3.region": "r"}
    assert copy.cache is None
    assert copy.location("s3://b/t/data/f.bin") == moved[1]


def test_the_version_of_a_file_changes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text("{}")
    before = Storage().version_of(str(path))
    path.write_text("{ }")
    os.utime(path, ns=(1, 1))
    assert before is not None
    assert Storage().version_of(str(path)) == (str(path), 1, 3) != before
    assert Storage().version_of(str(tmp_path / "none")) is None


def test_local_files_need_no_pyarrow(moved: tuple[Storage, str]) -> None:
    code = (
        "import sys; from icesql.storage.open import Storage; "
        f"assert len(Storage().read({moved[1]!r})) == 100; "
        "print([m for m in ('pyarrow', 'numpy', 'pyiceberg', 'fastavro') if m in sys.modules])"
    )
    assert fresh_python(code).strip() == "[]"
