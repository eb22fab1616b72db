"""A copy of a catalog is read, and changes neither itself nor what it was copied from."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import Error, UnsupportedTableError

CHANGES = [
    "DROP TABLE s.t PURGE",
    "DROP TABLE s.t",
    "DROP TABLE IF EXISTS s.t PURGE",
    "INSERT INTO s.t VALUES (9, 'x')",
    "INSERT INTO s.t SELECT * FROM s.t",
    "INSERT OVERWRITE s.t SELECT * FROM s.t",
    "INSERT INTO s.t.branch_b VALUES (9, 'x')",
    "DELETE FROM s.t",
    "DELETE FROM s.t WHERE a = 1",
    "TRUNCATE TABLE s.t",
    "UPDATE s.t SET a = 2",
    "MERGE INTO s.t USING (SELECT 1 AS n) o ON t.a = o.n WHEN MATCHED THEN DELETE",
    "COPY s.t FROM '{folder}/rows.csv'",
    "CREATE OR REPLACE TABLE s.t AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE s.t (a BIGINT)",
    "ALTER TABLE s.t ADD COLUMN c BIGINT",
    "ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE s.t RENAME TO s.u",
    "ALTER TABLE s.t ADD PARTITION FIELD a",
    "ALTER TABLE s.t WRITE ORDERED BY a",
    "ALTER TABLE s.t CREATE TAG late",
    "ALTER TABLE s.t DROP BRANCH b",
    "CALL system.expire_snapshots(table => 's.t', older_than => now(), retain_last => 1)",
    "CALL system.remove_orphan_files(table => 's.t', older_than => now() - INTERVAL 2 DAY)",
    "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_manifests('s.t')",
    "CALL system.rollback_to_snapshot('s.t', {first})",
    "CALL system.set_current_snapshot('s.t', {first})",
    "CALL system.fast_forward('s.t', 'b', 'main')",
    "CALL system.compute_table_stats('s.t')",
    "CALL system.compute_partition_stats('s.t')",
]
OF_VIEWS = [
    "DROP VIEW s.v",
    "CREATE OR REPLACE VIEW s.v AS SELECT 2 AS a",
    "ALTER VIEW s.v SET TBLPROPERTIES ('a' = 'b')",
    "ALTER VIEW s.v RENAME TO s.w",
]

Open = Callable[[Path], Any]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def open_sqlite(folder: Path) -> Any:
    return icesql.connect(warehouse=str(folder), files=True)


def made(folder: Path, kind: str) -> Path:
    folder.mkdir(parents=True)
    if kind == "sqlite":
        properties = {"init_catalog_tables": "true"}
        icesql.connect(uri=f"sqlite:///{folder}/catalog.db", properties=properties).execute(
            "SHOW TABLES"
        )
    (folder / "rows.csv").write_text("a,b\n7,x\n")
    with open_sqlite(folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a BIGINT, b VARCHAR)")
        con.execute("INSERT INTO s.t VALUES (1, 'x')")
        con.execute("ALTER TABLE s.t CREATE BRANCH b")
        con.execute("INSERT INTO s.t VALUES (2, 'y')")
        if kind == "sqlite":
            con.execute("CREATE VIEW s.v AS SELECT 1 AS a")
    return folder


def rows(folder: Path) -> list[Any]:
    with open_sqlite(folder) as con:
        return con.execute("SELECT a FROM s.t ORDER BY a").fetchall()


@pytest.fixture(scope="module", params=["sqlite", "directory"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, kind: str) -> Path:
    return made(tmp_path_factory.mktemp("copied") / "o1", kind)


@pytest.fixture(params=["copied", "linked hard", "below", "moved", "moved away"])
def copy(
    request: pytest.FixtureRequest, original: Path, tmp_path: Path
) -> Iterator[tuple[Path, Path]]:
    """A copy of a warehouse, and all that nothing may change in."""
    place, all_of_it = tmp_path / "o2", original.parent
    match request.param:
        case "copied":
            shutil.copytree(original, place)
        case "linked hard":
            shutil.copytree(original, place, copy_function=os.link)
        case "below":
            place = original / "backup"
            shutil.copytree(original, place)
        case "moved":
            shutil.move(shutil.copytree(original, tmp_path / "o1"), place)
        case "moved away":
            shutil.copytree(original, place)
            os.rename(original, original.parent / "away")
    yield place, all_of_it
    if request.param == "below":
        shutil.rmtree(place)
    if request.param == "moved away":
        os.rename(original.parent / "away", original)


def test_nothing_is_changed_through_a_copy(copy: tuple[Path, Path], kind: str) -> None:
    place, others = copy
    before = files_of(others) | files_of(place)
    with open_sqlite(place) as con:
        assert con.execute("SELECT a FROM s.t ORDER BY a").fetchall() == [(1,), (2,)]
        (first,) = con.execute("SELECT min(snapshot_id) FROM s.t.snapshots").fetchone()
        for text in (*CHANGES, *(OF_VIEWS if kind == "sqlite" else ())):
            with pytest.raises(Error) as raised:
                con.execute(text.format(folder=place, first=first))
            told = str(raised.value)
            if not (
                kind == "directory" and ("RENAME" in text or text.startswith("DROP TABLE s.t"))
            ):
                assert isinstance(raised.value, UnsupportedTableError), (text, told)
                assert "says that" in told, (text, told)
        con.execute("BEGIN")
        with pytest.raises(UnsupportedTableError, match="says that it lies in"):
            con.execute("INSERT INTO s.t VALUES (9, 'x')")
        con.execute("ROLLBACK")
        assert con.execute("SELECT a FROM s.t ORDER BY a").fetchall() == [(1,), (2,)]
        assert con.execute("EXPLAIN CALL system.rewrite_data_files('s.t')").fetchall() is not None
    assert {**files_of(others), **files_of(place)} == before


@pytest.mark.parametrize("kind", ["sqlite", "directory"], scope="function")
def test_a_copy_has_files_of_its_own(tmp_path: Path, kind: str) -> None:
    first = made(tmp_path / "o1", kind)
    second = Path(shutil.copytree(first, tmp_path / "o2"))
    with open_sqlite(first) as con:
        con.execute("INSERT INTO s.t VALUES (3, 'z')")
        con.execute("DELETE FROM s.t WHERE a = 1")
        con.execute("CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))")
        con.execute("CALL system.expire_snapshots(table => 's.t', older_than => now())")
    assert rows(second) == [(1,), (2,)]
    assert rows(first) == [(2,), (3,)]
    with open_sqlite(first) as con:
        con.execute("DROP TABLE s.t PURGE")
    assert rows(second) == [(1,), (2,)]
    with open_sqlite(second) as con:
        # What is new in a copy lies in the copy.
        con.execute("CREATE TABLE s.new AS SELECT * FROM s.t")
        con.execute("INSERT INTO s.new VALUES (4, 'x')")
        assert con.execute("SELECT count(*) FROM s.new").fetchall() == [(3,)]
        con.execute("DROP TABLE s.new PURGE")
    assert not (first / "s" / "new").exists()


def use(folder: Path) -> None:
    """A change of each kind, which the tables take."""
    with open_sqlite(folder) as con:
        con.execute("INSERT INTO s.t VALUES (3, 'z')")
        con.execute("DELETE FROM s.t WHERE a = 1")
        con.execute("ALTER TABLE s.t CREATE TAG late")
        con.execute("CALL system.expire_snapshots(table => 's.t', older_than => now())")
        assert con.execute("SELECT a FROM s.t ORDER BY a").fetchall() == [(2,), (3,)]
        con.execute("DROP TABLE s.t PURGE")


@pytest.mark.parametrize("kind", ["sqlite", "directory"], scope="function")
def test_links_to_a_warehouse_are_no_copies(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "there" / "o1", kind)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    use(tmp_path / "link" / "o1")


def test_a_warehouse_that_was_made_through_a_link_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    made(tmp_path / "link" / "o1", "sqlite")
    use(tmp_path / "there" / "o1")


def test_tables_that_a_catalog_links_to_are_no_copies(tmp_path: Path) -> None:
    first = made(tmp_path / "o1", "sqlite")
    (tmp_path / "o2").mkdir()
    shutil.copy(first / "catalog.db", tmp_path / "o2")
    (tmp_path / "o2" / "s").symlink_to(first / "s")
    use(tmp_path / "o2")


@pytest.mark.parametrize("spelled", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_other_spellings_of_a_place_are_no_copies(tmp_path: Path, spelled: str) -> None:
    folder = made(tmp_path / "o1", "sqlite")
    with sqlite3.connect(folder / "catalog.db") as database:
        for name, location in database.execute(
            "SELECT table_name, metadata_location FROM iceberg_tables"
        ).fetchall():
            database.execute(
                "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
                (spelled.format(location.removeprefix("file://")), name),
            )
    database.close()
    use(folder)


def test_a_catalog_elsewhere_is_no_copy(tmp_path: Path) -> None:
    """Its own folder may hold other tables, and other files of the same names."""
    first = made(tmp_path / "o1", "sqlite")
    (tmp_path / "o2" / "s" / "t" / "metadata").mkdir(parents=True)
    shutil.copy(first / "catalog.db", tmp_path / "o2")
    use(tmp_path / "o2")


def test_a_table_of_the_same_name_beside_a_catalog_is_no_copy(tmp_path: Path) -> None:
    """v1.metadata.json is a name that each table of a folder has."""
    made(tmp_path / "folders", "directory")
    made(tmp_path / "other", "directory")
    with open_sqlite(tmp_path / "other") as con:
        con.execute("INSERT INTO s.t VALUES (7, 'x')")
    properties = {"init_catalog_tables": "true"}
    uri = f"sqlite:///{tmp_path}/folders/catalog.db"
    metadata = tmp_path / "other" / "s" / "t" / "metadata"
    newest = max(metadata.glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    (tmp_path / "folders" / "s" / "t" / "metadata" / newest.name).touch()
    with icesql.connect(uri=uri, properties=properties) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CALL system.register_table('s.t', '{newest}')")
        assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(3,)]
        con.execute("INSERT INTO s.t VALUES (8, 'x')")
        con.execute("ALTER TABLE s.t RENAME TO s.u")
        con.execute("DROP TABLE s.u")
