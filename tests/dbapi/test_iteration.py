"""A cursor is an iterator over its rows, and hands each of them out once."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow.compute  # noqa: F401 - long results are read as Arrow where it is imported
import pytest

import icesql
from icesql.engine import result_rows
from icesql.engine.result_schema import ResultType

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


@pytest.mark.parametrize("taken", [1, 64, 2_048, 2_049, 17_000])
def test_a_long_table_is_read_as_arrow_in_steps_and_loses_no_row(
    connection: Any, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(result_rows, "_MANY_ROWS", 1)
    rows = "SELECT a.id, a.region FROM shop.orders a, range(20000) ORDER BY a.id"
    expected = connection.execute(rows).arrow().to_pylist()
    cursor = connection.execute(rows)
    found = [*cursor.fetchmany(taken), *islice(cursor, 3), cursor.fetchone()]
    assert cursor.rowcount == -1
    while several := cursor.fetchmany(999):
        found += several
    assert [dict(zip(("id", "region"), row, strict=True)) for row in found] == expected
    assert cursor.rowcount == len(expected)


def test_rows_that_come_quickly_are_taken_in_several_steps_and_all_are_taken() -> None:
    waiting = iter(range(100_000))
    size = result_rows.ChunkSize([ResultType("bigint")])
    found: list[tuple[int]] = []
    while not size.is_over:
        part = size.fetch(lambda count: [(number,) for number in islice(waiting, count)])
        assert len(part) <= 8 * 2_048
        found += part
    assert found == [(number,) for number in range(100_000)]


def test_wide_rows_are_taken_in_one_step() -> None:
    size = result_rows.ChunkSize([ResultType("varchar")])
    steps: list[int] = []

    def wide(count: int) -> list[tuple[str]]:
        steps.append(count)
        return [("x" * 100_000,)] * count

    size.fetch(wide)
    size.fetch(wide)
    assert steps == [64, 83]  # 8 MiB
