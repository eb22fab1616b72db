"""A cursor is an iterator over its rows, and hands each of them out once."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

import icesql

# More than one step of fetching, and not a multiple of it.
COUNT = 5_000
NUMBERS = f"SELECT range FROM range({COUNT})"
ROWS = [(number,) for number in range(COUNT)]


def test_a_cursor_is_its_own_iterator(connection: Any) -> None:
    cursor = connection.execute(NUMBERS)
    assert iter(cursor) is cursor


@pytest.mark.parametrize("taken", [1, 3, 1_024, 2_048, 2_049, COUNT])
def test_a_loop_that_is_broken_off_loses_no_row(connection: Any, taken: int) -> None:
    cursor = connection.execute(NUMBERS)
    first = []
    for row in cursor:
        first.append(row)
        if len(first) == taken:
            break
    assert first + cursor.fetchall() == ROWS


def test_every_way_of_fetching_goes_on_where_another_stopped(connection: Any) -> None:
    cursor = connection.execute(NUMBERS)
    rows = [cursor.fetchone(), *cursor.fetchmany(7), *islice(cursor, 2_100), next(cursor)]
    rows += [*cursor.fetchmany(3), *cursor]
    assert rows == ROWS
    assert cursor.fetchone() is None
    assert list(cursor) == []


def test_a_row_that_fails_ends_a_loop_with_its_error_each_time(connection: Any) -> None:
    cursor = connection.execute("SELECT CAST(region AS INTEGER) FROM shop.orders")
    for _ in range(2):
        with pytest.raises(icesql.DataError):
            list(cursor)


def test_iterating_without_a_result_is_an_error(connection: Any) -> None:
    for cursor in (connection.cursor(), connection.execute("SET threads = 1")):
        with pytest.raises(icesql.ProgrammingError, match="no result"):
            next(cursor)
