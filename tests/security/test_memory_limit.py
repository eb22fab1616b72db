"""A query stays within its memory limit, however its bytes come together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from icesql.engine import query_thread
from icesql.engine.query_thread import MemoryWatch
from icesql.engine.result_rows import ChunkSize
from icesql.engine.result_schema import ResultType
from icesql.errors import ScanLimitError
from tests import warm
from tests.rows import rows_of
from tests.sessions import fetched

MIB = 1 << 20

GROWN = """
import resource, sys, icesql
import pyarrow
limit, how, sql = sys.argv[1:]
with icesql.connect(settings={"memory_limit": limit, "threads": "2"}) as connection:
    connection.execute("SELECT 1").arrow()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = "no error"
    try:
        cursor = connection.execute(sql)
        if how == "rows":
            cursor.fetchall()
        elif how == "arrow":
            cursor.arrow()
        else:
            for _ in cursor:
                pass
    except icesql.Error as error:
        told = type(error).__name__
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(told, "/", grown >> 10, "/", connection.execute("SELECT 42").fetchall())
"""


@rows_of(__file__, "memory_of_queries.tsv", "limit", "how", "sql", "told", "most")
def test_a_query_stays_near_its_limit(limit: str, how: str, sql: str, told: str, most: str) -> None:
    done = warm.python(GROWN, limit, how, sql)
    assert done.returncode == 0, done.stderr
    said, grown, rest = done.stdout.split("/")
    assert rest.strip() == "[(42,)]", "the connection works on"
    assert told in ("", said.strip())
    assert int(grown) < int(most)


# ---------------------------------------------------------------------------- the account


class Memory:
    """A fake of the process's memory: the bytes that it reports as taken."""

    def __init__(self) -> None:
        self.bytes = 100 * MIB


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    fake = Memory()
    monkeypatch.setattr(query_thread, "taken", lambda: fake.bytes)
    yield fake
    assert not query_thread._at_work


def test_what_the_program_had_or_takes_between_does_not_count(memory: Memory) -> None:
    memory.bytes = 5000 * MIB
    watch = MemoryWatch(1000 * MIB, "one")
    with watch:
        memory.bytes += 900 * MIB
    memory.bytes += 9000 * MIB
    with watch:
        memory.bytes += 100 * MIB
        watch.check()
    with (
        pytest.raises(ScanLimitError, match="1,121 MiB of memory, more than memory_limit = 1,000"),
        watch,
    ):
        memory.bytes += 121 * MIB


def test_what_is_freed_between_counts_for_the_query(memory: Memory) -> None:
    watch = MemoryWatch(1000 * MIB, "one")
    for _ in range(100):
        with watch:
            memory.bytes += 900 * MIB
        memory.bytes -= 900 * MIB


def test_limits_of_connections_that_work_together_are_added(memory: Memory) -> None:
    small, large = MemoryWatch(100 * MIB, "small"), MemoryWatch(1000 * MIB, "large")
    other = MemoryWatch(1000 * MIB, "large")
    small.__enter__()
    with large, other:
        memory.bytes += 1090 * MIB
        small.check()
        large.check()
        memory.bytes += 300 * MIB
        with pytest.raises(ScanLimitError):
            large.check()
        memory.bytes -= 300 * MIB
    with pytest.raises(ScanLimitError):
        small.__exit__(None)


def test_an_error_inside_is_the_error(memory: Memory) -> None:
    watch = MemoryWatch(100 * MIB, "one")

    def grow() -> None:
        memory.bytes += 1000 * MIB
        raise KeyError

    with pytest.raises(KeyError), watch:
        grow()


def test_no_thread_watches() -> None:
    with icesql.connect() as connection:
        before = threading.active_count()
        cursor = connection.execute("SELECT x FROM range(100000) AS r(x)")
        cursor.fetchone()
        assert threading.active_count() <= before + 1


def test_the_process_knows_what_it_has() -> None:
    before = query_thread.taken()
    block = b"x" * (64 * MIB)
    assert query_thread.taken() - before > 60 * MIB
    del block


def test_away_from_linux_the_most_that_it_had_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(query_thread.os, "open", nowhere)
    assert query_thread.taken() > 10 * MIB


# ---------------------------------------------------------------------------- chunks


def test_chunks_are_as_long_as_their_rows_are_narrow() -> None:
    text, number = ResultType("varchar"), ResultType("bigint")
    assert ChunkSize([number]).rows == 2048
    size = ChunkSize([number, text])
    assert size.rows == 64
    size.measure([(1, "x")] * 64)
    assert size.rows == 2048
    size.measure([(1, "x" * 100_000)] * 64)
    assert 64 <= size.rows <= 100
    size.measure([(1, "x" * (1 << 30))])
    assert size.rows == 1
    size.measure([(1, None)])
    assert size.rows == 2048


def test_rows_of_changing_width_all_come(tmp_path: Path) -> None:
    sql = "SELECT x, repeat('y', CASE WHEN x % 500 = 7 THEN 200000 ELSE 3 END) FROM range(5000) AS r(x)"
    with icesql.connect() as connection:
        rows = fetched(connection, sql)
    assert [row[0] for row in rows] == list(range(5000))
    assert sum(len(row[1]) for row in rows) == 10 * 200000 + 4990 * 3
