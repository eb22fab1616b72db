"""The current metadata file is found in every layout that writers left behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import icesql
from icesql.catalog.current_metadata import (
    HINTS,
    find_current_metadata,
    hadoop_spellings,
    read_metadata,
)
from icesql.errors import StorageError
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage
from tests.catalog import tables
from tests.rows import rows_of
from tests.sessions import fetched


def current(folder: Path) -> str | None:
    found = find_current_metadata(str(folder), Storage())
    return None if found is None else Path(found).name


def make(folder: Path, *names: str) -> None:
    for at, name in enumerate(names):
        tables.write(folder / name, **{"last-updated-ms": 1_700_000_000_000 + at})


@rows_of(__file__, "current_metadata.tsv", "files", "place", "hint", "expected")
def test_the_current_file_of_a_folder(
    tmp_path: Path, files: str, place: str, hint: str, expected: str
) -> None:
    make(tmp_path, *files.split())
    for ending in ("", "\n"):
        if hint != "-":
            (tmp_path / place).write_text(hint + ending)
        assert current(tmp_path) == (None if expected == "-" else expected)
    if expected != "-":
        found = read_metadata(str(tmp_path / expected), Storage())
        assert found.location == str(tmp_path.parent)


@pytest.mark.parametrize("hint", ["11", "v11", "11\n", "v11.metadata.json", "999"])
@pytest.mark.parametrize("place", HINTS)
def test_a_hint_above_every_version_is_an_error(tmp_path: Path, hint: str, place: str) -> None:
    make(tmp_path, "v9.metadata.json", "v10.metadata.json", "zero.metadata.json")
    (tmp_path / place).write_text(hint)
    with pytest.raises(StorageError, match=r"v\d+\.metadata\.json: .*Restore .*write 10 into"):
        current(tmp_path)
    for spelled in hadoop_spellings(int("".join(filter(str.isdigit, hint)))):
        (tmp_path / "v10.metadata.json").rename(tmp_path / spelled)
        assert current(tmp_path) == spelled
        (tmp_path / spelled).rename(tmp_path / "v10.metadata.json")


@pytest.mark.parametrize("gone", [False, True])
def test_commits_between_two_looks_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """The hint is read after the folder was listed, and each listing may lack the newest file."""
    make(tmp_path, "v1.metadata.json")
    (tmp_path / "version-hint.text").write_text("1")
    real, listings = Storage.list_folder, []

    def stale(storage: Storage, folder: str) -> list[str]:
        found = real(storage, folder)
        version = 2 + len(listings)
        listings.append(found)
        if version < 8:  # another writer commits, and may remove older files
            if gone:
                (tmp_path / f"v{version - 1}.metadata.json").unlink()
            make(tmp_path, f"v{version}.metadata.json")
            (tmp_path / "version-hint.text").write_text(str(version))
        return found

    monkeypatch.setattr(Storage, "list_folder", stale)
    assert current(tmp_path) == "v7.metadata.json"
    assert len(listings) == 7


def test_a_version_that_no_listing_has_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "v1.metadata.json", "v2.gz.metadata.json")
    (tmp_path / "version-hint.text").write_text("2")
    listed = ["v1.metadata.json", "version-hint.text"]
    monkeypatch.setattr(Storage, "list_folder", lambda *_: listed)
    assert current(tmp_path) == "v2.gz.metadata.json"


def test_a_folder_without_metadata_or_no_folder_is_no_table(tmp_path: Path) -> None:
    assert current(tmp_path) is None
    assert current(tmp_path / "none") is None


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("a file")
    with pytest.raises(StorageError, match="not a directory"):
        find_current_metadata(str(tmp_path / "metadata"), Storage())


def test_metadata_is_parsed_once_while_the_file_stays_the_same(tmp_path: Path) -> None:
    path = tables.write(tmp_path / "v1.metadata.json")
    storage = Storage(cache=BoundedCache())
    first = read_metadata(path, storage)
    assert read_metadata(path, storage) is first
    tables.write(tmp_path / "v1.metadata.json", **{"last-updated-ms": 17, "location": "elsewhere"})
    assert read_metadata(path, storage).last_updated_ms == 17


def test_what_a_commit_replaced_is_not_kept(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a INT)")
        for number in range(5):
            connection.execute(f"INSERT INTO s.t VALUES ({number})")
        gc.collect()
        table = str(tmp_path / "s" / "t")
        held = [
            len(each.snapshots)
            for each in gc.get_objects()
            if isinstance(each, TableMetadata) and each.location == table
        ]
        assert held == [5]
        assert fetched(connection, "SELECT sum(a) FROM s.t") == [(10,)]
