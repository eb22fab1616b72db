"""Threads may share a connection (``threadsafety`` 2), and even a cursor loses nothing to them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import icesql

COUNT = 30_000
NUMBERS = f"SELECT range, 'row ' || range FROM range({COUNT})"
ROWS = Counter((number, f"row {number}") for number in range(COUNT))


def together(work: Callable[[int], None], number: int) -> list[BaseException]:
    """What ``number`` threads raise, which begin ``work`` at one time."""
    raised: list[BaseException] = []
    begun = threading.Barrier(number)

    def run(index: int) -> None:
        begun.wait()
        try:
            work(index)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not any(thread.is_alive() for thread in threads)
    return raised


def one_by_one(cursor: Any, take: Callable[[Any], None]) -> None:
    while (row := cursor.fetchone()) is not None:
        take([row])


def in_lots(cursor: Any, take: Callable[[Any], None]) -> None:
    while rows := cursor.fetchmany(37):
        take(rows)


def in_a_loop(cursor: Any, take: Callable[[Any], None]) -> None:
    for row in cursor:
        take([row])


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_ten_threads_get_each_row_of_a_cursor_once(connection: Any, reader: str) -> None:
    connection.execute(f"SET local_reader = '{reader}'")
    cursor = connection.execute(NUMBERS)
    got: list[Any] = []
    ways = [one_by_one, in_lots, in_a_loop]
    assert together(lambda index: ways[index % 3](cursor, got.extend), 10) == []
    assert Counter(got) == ROWS
    assert cursor.rowcount == COUNT


def test_ten_threads_that_ask_for_all_get_each_row_once(connection: Any) -> None:
    cursor = connection.execute(NUMBERS)
    got: list[Any] = []
    assert together(lambda _: got.extend(cursor.fetchall()), 10) == []
    assert Counter(got) == ROWS


def test_ten_threads_get_each_arrow_batch_once(connection: Any) -> None:
    reader = connection.execute("SELECT range FROM range(700000)").arrow_reader()
    got: list[int] = []

    def read(_: int) -> None:
        while True:
            try:
                got.append(reader.read_next_batch().num_rows)
            except StopIteration:
                return

    assert together(read, 10) == []
    assert sum(got) == 700_000


def test_ten_threads_that_execute_on_one_cursor_raise_nothing_foreign(connection: Any) -> None:
    cursor = connection.cursor()

    def work(index: int) -> None:
        for _ in range(10):
            # Another thread may have replaced the result by the time it is fetched.
            with suppress(
                icesql.InterfaceError, icesql.QueryCancelledError, icesql.ProgrammingError
            ):
                rows = cursor.execute(f"SELECT {index} FROM range(3)").fetchall()
                assert len(rows) <= 3

    assert together(work, 10) == []
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_sixteen_threads_share_a_connection(connection: Any) -> None:
    """Queries of all kinds; some fail and some are cancelled, and no other hears of it."""
    queries = (
        "SELECT id, region FROM shop.orders ORDER BY id",
        "SELECT count(*) FROM shop.orders",
        "SELECT region, sum(amount) FROM shop.orders GROUP BY region ORDER BY region",
        "SHOW TABLES",
    )
    answers = {sql: connection.execute(sql).fetchall() for sql in queries}
    failing = ("SELECT nothing FROM shop.orders", "SELEC 1", "SELECT * FROM shop.no_such")
    endless = (
        "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = 7"
    )
    done = Counter[str]()
    lock = threading.Lock()

    def count(what: str) -> None:
        with lock:
            done[what] += 1

    def work(index: int) -> None:
        for turn in range(8):
            kind = (index + turn) % 8
            cursor = connection.cursor()
            if kind == 6:
                with pytest.raises(icesql.ProgrammingError):
                    cursor.execute(failing[index % 3])
                count("failed")
            elif kind == 7:
                timer = threading.Timer(0.05, cursor.cancel)
                cursor.execute(endless)
                timer.start()
                with pytest.raises(icesql.QueryCancelledError):
                    cursor.fetchall()
                count("cancelled")
            else:
                sql = queries[kind % 4]
                assert cursor.execute(sql).fetchall() == answers[sql]
                count("answered")

    assert together(work, 16) == []
    assert done == {"failed": 16, "cancelled": 16, "answered": 96}


def test_threads_that_need_other_instances_of_the_engine_do_not_close_each_others(
    connection: Any,
) -> None:
    def work(index: int) -> None:
        for turn in range(8):
            # Each other setting is another instance of DuckDB.
            connection.execute(f"SET memory_limit = '{100 + (index + turn) % 3} MB'")
            assert connection.execute("SELECT range FROM range(3)").fetchall() == [(0,), (1,), (2,)]

    assert together(work, 6) == []


def test_a_catalog_is_opened_once_for_all_threads(warehouse: Any) -> None:
    with icesql.connect(warehouse=str(warehouse)) as connection:
        seen: list[Any] = []
        assert together(lambda _: seen.append(connection.catalog), 8) == []
        assert len({id(each) for each in seen}) == 1


def test_the_module_says_so() -> None:
    assert icesql.threadsafety == 2
