"""A small scan that is read repeatedly comes from memory, with the same rows."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.engine.duckdb.relations import kept_relations
from icesql.engine.duckdb.relations.kept_relations import USES_BEFORE, KeptRelations

OFTEN = USES_BEFORE + 4


def tables(connection: Any) -> list[str]:
    """The names of the tables kept in memory."""
    instance = connection._session.engines.started["local"].pool._current
    sql = "SELECT table_name FROM duckdb_tables() ORDER BY ALL"
    return [name for (name,) in instance._root.execute(sql).fetchall()]


def make(folder: Path, values: str) -> None:
    """A table t of one Parquet file with the rows of a SELECT in DuckDB's dialect."""
    from pyiceberg.catalog.sql import SqlCatalog

    rows = duckdb.sql(values).to_arrow_table()
    with closing(
        SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    ) as catalog:
        catalog.create_namespace_if_not_exists("n")
        catalog.create_table_if_not_exists("n.t", schema=rows.schema).append(rows)


VALUES = """
    SELECT i AS id, i % 3 = 0 AS b, (i * 7)::INTEGER AS small, i / 7 AS x, (i / 3)::FLOAT AS y,
        (i * 1.25)::DECIMAL(9, 2) AS d, DATE '1999-12-30' + i::INTEGER AS day,
        TIME '00:00:01' + to_seconds(i) AS clock, TIMESTAMP '2020-01-01' + to_hours(i) AS moment,
        CASE WHEN i % 5 > 0 THEN 'text ' || i END AS s, ('x' || i)::BLOB AS raw
    FROM range(500) AS r(i)
    UNION ALL
    SELECT 500, NULL, NULL, 'nan'::DOUBLE, 'nan'::FLOAT, NULL, DATE '9999-12-31', NULL, TIMESTAMP '9999-12-31', '', ''
    UNION ALL
    SELECT 501, NULL, NULL, 'inf'::DOUBLE, '-inf'::FLOAT, NULL, DATE '0001-01-01', NULL, TIMESTAMP '0001-01-01', NULL, NULL
"""
QUERIES = [
    "SELECT * FROM n.t",
    "SELECT * FROM n.t WHERE id = 77",
    "SELECT id, x, y FROM n.t WHERE x > 70",
    "SELECT id FROM n.t WHERE y >= 'nan'",
    "SELECT id, x FROM n.t WHERE NOT x < 71",
    "SELECT day, moment, s FROM n.t WHERE id IN (3, 500, 501)",
    "SELECT b, count(*), sum(d), max(x), min(y) FROM n.t GROUP BY ALL ORDER BY ALL",
    "SELECT a.id, c.s FROM n.t AS a JOIN n.t AS c ON a.small = c.id ORDER BY ALL",
    "SELECT raw, clock FROM n.t WHERE s IS NULL",
    "SELECT id FROM n.t ORDER BY x DESC, id LIMIT 3",
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    make(folder, VALUES)
    return folder


@pytest.fixture
def connection(warehouse: Path) -> Iterator[Any]:
    with icesql.connect(uri=f"sqlite:///{warehouse}/catalog.db") as opened:
        yield opened


@pytest.mark.parametrize("sql", QUERIES)
def test_the_same_rows_come_each_time(
    connection: Any, warehouse: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_relations, "USES_BEFORE", 2)
    uri = f"sqlite:///{warehouse}/catalog.db"
    with icesql.connect(uri=uri, settings={"local_reader": "arrow"}) as other:
        expected = repr(other.execute(sql).fetchall())
        arrow = other.execute(sql).arrow()
    for _ in range(6):
        assert repr(connection.execute(sql).fetchall()) == expected
    assert tables(connection)
    found = connection.execute(sql).arrow()
    assert found.schema == arrow.schema
    assert repr(found.to_pylist()) == repr(arrow.to_pylist())
    assert repr(connection.execute(sql).fetchall()) == expected


def test_keys_of_parameters_find_their_rows(connection: Any) -> None:
    for key in [*range(OFTEN), 499, 502, 2**40, -1, 77]:
        rows = connection.execute("SELECT id, s FROM n.t WHERE id = ?", [key]).fetchall()
        text = f"text {key}" if key % 5 else None
        assert rows == ([(key, text)] if 0 <= key < 500 else [])
    assert tables(connection)


def test_a_commit_is_seen_in_the_next_statement(tmp_path: Path) -> None:
    make(tmp_path, "SELECT 1 AS id")
    with icesql.connect(uri=f"sqlite:///{tmp_path}/catalog.db") as connection:
        sql = "SELECT count(*), max(id) FROM n.t WHERE id > 0"
        for number in range(2, 5):
            for _ in range(OFTEN):
                ((count, greatest),) = connection.execute(sql).fetchall()
                assert (count, greatest) == (number - 1, number - 1)
            make(tmp_path, f"SELECT {number} AS id")
        assert connection.execute(sql).fetchall() == [(4, 4)]
        assert tables(connection)


def test_a_file_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    make(tmp_path, "SELECT 11 AS id")
    (file,) = tmp_path.rglob("*.parquet")
    with icesql.connect(uri=f"sqlite:///{tmp_path}/catalog.db") as connection:
        for _ in range(OFTEN):
            assert connection.execute("SELECT id FROM n.t").fetchall() == [(11,)]
        assert tables(connection)
        # It has the same length, because only one number differs.
        other = tmp_path / "other"
        other.mkdir()
        make(other, "SELECT 12 AS id")
        (new,) = other.rglob("*.parquet")
        assert new.stat().st_size == file.stat().st_size
        shutil.copyfile(new, file)
        os.utime(file, (1, 1))
        assert connection.execute("SELECT id FROM n.t").fetchall() == [(12,)]
        file.unlink()
        with pytest.raises(icesql.Error, match="parquet"):
            connection.execute("SELECT id FROM n.t").fetchall()


def test_a_small_file_of_long_texts_is_not_kept(tmp_path: Path) -> None:
    make(tmp_path, "SELECT i AS id, repeat('x', 1000000) AS s FROM range(100) AS r(i)")
    (file,) = tmp_path.rglob("*.parquet")
    assert file.stat().st_size < 1 << 20
    with icesql.connect(uri=f"sqlite:///{tmp_path}/catalog.db") as connection:
        for _ in range(OFTEN):
            sql = "SELECT id, length(s) FROM n.t WHERE id = 3"
            assert connection.execute(sql).fetchall() == [(3, 1_000_000)]
        assert tables(connection) == []


def test_what_is_kept_is_bounded_and_goes_when_it_is_not_used(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_relations, "USES_BEFORE", 1)
    connection.execute("SELECT id FROM n.t").fetchall()
    local = connection._session.engines.started["local"]
    local.pool._current.begin_kept()
    kept = local.pool._current._kept
    kept.most_bytes = 3 * 502 * 16
    columns = ["id", "b", "small", "x", "y", "d", "day", "clock", "moment"]
    for column in columns + columns[:2]:
        for _ in range(4):
            connection.execute(f"SELECT {column} FROM n.t").fetchall()
        assert 0 < kept.bytes_used <= kept.most_bytes
        assert 0 < len(tables(connection)) <= 3


def test_scans_that_are_read_once_are_forgotten() -> None:
    kept = KeptRelations(1 << 40)
    for _ in range(USES_BEFORE):
        kept.use("often")
    for number in range(1000):
        kept.use(number)
        if number % 100 == 0:
            kept.use("often")
    assert len(kept._tables) <= 256
    assert kept.use("often")[0].uses > USES_BEFORE


def test_nothing_goes_while_it_is_read() -> None:
    kept = KeptRelations(1 << 40)
    for _ in range(USES_BEFORE):
        assert kept.use("a")[1] is False
    table, is_due = kept.use("a")
    assert is_due
    assert kept.use("a")[1] is False  # another query, while the first one makes it
    name, unused = kept.room(table, kept.most_bytes)
    assert name is not None
    assert unused == []
    kept.made(table, name)
    for _ in range(USES_BEFORE + 1):
        other, is_due = kept.use("b")
    assert is_due
    assert kept.room(other, 1) == (None, [])
    kept.not_made(other, again=True)
    kept.give_back(table)
    for _ in range(USES_BEFORE + 1):
        other, is_due = kept.use("b")
    assert is_due
    found, unused = kept.room(other, 1)
    assert found is not None
    assert unused == [name]
    kept.made(other, found)
    assert kept.bytes_used == 1


def test_many_clients_get_their_own_rows(connection: Any) -> None:
    wrong: list[Any] = []

    def client(number: int) -> None:
        cursor = connection.cursor()
        for step in range(30):
            key = number * 30 + step
            cursor.execute("SELECT id, small FROM n.t WHERE id = ?", [key])
            rows = cursor.fetchall()
            if rows != [(key, key * 7)]:
                wrong.append((key, rows))

    clients = [threading.Thread(target=client, args=[number]) for number in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert wrong == []
    assert len(tables(connection)) == 1


def test_sql_cannot_name_what_is_kept(connection: Any) -> None:
    for _ in range(OFTEN):
        connection.execute("SELECT id FROM n.t").fetchall()
    (name,) = tables(connection)
    for written in (name, f"memory.{name}", f"memory.main.{name}", f'"{name}"'):
        with pytest.raises(icesql.Error, match=r"not found|no catalog|no table"):
            connection.execute(f"SELECT * FROM {written}").fetchall()


def test_a_connection_that_ends_leaves_nothing(warehouse: Path) -> None:
    before = set(os.listdir(warehouse))
    for _ in range(3):
        with icesql.connect(uri=f"sqlite:///{warehouse}/catalog.db") as connection:
            for _ in range(OFTEN):
                connection.execute("SELECT id FROM n.t").fetchall()
    assert set(os.listdir(warehouse)) == before
    with sqlite3.connect(warehouse / "catalog.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
