"""Closing: twice, of what is in use, and what using it afterwards says."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icesql

# Hours of work for any engine, and next to no rows.
ENDLESS = (
    "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c "
    "WHERE a.range + b.range + c.range = 3"
)
MANY = "SELECT range FROM range(50000000)"

USES: dict[str, Callable[[Any], Any]] = {
    "execute": lambda cursor: cursor.execute("SELECT 1"),
    "executemany": lambda cursor: cursor.executemany("SELECT ?", [[1]]),
    "fetchone": lambda cursor: cursor.fetchone(),
    "fetchmany": lambda cursor: cursor.fetchmany(2),
    "fetchall": lambda cursor: cursor.fetchall(),
    "next": next,
    "arrow": lambda cursor: cursor.arrow(),
    "arrow_reader": lambda cursor: cursor.arrow_reader(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
@pytest.mark.parametrize("sql", ["SELECT range FROM range(5000)", "SHOW TABLES"])
def test_a_closed_cursor_is_used_no_more(connection: Any, sql: str, use: Any) -> None:
    cursor = connection.execute(sql)
    cursor.fetchone()
    cursor.close()
    cursor.close()
    assert cursor.closed
    assert cursor.description is None
    with pytest.raises(icesql.InterfaceError, match="closed"):
        use(cursor)


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_closed_connection_closes_its_cursors(warehouse: Path, use: Any) -> None:
    connection = icesql.connect(warehouse=str(warehouse))
    cursor = connection.execute("SELECT range FROM range(5000)")
    cursor.fetchone()
    assert not connection.closed
    connection.close()
    connection.close()
    assert connection.closed
    assert cursor.closed
    with pytest.raises(icesql.InterfaceError, match="closed"):
        use(cursor)


@pytest.mark.parametrize(
    "use",
    [
        lambda connection: connection.cursor(),
        lambda connection: connection.execute("SELECT 1"),
        lambda connection: connection.execute_script("SELECT 1"),
        lambda connection: connection.tables(),
        lambda connection: connection.columns("shop.orders"),
        lambda connection: connection.catalog,
        lambda connection: connection.settings,
        lambda connection: connection.register_table("t", "/nowhere"),
        lambda connection: connection.commit(),
    ],
)
def test_a_closed_connection_is_used_no_more(warehouse: Path, use: Any) -> None:
    connection = icesql.connect(warehouse=str(warehouse))
    connection.execute("SELECT 1").fetchall()
    connection.close()
    connection.cancel()  # stops what runs: nothing
    with pytest.raises(icesql.InterfaceError, match="closed"):
        use(connection)


def test_a_script_that_is_under_way_hears_that_its_connection_was_closed(warehouse: Path) -> None:
    connection = icesql.connect(warehouse=str(warehouse))
    cursors = connection.execute_script("SELECT 1; SELECT 2")
    next(cursors)
    connection.close()
    with pytest.raises(icesql.InterfaceError, match="closed"):
        next(cursors)


def fetching(cursor: Any) -> None:
    cursor.execute(MANY)
    while True:
        if not cursor.fetchmany(1_000):
            cursor.execute(MANY)


def waiting(cursor: Any) -> None:
    cursor.execute(ENDLESS).fetchall()


def as_arrow(cursor: Any) -> None:
    while True:
        for _ in cursor.execute(MANY).arrow_reader():
            pass


def short_queries(cursor: Any) -> None:
    while True:
        cursor.execute("SELECT id, region FROM shop.orders ORDER BY id").fetchall()


def showing(cursor: Any) -> None:
    while True:
        cursor.execute("SHOW TABLES").fetchall()
        cursor.execute("SELECT count(*) FROM shop.customers").fetchall()


@pytest.mark.parametrize("close", ["connection", "cursors"])
def test_whoever_is_at_work_when_it_is_closed_hears_of_it(warehouse: Path, close: str) -> None:
    connection = icesql.connect(warehouse=str(warehouse))
    ways = [fetching, waiting, as_arrow, short_queries, showing]
    cursors = [connection.cursor() for _ in range(10)]
    heard: list[BaseException] = []
    begun = threading.Barrier(len(cursors) + 1)

    def run(number: int) -> None:
        begun.wait()
        try:
            ways[number % len(ways)](cursors[number])
        except BaseException as error:
            heard.append(error)

    threads = [
        threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(cursors))
    ]
    for thread in threads:
        thread.start()
    begun.wait()
    time.sleep(0.3)
    if close == "connection":
        connection.close()
    else:
        for cursor in cursors:
            cursor.close()
    for thread in threads:
        thread.join(600)
    assert not any(thread.is_alive() for thread in threads)
    own = (icesql.InterfaceError, icesql.QueryCancelledError)
    # Arrow's reader wraps what its source raises.
    foreign = [each for each in heard if not isinstance(each, own)]
    assert [each for each in foreign if "closed" not in str(each)] == []
    assert len(foreign) <= 2
    assert len(heard) == len(cursors)
    connection.close()


def test_one_cursor_is_closed_while_ten_threads_fetch_from_it(connection: Any) -> None:
    cursor = connection.execute(MANY)
    heard: list[BaseException] = []

    def run() -> None:
        try:
            while cursor.fetchmany(100):
                pass
        except BaseException as error:
            heard.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(10)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    cursor.close()
    for thread in threads:
        thread.join(600)
    assert len(heard) == 10
    own = (icesql.InterfaceError, icesql.QueryCancelledError)
    assert [each for each in heard if not isinstance(each, own)] == []


def test_closing_is_not_held_up_by_a_statement_that_is_just_beginning(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released = threading.Event(), threading.Event()

    def slow(*_: Any) -> Any:
        entered.set()
        released.wait(60)
        raise OSError("whatever comes of it")

    monkeypatch.setattr(type(connection._session.state.names), "open_table", slow)
    cursor = connection.cursor()
    heard: list[BaseException] = []

    def run() -> None:
        try:
            cursor.execute("SELECT * FROM shop.orders")
        except BaseException as error:
            heard.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert entered.wait(600)
    cursor.close()  # returns while the other still waits
    assert heard == []
    released.set()
    thread.join(600)
    assert [type(each) for each in heard] == [icesql.InterfaceError]


def test_what_is_shown_of_a_connection_holds_no_secret() -> None:
    connection = icesql.connect(
        uri="postgresql://me:SECRET@localhost/db", properties={"token": "SECRET"}
    )
    cursor = connection.cursor()
    shown = repr(connection), str(connection), repr(cursor), str(cursor)
    assert shown[0] == "<icesql.Connection: open>"
    assert shown[2] == "<icesql.Cursor: no result>"
    connection.close()
    assert "SECRET" not in "".join((*shown, repr(connection), repr(cursor)))
    assert repr(connection) == "<icesql.Connection: closed>"
    assert repr(cursor) == "<icesql.Cursor: closed>"


def test_a_connection_is_not_sent_to_another_process(connection: Any) -> None:
    for each in (connection, connection.cursor()):
        with pytest.raises(TypeError, match="open another where this one was sent"):
            pickle.dumps(each)


def test_commit_and_rollback_are_harmless_while_nothing_is_open(connection: Any) -> None:
    cursor = connection.execute("SELECT range FROM range(5000)")
    cursor.fetchone()
    connection.commit()
    connection.rollback()
    connection.commit()
    assert len(cursor.fetchall()) == 4999
