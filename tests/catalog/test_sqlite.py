"""Catalogs in SQLite files are read without PyIceberg, and agree with it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from icesql.catalog.sqlite import SqliteCatalog, catalog_files, sqlite_file
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    Error,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
)
from tests.catalog import tables
from tests.sessions import fetched
from tests.warm import fresh_python

V0 = """
CREATE TABLE iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),
  previous_metadata_location VARCHAR(1000),
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255), property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key));
"""
V1 = V0.replace("previous_metadata_location VARCHAR(1000),", "previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),")  # fmt: skip


def make(file: Path, schema: str = V1, *rows: tuple[object, ...]) -> str:
    """A catalog file with rows (catalog, namespace, table, location[, type])."""
    with sqlite3.connect(file) as database:
        database.executescript(schema)
        for row in rows:
            names = "catalog_name, table_namespace, table_name, metadata_location"
            names += ", iceberg_type" if len(row) == 5 else ""
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO iceberg_tables ({names}) VALUES ({marks})", row)
    database.close()
    return str(file)


@pytest.fixture
def own(tmp_path: Path, warehouse: Path) -> SqliteCatalog:
    """A catalog file of this test alone, pointing at the tables that all tests share."""
    shutil.copy(warehouse / "catalog.db", tmp_path / "catalog.db")
    return SqliteCatalog(str(tmp_path / "catalog.db"))


def test_names_and_locations_are_those_that_pyiceberg_sees(warehouse: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    theirs = SqlCatalog("shop", uri=f"sqlite:///{warehouse}/catalog.db")
    ours = SqliteCatalog(f"{warehouse}/catalog.db")
    assert ours.namespaces() == [tuple(each) for each in theirs.list_namespaces()]
    assert ours.tables(("shop",)) == sorted(tuple(each) for each in theirs.list_tables("shop"))
    for identifier in ours.tables():
        table, expected = ours.load(identifier), theirs.load_table(identifier)
        assert expected.metadata_location == f"file://{table.metadata_location}"
        assert table.metadata.current_snapshot_id == expected.metadata.current_snapshot_id
        assert table.name == ".".join(identifier)
    theirs.close()


def test_namespaces_are_split_at_dots_and_include_their_parents(tmp_path: Path) -> None:
    catalog = SqliteCatalog(
        make(tmp_path / "c.db", V0, ("c", "a.b", "t", "/x"), ("c", "z", "u", "/y"))
    )
    assert catalog.namespaces() == [("a",), ("a", "b"), ("z",)]
    assert catalog.tables() == [("a", "b", "t"), ("z", "u")]
    assert catalog.tables(("a",)) == []
    assert catalog.tables(("a", "b")) == [("a", "b", "t")]


def test_a_file_of_the_first_schema_version_has_no_type_column(tmp_path: Path) -> None:
    location = tables.write(tmp_path / "t/metadata/v1.metadata.json")
    catalog = SqliteCatalog(make(tmp_path / "c.db", V0, ("c", "n", "t", location)))
    assert catalog.load(("n", "t")).metadata_location == location


def test_views_are_no_tables(tmp_path: Path) -> None:
    catalog = SqliteCatalog(
        make(
            tmp_path / "c.db",
            V1,
            ("c", "n", "v", "/v", "VIEW"),
            ("c", "n", "t", "/t", "TABLE"),
            ("c", "n", "u", "/u", None),
        )
    )
    assert catalog.tables() == [("n", "t"), ("n", "u")]
    with pytest.raises(UnsupportedTableError, match="view"):
        catalog.load(("n", "v"))


def test_one_of_several_catalogs_in_a_file_must_be_named(tmp_path: Path) -> None:
    here = tables.write(tmp_path / "t/metadata/v1.metadata.json")
    file = make(tmp_path / "c.db", V1, ("prod", "n", "t", here), ("test", "n", "u", "/y"))
    assert SqliteCatalog(file, "prod").tables() == [("n", "t")]
    assert SqliteCatalog(file, "test").tables() == [("n", "u")]
    with pytest.raises(CatalogError, match="prod, test"):
        SqliteCatalog(file)
    with pytest.raises(CatalogError, match="none is called dev"):
        SqliteCatalog(file, "dev")


def test_the_only_catalog_of_a_file_answers_to_any_name(warehouse: Path) -> None:
    catalog = SqliteCatalog(f"{warehouse}/catalog.db", "mine")
    assert (catalog.name, ("shop", "orders") in catalog.tables()) == ("mine", True)


def test_case_may_differ_and_unknown_names_bring_the_nearest(own: SqliteCatalog) -> None:
    assert own.load(("SHOP", "Orders")).identifier == ("shop", "orders")
    with pytest.raises(TableNotFoundError) as caught:
        own.load(("shop", "order"))
    assert caught.value.similar[0] == "shop.orders"
    with pytest.raises(TableNotFoundError, match=r'did you mean "shop\.orders"'):
        own.load(("orders",))


def test_a_warehouse_that_moved_with_its_catalog_is_found(tmp_path: Path) -> None:
    name = "00001-0a0a0a0a-0000-4000-8000-000000000001.metadata.json"
    here = tables.write(tmp_path / f"wh/n.db/t/metadata/{name}")
    for location in (f"file:///gone/wh/n.db/t/metadata/{name}", f"/gone/wh/n.db/t/metadata/{name}"):
        (tmp_path / "wh/c.db").unlink(missing_ok=True)
        catalog = SqliteCatalog(make(tmp_path / "wh/c.db", V1, ("c", "n", "t", location)))
        assert catalog.load(("n", "t")).metadata_location == here


def test_metadata_of_another_table_never_stands_in(tmp_path: Path) -> None:
    tables.write(tmp_path / "metadata/v1.metadata.json")
    catalog = SqliteCatalog(
        make(tmp_path / "c.db", V1, ("c", "n", "t", "/gone/n/t/metadata/v1.metadata.json"))
    )
    with pytest.raises(StorageError, match="/gone/n/t/metadata"):
        catalog.load(("n", "t"))


def test_reading_does_not_write_the_file(own: SqliteCatalog) -> None:
    before = Path(own.file).read_bytes()
    Path(own.file).chmod(0o444)
    own.load(("shop", "orders"))
    own.tables()
    assert Path(own.file).read_bytes() == before


def test_files_that_are_no_catalogs_are_refused_or_passed_over(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello")
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    make(tmp_path / "real.sqlite3")
    assert catalog_files(str(tmp_path)) == ["real.sqlite3"]
    with pytest.raises(CatalogError, match="no table iceberg_tables"):
        SqliteCatalog(str(tmp_path / "other.db"))
    with pytest.raises(CatalogError, match="not a database"):
        SqliteCatalog(str(tmp_path / "text.db"))
    with pytest.raises(CatalogError, match=r"SQLite catalog .* not found"):
        SqliteCatalog(str(tmp_path / "none.db"))


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:", "sqlite:///"])
def test_a_catalog_in_memory_is_refused(uri: str) -> None:
    with pytest.raises(CatalogError, match="in memory"):
        sqlite_file(uri)


def test_sqlite_uris_name_files_as_sqlalchemy_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sqlite_file("sqlite:///c.db") == str(tmp_path / "c.db")
    assert sqlite_file(f"sqlite:///{tmp_path}/c.db?timeout=3") == str(tmp_path / "c.db")
    assert sqlite_file("postgresql://host/db") is None
    assert sqlite_file("s3://bucket/x.db") is None
    assert sqlite_file("prod") is None


def test_loading_imports_nothing_slow(warehouse: Path) -> None:
    code = (
        "import sys; from icesql.catalog.open import open_catalog; "
        f"c = open_catalog(warehouse={str(warehouse)!r}); c.load(('shop', 'orders')); "
        "slow = ('pyiceberg', 'pyarrow', 'numpy', 'fastavro', 'pydantic', 'sqlalchemy'); "
        "print([m for m in slow if m in sys.modules])"
    )
    assert fresh_python(code).strip() == "[]"


def damaged(file: Path) -> list[bytes]:
    """The file with one byte changed, at each place of a text in its rows."""
    data = file.read_bytes()
    texts = (b"iceberg_tables", b"catalog_name", b"main", b"ns", b"first", b"/nowhere/v1", b"TABLE")
    places = {
        at + index
        for text in texts
        for at in range(len(data))
        if data.startswith(text, at)
        for index in range(len(text))
    }
    return [data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :] for at in sorted(places)]


def test_damaged_texts_are_errors_of_the_catalog(tmp_path: Path) -> None:
    rows = [("main", "ns", each, "/nowhere/v1.metadata.json", "TABLE") for each in ("first", "b")]
    whole = Path(make(tmp_path / "whole.db", V1, *rows))
    file = tmp_path / "c.db"
    refused = 0
    for data in damaged(whole):
        file.write_bytes(data)
        for ask in (
            lambda made: made.tables(),
            lambda made: made.namespaces(),
            lambda made: made.views(),
            lambda made: made.load(("ns", "first")),
            lambda made: made.load(("ns", "FIRST")),
            lambda made: made.rename(("ns", "first"), ("ns", "c")),
            lambda made: made.drop(("ns", "b")),
        ):
            try:
                made = SqliteCatalog(str(file), "main")
                try:
                    ask(made)
                finally:
                    made.close()
            except Error as error:
                refused += "UTF-8" in str(error)
    assert refused > 100


@pytest.mark.parametrize("value", [b"ns", 7, 1.5, None])
def test_rows_of_other_types_than_texts(tmp_path: Path, value: object) -> None:
    """A damaged record may contain such values, whatever the declared types of the columns."""
    schema = V1.replace("NOT NULL", "").replace("VARCHAR(255)", "").replace("VARCHAR(1000)", "")
    for place in range(5):
        row: list[object] = ["main", "ns", "t", "/nowhere/v1.metadata.json", "TABLE"]
        row[place] = value
        file = make(
            tmp_path / f"{place}.db", schema, tuple(row), ("main", "ns", "u", "/x", "TABLE")
        )
        with suppress(Error):
            made = SqliteCatalog(file, "main")
            for ask in (made.tables, made.views, made.namespaces):
                with suppress(Error):
                    ask()
            for name in ("t", "T"):
                with suppress(Error):
                    made.load(("ns", name))


def test_a_commit_that_was_killed_in_its_middle(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    make(file, V1, ("c", "s", "t", "/w/t.metadata.json", "TABLE"))
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")  # pages go to the file before the commit
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE other (a)")
    for _ in range(200):
        writer.execute("INSERT INTO other VALUES (randomblob(1000))")
    killed = tmp_path / "killed"
    killed.mkdir()
    for each in ("c.db", "c.db-journal"):
        shutil.copy(tmp_path / each, killed / each)
    writer.close()
    catalog = SqliteCatalog(str(killed / "c.db"), "c")
    assert catalog.tables() == [("s", "t")]
    assert not (killed / "c.db-journal").exists()
    catalog.close()


def test_only_create_makes_the_file_of_a_uri(tmp_path: Path) -> None:
    from icesql import connect

    file = tmp_path / "new.db"
    place = {"uri": f"sqlite:///{file}", "warehouse": str(tmp_path / "wh")}
    for sql in (
        "SHOW TABLES", "SHOW SCHEMAS", "SELECT * FROM s.t", "DROP SCHEMA s", "DROP TABLE IF EXISTS s.t",
        "CREATE TABLE s.t (a INT)", "INSERT INTO s.t VALUES (1)", "USE s",
    ):  # fmt: skip
        with connect(**place) as connection, pytest.raises(CatalogError, match="CREATE SCHEMA"):
            connection.execute(sql)
        assert not file.exists(), sql
    with connect(**place, read_only=True) as connection, pytest.raises(AccessDeniedError):
        connection.execute("CREATE SCHEMA s")
    with connect(**place) as connection:
        connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS a")
        assert not file.exists()
        with pytest.raises(CatalogError):
            connection.execute("SHOW TABLES")
        connection.execute("CREATE SCHEMA IF NOT EXISTS s")
        connection.execute("CREATE TABLE s.t AS SELECT 1 AS a")
    with connect(**place) as connection:
        assert fetched(connection, "SELECT a FROM s.t") == [(1,)]
        connection.execute("CREATE SCHEMA IF NOT EXISTS s")


def test_the_file_of_a_uri_is_not_made_for_another_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql import connect

    other = tmp_path / "other.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{other}")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__INIT_CATALOG_TABLES", "true")
    with connect(uri=f"sqlite:///{tmp_path}/new.db") as connection, suppress(Error):
        connection.execute("CREATE SCHEMA lake.s")
    assert not (tmp_path / "new.db").exists()
