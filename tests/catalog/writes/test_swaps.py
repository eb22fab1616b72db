"""One atomic step: of several writers one wins, and the others change nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.writes.change import Conflict, Done
from icesql.commit.create import create_table, stage_table
from icesql.errors import (
    CatalogError,
    NotSupportedError,
    TableNotFoundError,
)
from tests.catalog.writes.swaps import TABLE, swapped, value_of
from tests.catalog.writes.writers import Writers
from tests.commit.tables import CATALOGS, SCHEMA, create, directory, sqlite
from tests.scenes import Scene, scenes


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path: Path):
    return CATALOGS[request.param](tmp_path)


@pytest.mark.parametrize("kind", CATALOGS)
@scenes(__file__, "swaps.scenes")
def test_one_writer_wins(scene: Scene, kind: str, tmp_path, monkeypatch) -> None:
    Writers(CATALOGS[kind], tmp_path, monkeypatch).play(scene)


# ------------------------------------------------------------------ directories


@scenes(__file__, "swaps_of_folders.scenes")
def test_one_writer_wins_in_a_folder(scene: Scene, tmp_path, monkeypatch) -> None:
    Writers(directory, tmp_path, monkeypatch).play(scene)


def test_files_that_a_catalog_named_are_for_that_catalog(tmp_path) -> None:
    through_sqlite = sqlite(tmp_path)
    create(through_sqlite)
    folder = DirectoryCatalog(str(tmp_path / "wh"))
    found = folder.load(TABLE)
    with pytest.raises(NotSupportedError, match="managed by another catalog"):
        swapped(folder, found, "1")


@pytest.mark.parametrize("part", ["..", "", "a/b", ".hidden", "_private", "a\0b"])
def test_a_new_name_stays_in_the_warehouse(tmp_path, part) -> None:
    catalog = directory(tmp_path)
    for make in (
        lambda: stage_table(catalog, ("ns", part), SCHEMA),
        lambda: catalog.create_namespace((part,)),
    ):
        with pytest.raises(CatalogError, match="cannot be a name"):
            make()


def test_no_table_is_made_where_files_lie(catalog, tmp_path) -> None:
    (tmp_path / "wh/ns/t/metadata").mkdir(parents=True)  # PURGE leaves only folders
    stage_table(catalog, TABLE, SCHEMA)
    (tmp_path / "wh/ns/t/metadata/x").write_text("")
    place = str(tmp_path / "wh/ns/t")
    named = {} if catalog.kind == "directory" else {"location": place}
    with pytest.raises(CatalogError, match="there are files at"):
        stage_table(catalog, TABLE, SCHEMA, **named)
    if catalog.kind == "directory":
        return
    # Files left by a dropped table do not prevent the reuse of its name.
    beside = {stage_table(catalog, TABLE, SCHEMA).table.metadata.location for _ in "ab"}
    assert all(each.startswith(f"{place}-") for each in beside)
    assert len(beside) == 2


# ------------------------------------------------------------------ SQLite


def rows(
    tmp_path: Path, query: str = "SELECT * FROM iceberg_tables", *values: str
) -> list[tuple[object, ...]]:
    """Run a statement in the catalog's SQLite file, and return its rows."""
    with closing(sqlite3.connect(tmp_path / "c.db")) as database, database:
        return database.execute(query, values).fetchall()


def test_the_row_of_a_table_is_that_of_java(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog)
    first = table.metadata_location
    assert first.rpartition("/")[2].startswith("00000-")
    assert rows(tmp_path) == [("c", "ns", "t", first, None, "TABLE")]
    second = swapped(catalog, table, "1").location
    assert second.rpartition("/")[2].startswith("00001-")
    assert rows(tmp_path) == [("c", "ns", "t", second, first, "TABLE")]


def test_the_older_schema_of_the_catalog_has_no_types(tmp_path) -> None:
    columns = "table_namespace TEXT, table_name TEXT, metadata_location TEXT"
    columns = f"catalog_name TEXT, {columns}, previous_metadata_location TEXT"
    key = "PRIMARY KEY (catalog_name, table_namespace, table_name)"
    rows(tmp_path, f"CREATE TABLE iceberg_tables ({columns}, {key})")
    (tmp_path / "wh").mkdir()
    properties = {"warehouse": str(tmp_path / "wh")}
    catalog = SqliteCatalog(str(tmp_path / "c.db"), "c", properties=properties)
    catalog.create_namespace(("ns",))
    table = create(catalog)
    assert isinstance(swapped(catalog, table, "1"), Done)
    assert len(rows(tmp_path)[0]) == 5
    catalog.drop(TABLE)
    assert rows(tmp_path) == []


def test_a_view_of_the_name_is_left_alone(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog)
    rows(tmp_path, "UPDATE iceberg_tables SET iceberg_type = 'VIEW'")
    found = swapped(catalog, table, "1")
    assert isinstance(found, Conflict)
    with pytest.raises(TableNotFoundError):
        catalog.drop(TABLE)


def test_a_row_in_another_spelling_is_found_and_kept_as_previous(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog)
    spelled = f"file://{table.metadata_location}"
    rows(tmp_path, "UPDATE iceberg_tables SET metadata_location = ?", spelled)
    loaded = catalog.load(TABLE)
    made = swapped(catalog, loaded, "1")
    assert isinstance(made, Done)
    assert rows(tmp_path)[0][3:5] == (made.location, spelled)


@pytest.mark.parametrize(
    "held",
    [["BEGIN IMMEDIATE"], ["BEGIN", "SELECT * FROM iceberg_tables"]],
    ids=["writer", "reader"],
)
def test_a_catalog_that_another_holds_is_a_conflict(tmp_path, monkeypatch, held) -> None:
    monkeypatch.setattr("icesql.catalog.writes.sqlite._BUSY_SECONDS", 0.05)
    catalog = sqlite(tmp_path)
    table = create(catalog)
    with closing(sqlite3.connect(tmp_path / "c.db", isolation_level=None)) as other:
        for statement in held:
            other.execute(statement).fetchall()
        found = swapped(catalog, table, "1")
    assert isinstance(found, Conflict)
    assert len(held) > 1 or "locked" in found.reason
    assert rows(tmp_path)[0][3] == table.metadata_location
    folder = Path(table.metadata_location).parent
    assert len(list(folder.glob("*.metadata.json"))) == 1


def test_what_interrupts_the_end_of_a_transaction_keeps_the_file(tmp_path, monkeypatch) -> None:
    """Python raises KeyboardInterrupt after COMMIT returns: the row names the new file by then."""
    from icesql.catalog.writes import sqlite as writes

    def interrupted(database, new):
        database.execute("COMMIT")
        raise KeyboardInterrupt

    catalog = sqlite(tmp_path)
    table = create(catalog)
    monkeypatch.setattr(writes, "_committed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        swapped(catalog, table, "1")
    assert value_of(catalog) == "1"


def test_namespaces_are_rows(tmp_path) -> None:
    sqlite(tmp_path).create_namespace(("a", "b"))
    found = rows(tmp_path, "SELECT * FROM iceberg_namespace_properties")
    assert ("c", "a.b", "exists", "true") in found


def test_a_new_table_lies_where_its_namespace_says(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    insert = "INSERT INTO iceberg_namespace_properties VALUES ('c', 'ns', 'location', ?)"
    rows(tmp_path, insert, str(tmp_path / "other"))
    assert create(catalog).metadata.location == str(tmp_path / "other/t")
    staged = stage_table(catalog, ("ns", "u"), SCHEMA, location=f"{tmp_path}/own/")
    assert create_table(catalog, staged).table.metadata.location == str(tmp_path / "own")


def test_a_catalog_is_made_where_its_owner_asks_for_it(tmp_path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    file = str(tmp_path / "new.db")
    with pytest.raises(CatalogError, match="init_catalog_tables=true makes a new one"):
        SqliteCatalog(file)
    assert not os.path.exists(file)
    properties = {"init_catalog_tables": "true", "warehouse": str(tmp_path / "wh")}
    for _ in range(2):
        catalog = SqliteCatalog(file, "c", properties=properties)
    catalog.create_namespace(("ns",))
    create(catalog)
    theirs = SqlCatalog("c", uri=f"sqlite:///{file}", warehouse=str(tmp_path / "wh"))
    assert theirs.load_table("ns.t").metadata.format_version == 2
    theirs.close()
