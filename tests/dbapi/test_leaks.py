"""Queries leave nothing behind: no thread, no descriptor, no temporary file, no object of DuckDB's."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import icesql

ORDERS = "SELECT id, region, amount FROM shop.orders ORDER BY id"
# More rows than one step fetches, so that the engine is not done with the first of them.
MANY = "SELECT a.id FROM shop.orders AS a, shop.orders AS b, shop.orders AS c"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def query_threads() -> int:
    """Those at work; what idle ones hold, and how long, tests/engine/test_query_thread.py tests."""
    names = [thread.name for thread in threading.enumerate()]
    return sum(name.startswith("icesql") and name != "icesql-idle" for name in names)


def settle(measure: Callable[[], int], most: int) -> int:
    """The measure once it is ``most`` or less; threads end soon, but not in the call."""
    end = time.monotonic() + 600
    while (found := measure()) > most and time.monotonic() < end:
        time.sleep(0.01)
    return found


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """No test sees what another left to the garbage collector, which is off: references do it."""
    gc.collect()
    assert settle(query_threads, 0) == 0
    gc.disable()
    yield
    gc.enable()


def test_500_queries_in_the_idiom_of_the_readme_leave_no_thread_and_no_descriptor(
    connection: Any,
) -> None:
    expected = connection.execute(ORDERS).fetchall()
    settle(query_threads, 0)
    before = descriptors()
    for number in range(500):
        assert connection.execute(ORDERS).fetchall() == expected
        if number % 10 == 9:  # threads of the last ones may be just ending
            assert settle(query_threads, 0) == 0
    assert settle(descriptors, before) <= before


def half_read(cursor: Any) -> None:
    cursor.execute(MANY).fetchone()


def half_iterated(cursor: Any) -> None:
    for _ in cursor.execute(MANY):
        break


def never_read(cursor: Any) -> None:
    cursor.execute(MANY)


def read_as_arrow(cursor: Any) -> None:
    cursor.execute(ORDERS).arrow()


def half_read_as_arrow(cursor: Any) -> None:
    cursor.execute(MANY).arrow_reader().read_next_batch()


def never_read_as_arrow(cursor: Any) -> None:
    cursor.execute(MANY).arrow_reader()


def failing_to_bind(cursor: Any) -> None:
    with pytest.raises(icesql.ProgrammingError):
        cursor.execute("SELECT nothing FROM shop.orders")


def failing_at_a_row(cursor: Any) -> None:
    cursor.execute("SELECT CAST(region AS INTEGER) FROM shop.orders")
    with pytest.raises(icesql.DataError):
        cursor.fetchall()


def failing_as_arrow(cursor: Any) -> None:
    cursor.execute("SELECT CAST(region AS INTEGER) FROM shop.orders")
    with pytest.raises(icesql.DataError):
        cursor.arrow()


def explained(cursor: Any) -> None:
    cursor.execute(f"EXPLAIN ANALYZE {ORDERS}").fetchall()


def replaced(cursor: Any) -> None:
    cursor.execute(MANY).fetchone()
    cursor.execute(ORDERS).fetchall()


WAYS = [
    half_read,
    half_iterated,
    never_read,
    read_as_arrow,
    half_read_as_arrow,
    never_read_as_arrow,
    failing_to_bind,
    failing_at_a_row,
    failing_as_arrow,
    explained,
    replaced,
]


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("use", WAYS, ids=lambda use: use.__name__)
def test_a_dropped_cursor_gives_everything_back(
    connection: Any, use: Callable[[Any], None], reader: str
) -> None:
    connection.execute(f"SET local_reader = '{reader}'")
    use(connection.cursor())
    settle(query_threads, 0)
    before = descriptors()
    for _ in range(5):
        use(connection.cursor())
    if use.__name__.startswith("failing"):
        gc.collect()  # an error and the frames that it passed refer to each other
    assert settle(query_threads, 0) == 0
    assert settle(descriptors, before) <= before
    assert len(connection.execute(ORDERS).fetchall()) == len(connection.execute(ORDERS).arrow())


def test_a_dropped_connection_gives_everything_back(warehouse: Path) -> None:
    def use() -> None:
        connection = icesql.connect(warehouse=str(warehouse))
        for way in WAYS:
            way(connection.cursor())
        kept = connection.cursor()
        kept.execute(MANY).fetchone()
        for cursor in connection.execute_script(f"SET threads = 1; {MANY}; SELECT 1"):
            if cursor.description:
                cursor.fetchone()

    use()
    gc.collect()
    settle(query_threads, 0)
    before = descriptors()
    for _ in range(3):
        use()
        gc.collect()
    assert settle(query_threads, 0) == 0
    assert settle(descriptors, before) <= before


def test_an_arrow_reader_outlives_its_cursor_and_its_connection(warehouse: Path) -> None:
    reader = icesql.connect(warehouse=str(warehouse)).execute(MANY).arrow_reader()
    gc.collect()
    rows = len(icesql.connect(warehouse=str(warehouse)).execute(ORDERS).fetchall()) ** 3
    assert reader.read_all().num_rows == rows
    assert settle(query_threads, 0) == 0


def test_the_engine_keeps_no_view_and_no_table_of_a_query(connection: Any) -> None:
    connection.execute("SET local_reader = 'arrow'")
    for way in WAYS:
        way(connection.cursor())
    gc.collect()
    assert settle(query_threads, 0) == 0
    instance = connection._session.engines.started["local"].pool._current
    assert instance._open == 1
    found = instance._root.execute(
        "SELECT (SELECT count(*) FROM duckdb_tables()) + "
        "(SELECT count(*) FROM duckdb_views() WHERE NOT internal)"
    ).fetchall()
    assert found == [(0,)]


def test_temporary_files_end_with_the_query(connection: Any, tmp_path: Path) -> None:
    connection.execute(f"SET temp_directory = '{tmp_path}/spill'")
    # Less than half of the rows; in 40 MB DuckDB cannot always pin what it sorts.
    connection.execute("SET memory_limit = '64MB'")
    connection.execute("SET threads = 1")
    big = "SELECT range AS x, md5(range::VARCHAR) AS y FROM range(3000000) ORDER BY y"

    def files() -> list[int]:
        """The sizes of the files; DuckDB may remove any of them, and folders, at any moment."""
        found = []
        for folder, _, names in os.walk(tmp_path):
            for name in names:
                with suppress(FileNotFoundError):
                    found.append(os.stat(os.path.join(folder, name)).st_size)
        return found

    def spilled() -> int:
        # DuckDB keeps an empty file for as long as the instance lives.
        return sum(files())

    for read in ("fetchone", "arrow_reader"):
        cursor = connection.execute(big)
        held = getattr(cursor, read)()
        assert spilled() > 0
        del cursor, held
        assert settle(spilled, 0) == 0
    connection.close()
    assert settle(lambda: len(files()), 0) == 0
