"""Repeated queries are fetched when they are bound, with unchanged reports and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import icesql


@pytest.fixture
def cursor(warehouse: Path) -> Iterator[Any]:
    with icesql.connect(warehouse=str(warehouse)) as connection:
        yield connection.cursor()


def ask(cursor: Any, sql: str, parameters: Any = None) -> Any:
    return cursor.execute(sql, parameters).fetchall()


LAST = "SELECT DATE '9999-12-31' AS d, TIMESTAMP '9999-12-31 23:59:59.999999' AS t FROM shop.orders"
FIRST = "SELECT DATE '0001-01-01' AS d, TIMESTAMP '0001-01-01' AS t FROM shop.orders LIMIT 1"


def test_the_first_and_the_last_day_are_no_infinity(cursor: Any) -> None:
    for _ in range(5):
        (row, *_) = ask(cursor, LAST)
        assert row == (date.max, datetime.max)
        assert ask(cursor, FIRST) == [(date.min, datetime.min)]


@pytest.mark.parametrize(
    "value",
    [
        "DATE 'infinity'",
        "TIMESTAMP '-infinity'",
        "DATE '10000-01-01'",
        "TIMESTAMP '0001-01-01 (BC)'",
    ],
)
def test_a_value_that_python_has_not_fails_when_it_is_fetched(cursor: Any, value: str) -> None:
    sql = f"SELECT {value} AS v FROM shop.orders WHERE id = 3"
    for _ in range(5):
        cursor.execute(sql)
        with pytest.raises(icesql.DataError, match="no Python value"):
            cursor.fetchall()
        assert ask(cursor, "SELECT id FROM shop.orders WHERE id = 3") == [(3,)]


def test_values_decide_anew_each_time(cursor: Any) -> None:
    sql = "SELECT region, CASE WHEN id = 5 THEN 'x' ELSE '1' END::INTEGER FROM shop.orders WHERE id = ?"
    for key in (6, 3, 6, 3, 5, 6, 5, 3):
        cursor.execute(sql, [key])
        if key == 5:
            with pytest.raises(icesql.DataError):
                cursor.fetchall()
        else:
            assert [row[1] for row in cursor.fetchall()] == [1]


def test_few_rows_may_become_many(cursor: Any) -> None:
    sql = "SELECT range AS n FROM shop.orders, range(1000) WHERE id = 3 AND range < ?"
    for count in (3, 3, 3, 900, 3, 64, 65, 63, 900, 900, 0, 3):
        assert ask(cursor, sql.replace("?", str(count))) == [(n,) for n in range(count)]
    sql = "SELECT a.id FROM shop.orders a, shop.orders b, shop.orders c"
    expected = sorted(ask(cursor, sql))
    for _ in range(4):
        assert sorted(ask(cursor, sql)) == expected


def test_rows_and_arrow_take_turns(cursor: Any) -> None:
    sql = "SELECT id, region FROM shop.orders WHERE id < 6 ORDER BY id"
    rows = ask(cursor, sql)
    for step in range(8):
        cursor.execute(sql)
        if step % 3 == 2:
            found = cursor.arrow().to_pylist()
            assert [tuple(each.values()) for each in found] == rows
        else:
            assert cursor.fetchone() == rows[0]
            assert cursor.fetchall() == rows[1:]
            assert cursor.fetchall() == []
            assert cursor.rowcount == len(rows)
        read_in_the_other_way = cursor.fetchall if step % 3 == 2 else cursor.arrow_reader
        with pytest.raises(icesql.InterfaceError):
            read_in_the_other_way()


def test_many_rows_where_few_were_expected_are_read_in_any_way(cursor: Any) -> None:
    sql = "SELECT id, range AS n FROM shop.orders, range(200) WHERE id = ?"
    for _ in range(4):
        for _ in range(3):
            assert ask(cursor, sql, [-1]) == []
        assert cursor.execute(sql, [3]).arrow().num_rows == 200
        for _ in range(3):
            assert ask(cursor, sql, [-1]) == []
        assert len(ask(cursor, sql, [3])) == 200


def test_rows_that_nobody_fetches_are_dropped(cursor: Any) -> None:
    sql = "SELECT id FROM shop.orders WHERE id = 3"
    for _ in range(4):
        assert ask(cursor, sql) == [(3,)]
    for _ in range(30):
        cursor.execute(sql)
        assert [name for name, *_ in cursor.description] == ["id"]
    cursor.close()
    with pytest.raises(icesql.InterfaceError):
        cursor.fetchall()


def test_what_is_asked_again_is_cancelled_at_once(cursor: Any) -> None:
    sql = "SELECT count(*) FROM shop.orders, range({}) a(i), range({}) b(j) WHERE (i * j) % 7 = 3"
    for _ in range(4):
        ask(cursor, sql.format(10, 10))
    cursor.execute("SET query_timeout = 0.2")
    slow = sql.format(10**6, 10**6)  # hours
    for _ in range(4):
        with pytest.raises(icesql.OperationalError, match="time limit"):
            ask(cursor, slow)
    cursor.execute("RESET query_timeout")
    threading.Timer(0.2, cursor.cancel).start()
    with pytest.raises(icesql.OperationalError, match="cancelled"):
        ask(cursor, slow)
    assert ask(cursor, sql.format(10, 10))
