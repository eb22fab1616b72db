"""Tables are opened by each kind of path; errors for other paths name the expected files."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.open import open_catalog, open_table
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.table import Table
from icesql.demo import build
from icesql.errors import CatalogError, CorruptFileError, StorageError, TableNotFoundError
from icesql.iceberg.manifest.manifest import snapshot_manifests
from tests.catalog import tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tables.write(tmp_path / "wh/orders/metadata/v1.metadata.json")
    tables.write(tmp_path / "wh/orders/metadata/v2.metadata.json")
    return tmp_path / "wh/orders"


def test_folder_metadata_folder_and_file_name_one_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = str(folder / "metadata/v2.metadata.json")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for path in (
        folder,
        str(folder) + "/",
        folder / "metadata",
        newest,
        f"file:{newest}",
        f"file://{folder}",
        f"file://localhost{folder}",
        "orders",
        "./orders/metadata",
        "~/orders",
    ):
        table = open_table(path)
        assert (table.metadata_location, table.name) == (newest, "orders")


def test_an_older_metadata_file_is_opened_as_named(folder: Path) -> None:
    first = str(folder / "metadata/v1.metadata.json")
    table = open_table(first, name="then")
    assert (table.metadata_location, table.identifier) == (first, ("then",))


def test_a_folder_whose_name_looks_like_a_uri_escape_is_literal_first(tmp_path: Path) -> None:
    tables.write(tmp_path / "a%20b/metadata/v1.metadata.json")
    tables.write(tmp_path / "c d/metadata/v1.metadata.json")
    assert open_table(f"file://{tmp_path}/a%20b").name == "a%20b"
    assert open_table(f"file://{tmp_path}/c%20d").name == "c d"


def test_a_metadata_file_of_any_name_is_known_by_its_content(tmp_path: Path) -> None:
    path = tables.write(tmp_path / "t/metadata/backup-of-v3")
    assert open_table(path).metadata_location == path


@pytest.mark.parametrize("what", ["missing", "empty folder", "data file"])
def test_what_is_no_table_is_not_found_and_the_error_says_why(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    expected = "no such file or folder"
    if what == "empty folder":
        path.mkdir()
        expected = r"looked for \*\.metadata\.json"
    elif what == "data file":
        path.write_bytes(b"PAR1 and so on")
        expected = "not the metadata"
    with pytest.raises(TableNotFoundError, match=expected) as caught:
        open_table(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b'{"format-version": 2}', b"\x1f\x8b broken", b"[]"])
def test_metadata_that_does_not_parse_is_corrupt_and_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t/metadata/v1.metadata.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    for name in (path, tmp_path / "t"):
        with pytest.raises(CorruptFileError) as caught:
            open_table(name)
        assert caught.value.path == str(path)


def test_a_folder_that_may_not_be_read_is_a_storage_error(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (folder / "metadata").chmod(0)
    with pytest.raises(StorageError, match="permission denied"):
        open_table(folder)


def test_a_table_travels_to_workers(folder: Path) -> None:
    table = open_table(folder)
    copy = pickle.loads(pickle.dumps(table))
    assert (copy.identifier, copy.metadata_location) == (table.identifier, table.metadata_location)
    assert copy.metadata.location == table.metadata.location


def test_a_moved_warehouse_is_read_where_it_lies(tmp_path: Path) -> None:
    build(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    table = open_catalog(warehouse=tmp_path / "new").load(("demo", "trips"))
    assert table.metadata.location == str(tmp_path / "old/demo/trips")
    locations = _files(table)
    assert len(locations) > 1
    for location in locations:
        assert location.startswith(str(tmp_path / "new/demo/trips/metadata/"))
        assert os.path.isfile(location)


def _files(table: Table) -> list[str]:
    """The paths of all files that are opened to plan the current snapshot."""
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return []
    found = [table.storage.location(snapshot.manifest_list)] if snapshot.manifest_list else []
    manifests = snapshot_manifests(snapshot, table.storage.read, table.storage.location)
    return found + [table.storage.location(manifest.manifest_path) for manifest in manifests]


# ------------------------------------------------------------------ tables of other systems


def _published(corpus: Path) -> list[dict[str, Any]]:
    with open(corpus / "tables.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_published_table_opens_by_its_metadata_file(corpus: Path) -> None:
    tables = _published(corpus)
    assert len(tables) > 100
    for each in tables:
        assert open_table(corpus / each["metadata"]).metadata.schema.fields, each["table"]


def test_every_file_of_the_published_tables_is_found(corpus: Path) -> None:
    """Data files as a reader would find them, read from the manifests with fastavro alone."""
    import fastavro

    for each in _published(corpus):
        if each["usability"] != "full":
            continue
        table = open_table(corpus / each["metadata"])
        locations = _files(table)
        assert locations, each["table"]
        for manifest in (
            locations[1:] if table.metadata.current_snapshot.manifest_list else locations
        ):
            with open(manifest, "rb") as file:
                for entry in fastavro.reader(file):
                    if entry["status"] == 2:
                        continue
                    path = entry["data_file"]["file_path"]
                    location = table.storage.location(path)
                    assert os.path.isfile(location), (each["table"], path)
                    assert Path(location).name == path.rpartition("/")[2]


def test_published_table_folders_open_without_naming_the_file(corpus: Path) -> None:
    older = set()
    opened = 0
    for each in _published(corpus):
        path = corpus / each["metadata"]
        if path.parent.name == "metadata" and each["usability"] != "metadata-only":
            found = open_table(path.parent.parent).metadata.last_updated_ms
            if found < open_table(path).metadata.last_updated_ms:
                older.add(each["table"])
            opened += 1
    assert opened > 80
    # Its v4.1.metadata.json was edited later; that name is not a version of the Hadoop layout.
    assert older == {"duckdb-iceberg/name_mapping/warehouse_1/mydb/t1"}


# ------------------------------------------------------------------ catalogs


def test_a_warehouse_folder_with_a_catalog_file_is_that_catalog(warehouse: Path) -> None:
    catalog = open_catalog(warehouse=warehouse)
    assert isinstance(catalog, SqliteCatalog)
    assert ("shop", "orders") in catalog.tables()


def test_a_warehouse_folder_without_one_is_its_tables(folder: Path) -> None:
    catalog = open_catalog(warehouse=f"file://{folder.parent}")
    assert isinstance(catalog, DirectoryCatalog)
    assert catalog.tables() == [("orders",)]


def test_a_warehouse_folder_with_two_catalog_files_is_ambiguous(
    warehouse: Path, tmp_path: Path
) -> None:
    for name in ("a.db", "b.sqlite"):
        shutil.copy(warehouse / "catalog.db", tmp_path / name)
    with pytest.raises(CatalogError, match=r"a\.db, b\.sqlite"):
        open_catalog(warehouse=tmp_path)


@pytest.mark.parametrize("form", ["sqlite:///{}", "sqlite+pysqlite:///{}", "{}", "file:{}"])
def test_a_sqlite_uri_or_path_is_that_file(warehouse: Path, form: str) -> None:
    catalog = open_catalog(uri=form.format(warehouse / "catalog.db"))
    assert isinstance(catalog, SqliteCatalog)
    assert catalog.name == "shop"


@pytest.mark.parametrize("relative", [False, True])
def test_new_tables_of_a_sqlite_file_go_to_the_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    """They are not placed beside the file, and the stored paths are absolute."""
    monkeypatch.chdir(tmp_path)
    folder = "lake" if relative else tmp_path / "lake"
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": folder}
    with icesql.connect("c", **given, properties={"init_catalog_tables": "true"}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS a")
        (path,) = con.execute("SELECT file_path FROM s.t.files").fetchone()
    assert path.startswith(f"{tmp_path}/lake/s/t/data/")


def test_a_missing_warehouse_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="does not exist; mkdir"):
        open_catalog(warehouse=tmp_path / "none")


def test_a_table_folder_is_no_warehouse(folder: Path) -> None:
    with pytest.raises(CatalogError, match=r"is a table.*iceberg_scan"):
        open_catalog(warehouse=folder)


def test_a_bucket_alone_is_no_catalog_and_the_error_says_what_to_name() -> None:
    with pytest.raises(
        CatalogError, match=r"the warehouse s3://b/wh alone is no catalog; name one with --uri"
    ) as caught:
        open_catalog(warehouse="s3://b/wh")
    assert "iceberg_scan('s3://b/wh/…')" in str(caught.value)
    with pytest.raises(CatalogError, match=r"its properties name no catalog; name one with --uri"):
        open_catalog(properties={"s3.region": "eu-west-1"})
