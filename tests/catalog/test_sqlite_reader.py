"""A SQLite catalog that is kept open sees every commit, never waits and leaves no files behind."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import icesql
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.sqlite_reader import SqliteReader, WouldWait
from tests.catalog import tables

NAME = ("shop", "orders")


@pytest.fixture
def own(tmp_path: Path, warehouse: Path) -> SqliteCatalog:
    shutil.copy(warehouse / "catalog.db", tmp_path / "catalog.db")
    return SqliteCatalog(str(tmp_path / "catalog.db"))


def location(catalog: SqliteCatalog) -> str:
    table = catalog.load_without_waiting(NAME)
    assert table is not None
    return table.metadata_location


def commit(file: str, location: str) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE iceberg_tables SET metadata_location = ?", (location,))
        database.commit()


def test_each_look_gives_what_was_committed_last(own: SqliteCatalog) -> None:
    for number in range(1, 30):
        new = tables.write(Path(own.file).parent / f"o/metadata/{number:05}-x.metadata.json")
        commit(own.file, new)
        assert location(own) == new


def test_what_is_being_committed_is_not_waited_for(own: SqliteCatalog) -> None:
    before = location(own)
    new = tables.write(Path(own.file).parent / "o/metadata/00009-x.metadata.json")
    with closing(sqlite3.connect(own.file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE iceberg_tables SET metadata_location = ?", (new,))
        assert location(own) == before
        writer.execute("COMMIT")
        writer.execute("BEGIN EXCLUSIVE")
        assert own.load_without_waiting(NAME) is None
        writer.execute("ROLLBACK")
    assert location(own) == new
    with own._reader.connection() as database:
        assert database.execute("PRAGMA busy_timeout").fetchone() == (0,)


def test_a_look_holds_no_lock(own: SqliteCatalog) -> None:
    own.load_without_waiting(NAME)
    with closing(sqlite3.connect(own.file, timeout=0, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE iceberg_tables SET table_name = table_name")
        writer.execute("COMMIT")


def test_a_file_in_the_place_of_another_is_opened_anew(own: SqliteCatalog) -> None:
    own.load_without_waiting(NAME)
    other = f"{own.file}.other"
    shutil.copy(own.file, other)
    new = tables.write(Path(own.file).parent / "o/metadata/00009-x.metadata.json")
    commit(other, new)
    os.replace(other, own.file)
    assert location(own) == new
    os.unlink(own.file)
    assert own.load_without_waiting(NAME) is None


def test_a_log_of_a_writer_goes_when_the_writer_does(own: SqliteCatalog) -> None:
    with closing(sqlite3.connect(own.file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
    assert own.load_without_waiting(NAME) is None
    with closing(sqlite3.connect(own.file)) as writer:
        writer.execute("UPDATE iceberg_tables SET table_name = table_name")
        writer.commit()
    assert not os.path.exists(f"{own.file}-wal")
    own.load(NAME)


def test_names_that_need_a_search_are_left_to_it(own: SqliteCatalog) -> None:
    for name in (("SHOP", "Orders"), ("shop", "none"), ("orders",)):
        assert own.load_without_waiting(name) is None


def test_nothing_stays_open(own: SqliteCatalog) -> None:
    def opened() -> int:
        folder = "/proc/self/fd"
        return sum(
            os.path.realpath(f"{folder}/{each}") == os.path.realpath(own.file)
            for each in os.listdir(folder)
        )

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no list of open files")
    for _ in range(20):
        own.load_without_waiting(NAME)
        assert opened() == 1
    own.close()
    assert opened() == 0
    with pytest.raises(WouldWait), SqliteReader(own.file).connection() as database:
        database.execute("SELECT no_such_column")
    assert opened() == 0
    assert own.load_without_waiting(NAME) is None


def test_a_session_looks_without_a_thread(
    own: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with icesql.connect(uri=f"sqlite:///{own.file}") as connection:
        cursor = connection.cursor()
        cursor.execute("DESCRIBE shop.orders")

        def background_call(*_: object) -> None:
            raise AssertionError("a thread was asked")

        with monkeypatch.context() as patch:
            patch.setattr("icesql.context.BackgroundCall", background_call)
            cursor.execute("SELECT count(*) FROM shop.orders")
        # A writer that does not end is waited for where the deadline is seen: SQLite itself would
        # wait longer, and say that the file is locked.
        with closing(sqlite3.connect(own.file, isolation_level=None)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            cursor.execute("SET query_timeout = 0.1")
            with pytest.raises(icesql.OperationalError, match="time limit"):
                cursor.execute("SELECT count(*) FROM shop.orders")
