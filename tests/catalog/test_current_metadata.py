"""The current metadata file is found in every layout that writers left behind."""

from __future__ import annotations

import gc
from pathlib import Path
from types import ModuleType

import pytest

import icesql
from icesql.catalog.current_metadata import (
    HINTS,
    find_current_metadata,
    hadoop_spellings,
    is_metadata_name,
    read_metadata,
)
from icesql.errors import StorageError
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage

U1, U2 = "0a0a0a0a-0000-4000-8000-000000000001", "0a0a0a0a-0000-4000-8000-000000000002"


def current(folder: Path) -> str | None:
    found = find_current_metadata(str(folder), Storage())
    return None if found is None else Path(found).name


def make(tables: ModuleType, folder: Path, *names: str) -> None:
    for at, name in enumerate(names):
        tables.write(folder / name, **{"last-updated-ms": 1_700_000_000_000 + at})


@pytest.mark.parametrize(
    ("name", "is_metadata"),
    [
        ("v1.metadata.json", True),
        ("v1.gz.metadata.json", True),
        ("v1.metadata.json.gz", True),
        (f"00001-{U1}.metadata.json", True),
        ("metadata.json", True),
        (".v1.metadata.json.crc", False),
        (".v1.metadata.json", False),
        ("version-hint.text", False),
        ("snap-1.avro", False),
        ("v1.metadata.json.bak", False),
    ],
)
def test_metadata_files_are_known_by_their_names(name: str, is_metadata: bool) -> None:
    assert is_metadata_name(name) is is_metadata


def test_the_hint_names_the_version(tmp_path: Path, tables: ModuleType) -> None:
    make(tables, tmp_path, "v1.metadata.json", "v2.metadata.json")
    (tmp_path / "version-hint.text").write_text("2\n")
    assert current(tmp_path) == "v2.metadata.json"


def test_a_lagging_hint_is_probed_upwards_until_a_gap(tmp_path: Path, tables: ModuleType) -> None:
    names = [f"v{n}.metadata.json" for n in (1, 2, 3, 4, 9)]
    make(tables, tmp_path, *names)
    (tmp_path / "version-hint.text").write_text("2")
    assert current(tmp_path) == "v4.metadata.json"


@pytest.mark.parametrize("hint", [None, "", "not a number", "7", "0"])
def test_without_a_usable_hint_the_greatest_version_wins(
    tmp_path: Path, tables: ModuleType, hint: str | None
) -> None:
    make(tables, tmp_path, "v9.metadata.json", "v10.metadata.json", "v2.metadata.json")
    if hint is not None:
        (tmp_path / "version-hint.text").write_text(hint)
    assert current(tmp_path) == "v10.metadata.json"


@pytest.mark.parametrize("hint", ["11", "v11", "11\n", "v11.metadata.json", "999"])
@pytest.mark.parametrize("place", HINTS)
def test_a_hint_above_every_version_is_an_error(
    tmp_path: Path, tables: ModuleType, hint: str, place: str
) -> None:
    make(tables, tmp_path, "v9.metadata.json", "v10.metadata.json", "zero.metadata.json")
    (tmp_path / place).write_text(hint)
    with pytest.raises(StorageError, match=r"v\d+\.metadata\.json: .*Restore .*write 10 into"):
        current(tmp_path)
    for spelled in hadoop_spellings(int("".join(filter(str.isdigit, hint)))):
        (tmp_path / "v10.metadata.json").rename(tmp_path / spelled)
        assert current(tmp_path) == spelled
        (tmp_path / spelled).rename(tmp_path / "v10.metadata.json")


def test_the_hint_of_a_catalog_is_not_that_of_versions(tmp_path: Path, tables: ModuleType) -> None:
    make(tables, tmp_path, "v2.metadata.json", f"00007-{U1}.metadata.json")
    (tmp_path / "version-hint.text").write_text("7")
    assert current(tmp_path) == f"00007-{U1}.metadata.json"


@pytest.mark.parametrize("gone", [False, True])
def test_commits_between_two_looks_are_no_error(
    tmp_path: Path, tables: ModuleType, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """The hint is read after the folder was listed, and each listing may lack the newest file."""
    make(tables, tmp_path, "v1.metadata.json")
    (tmp_path / "version-hint.text").write_text("1")
    real, listings = Storage.list_folder, []

    def stale(storage: Storage, folder: str) -> list[str]:
        found = real(storage, folder)
        version = 2 + len(listings)
        listings.append(found)
        if version < 8:  # another commits, and may remove its older files
            if gone:
                (tmp_path / f"v{version - 1}.metadata.json").unlink()
            make(tables, tmp_path, f"v{version}.metadata.json")
            (tmp_path / "version-hint.text").write_text(str(version))
        return found

    monkeypatch.setattr(Storage, "list_folder", stale)
    assert current(tmp_path) == "v7.metadata.json"
    assert len(listings) == 7


def test_a_version_that_no_listing_has_is_found(
    tmp_path: Path, tables: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tables, tmp_path, "v1.metadata.json", "v2.gz.metadata.json")
    (tmp_path / "version-hint.text").write_text("2")
    listed = ["v1.metadata.json", "version-hint.text"]
    monkeypatch.setattr(Storage, "list_folder", lambda *_: listed)
    assert current(tmp_path) == "v2.gz.metadata.json"


def test_a_hint_with_another_ending_counts_too(tmp_path: Path, tables: ModuleType) -> None:
    make(tables, tmp_path, "v1.metadata.json", "v3.metadata.json")
    (tmp_path / "version-hint.txt").write_text("1")
    assert current(tmp_path) == "v1.metadata.json"


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v3.metadata.json.gz"])
def test_gzip_is_found_in_both_spellings(tmp_path: Path, tables: ModuleType, name: str) -> None:
    make(tables, tmp_path, "v2.metadata.json", name)
    (tmp_path / "version-hint.text").write_text("2")
    assert current(tmp_path) == name
    assert read_metadata(str(tmp_path / name), Storage()).location == str(tmp_path.parent)


def test_catalog_files_go_by_number(tmp_path: Path, tables: ModuleType) -> None:
    make(tables, tmp_path, f"00010-{U1}.metadata.json", f"00009-{U2}.metadata.json")
    assert current(tmp_path) == f"00010-{U1}.metadata.json"


def test_of_two_catalog_files_with_one_number_the_later_update_wins(
    tmp_path: Path, tables: ModuleType
) -> None:
    make(tables, tmp_path, f"00003-{U2}.metadata.json", f"00003-{U1}.metadata.json")
    assert current(tmp_path) == f"00003-{U1}.metadata.json"
    (tmp_path / "version-hint.text").write_text(f"00003-{U2}")
    assert current(tmp_path) == f"00003-{U2}.metadata.json"


def test_a_hadoop_table_that_went_on_in_a_catalog_is_read_at_its_latest_update(
    tmp_path: Path, tables: ModuleType
) -> None:
    make(tables, tmp_path, "v5.metadata.json", f"00001-{U1}.metadata.json")
    (tmp_path / "version-hint.text").write_text("5")
    assert current(tmp_path) == f"00001-{U1}.metadata.json"


def test_names_without_version_go_by_the_latest_update(tmp_path: Path, tables: ModuleType) -> None:
    make(tables, tmp_path, "zero.metadata.json", "java.metadata.json")
    assert current(tmp_path) == "java.metadata.json"


def test_a_folder_without_metadata_or_no_folder_is_no_table(tmp_path: Path) -> None:
    assert current(tmp_path) is None
    assert current(tmp_path / "none") is None


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("a file")
    with pytest.raises(StorageError, match="not a directory"):
        find_current_metadata(str(tmp_path / "metadata"), Storage())


def test_metadata_is_parsed_once_while_the_file_stays_the_same(
    tmp_path: Path, tables: ModuleType
) -> None:
    path = tables.write(tmp_path / "v1.metadata.json")
    storage = Storage(cache=BoundedCache())
    first = read_metadata(path, storage)
    assert read_metadata(path, storage) is first
    tables.write(tmp_path / "v1.metadata.json", **{"last-updated-ms": 17, "location": "elsewhere"})
    assert read_metadata(path, storage).last_updated_ms == 17


def test_what_a_commit_replaced_is_not_kept(tmp_path: Path) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as connection:
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
        assert connection.execute("SELECT sum(a) FROM s.t").fetchall() == [(10,)]
