"""How many rows a query gave is known once they were all fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql

NUMBERS = "SELECT range FROM range({})"


@pytest.mark.parametrize("count", [0, 1, 2_047, 2_048, 2_049, 5_000])
def test_it_is_known_after_the_last_row(connection: Any, count: int) -> None:
    for fetch in ("fetchall", "arrow"):
        cursor = connection.execute(NUMBERS.format(count))
        assert cursor.rowcount == -1
        getattr(cursor, fetch)()
        assert cursor.rowcount == count
    cursor = connection.execute(NUMBERS.format(count))
    assert len(list(cursor)) == cursor.rowcount == count


def test_it_is_unknown_while_rows_are_to_come(connection: Any) -> None:
    cursor = connection.execute(NUMBERS.format(5_000))
    cursor.fetchmany(10)
    assert cursor.rowcount == -1


def test_a_short_result_is_known_with_its_first_row(connection: Any) -> None:
    cursor = connection.execute(NUMBERS.format(3))
    cursor.fetchone()
    assert cursor.rowcount == 3


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SHOW TABLES", 3),
        ("DESCRIBE shop.customers", 2),
        ("SELECT count(*) FROM shop.customers", 1),
        ("SHOW REFS shop.orders", 3),
    ],
)
def test_it_is_known_at_once_where_no_engine_runs(connection: Any, sql: str, count: int) -> None:
    cursor = connection.execute(sql)
    assert cursor.rowcount == count
    assert len(cursor.fetchall()) == cursor.rowcount == count


def test_it_starts_anew_with_each_statement(connection: Any) -> None:
    cursor = connection.cursor()
    assert cursor.rowcount == -1
    cursor.execute("SELECT 1").fetchall()
    assert cursor.rowcount == 1
    cursor.execute("SET threads = 1")
    assert cursor.rowcount == -1


def test_what_a_change_did_is_known_after_its_cursor_is_closed(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a INTEGER)")
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO s.t VALUES (?)", [(1,), (2,)])
        cursor.close()
        assert cursor.rowcount == 2
        cursor.close()
        assert cursor.rowcount == 2
        query = connection.execute("SELECT * FROM s.t")
        query.fetchall()
        query.close()
        assert query.rowcount == -1
