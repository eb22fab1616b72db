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
from tests.sessions import answer, fetched
from tests.tables import read_table

Open = Callable[[Path], Any]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def open_sqlite(folder: Path) -> Any:
    return icesql.connect(warehouse=folder, files=True)


def made(folder: Path, kind: str) -> Path:
    folder.mkdir(parents=True)
    if kind == "sqlite":
        properties = {"init_catalog_tables": "true"}
        answer("SHOW TABLES", uri=f"sqlite:///{folder}/catalog.db", properties=properties)
    (folder / "rows.csv").write_text("a,b\n7,x\n")
    run(
        folder,
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (a BIGINT, b VARCHAR)",
        "INSERT INTO s.t VALUES (1, 'x')",
        "ALTER TABLE s.t CREATE BRANCH b",
        "INSERT INTO s.t VALUES (2, 'y')",
        *(["CREATE VIEW s.v AS SELECT 1 AS a"] if kind == "sqlite" else []),
    )
    return folder


def rows(folder: Path, table: str = "s.t") -> list[Any]:
    with open_sqlite(folder) as con:
        return fetched(con, f"SELECT a FROM {table} ORDER BY a")


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
        assert fetched(con, "SELECT a FROM s.t ORDER BY a") == [(1,), (2,)]
        (first,) = con.execute("SELECT min(snapshot_id) FROM s.t.snapshots").fetchone()
        for where, text in read_table(__file__, "changes_of_a_copy.tsv"):
            if where not in ("any", kind):
                continue
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
        assert fetched(con, "SELECT a FROM s.t ORDER BY a") == [(1,), (2,)]
        assert fetched(con, "EXPLAIN CALL system.rewrite_data_files('s.t')") is not None
    assert {**files_of(others), **files_of(place)} == before


@pytest.mark.parametrize("kind", ["sqlite", "directory"], scope="function")
def test_a_copy_has_files_of_its_own(tmp_path: Path, kind: str) -> None:
    first = made(tmp_path / "o1", kind)
    second = Path(shutil.copytree(first, tmp_path / "o2"))
    run(
        first,
        "INSERT INTO s.t VALUES (3, 'z')",
        "DELETE FROM s.t WHERE a = 1",
        "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
        "CALL system.expire_snapshots(table => 's.t', older_than => now())",
    )
    assert (rows(first), rows(second)) == ([(2,), (3,)], [(1,), (2,)])
    run(first, "DROP TABLE s.t PURGE")
    assert rows(second) == [(1,), (2,)]
    # New tables of a copy are placed in the copy.
    run(second, "CREATE TABLE s.new AS SELECT * FROM s.t", "INSERT INTO s.new VALUES (4, 'x')")
    assert rows(second, "s.new") == [(1,), (2,), (4,)]
    run(second, "DROP TABLE s.new PURGE")
    assert not (first / "s" / "new").exists()


def run(folder: Path, *statements: str) -> None:
    with open_sqlite(folder) as con:
        for each in statements:
            con.execute(each)


def use(folder: Path) -> None:
    """A change of each kind, which the tables take."""
    run(
        folder,
        "INSERT INTO s.t VALUES (3, 'z')",
        "DELETE FROM s.t WHERE a = 1",
        "ALTER TABLE s.t CREATE TAG late",
        "CALL system.expire_snapshots(table => 's.t', older_than => now())",
    )
    assert rows(folder) == [(2,), (3,)]
    run(folder, "DROP TABLE s.t PURGE")


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
    run(tmp_path / "other", "INSERT INTO s.t VALUES (7, 'x')")
    properties = {"init_catalog_tables": "true"}
    uri = f"sqlite:///{tmp_path}/folders/catalog.db"
    metadata = tmp_path / "other" / "s" / "t" / "metadata"
    newest = max(metadata.glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    (tmp_path / "folders" / "s" / "t" / "metadata" / newest.name).touch()
    with icesql.connect(uri=uri, properties=properties) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CALL system.register_table('s.t', '{newest}')")
        assert fetched(con, "SELECT count(*) FROM s.t") == [(3,)]
        con.execute("INSERT INTO s.t VALUES (8, 'x')")
        con.execute("ALTER TABLE s.t RENAME TO s.u")
        con.execute("DROP TABLE s.u")
