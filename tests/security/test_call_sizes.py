"""Calls whose result has the size that an argument says, checked before they allocate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import icesql
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.size_guards import GUARDED, calls_of, guard_calls
from icesql.errors import DataError, ScanLimitError, UnsupportedSqlError
from tests import warm
from tests.rows import rows_of
from tests.sessions import fetched
from tests.tables import read_table

ROWS = "(SELECT CAST(x AS VARCHAR) AS s, x AS n FROM range(4000) AS r(x))"


@pytest.fixture(scope="module")
def connection() -> Iterator[icesql.Connection]:
    settings = {"memory_limit": "500MB", "threads": "2"}
    with icesql.connect(settings=settings) as connection:
        yield connection


LARGE = read_table(__file__, "large_calls.tsv")


@pytest.mark.parametrize(("name", "call"), LARGE)
def test_a_large_value_is_refused_before_it_is_made(
    connection: icesql.Connection, name: str, call: str
) -> None:
    with pytest.raises(ScanLimitError, match=rf"^{name}\(\) would make a value of more than"):
        fetched(connection, f"SELECT {call}")


@rows_of(__file__, "large_calls_of_rows.tsv", "call")
def test_values_of_many_rows_are_refused_by_what_they_take_together(
    connection: icesql.Connection, call: str
) -> None:
    with pytest.raises(ScanLimitError, match="would make a value of more than"):
        fetched(connection, f"SELECT max({call}::VARCHAR) FROM {ROWS}")


@rows_of(__file__, "usual_calls.tsv", "call", "value")
def test_usual_calls_are_left_alone(connection: icesql.Connection, call: str, value: str) -> None:
    source = f"FROM {ROWS} WHERE n = 7" if "n " in call or "(s" in call else ""
    (row,) = fetched(connection, f"SELECT {call} AS v {source}")
    assert value in ("-", repr(row[0]))


@pytest.mark.parametrize("depth", [3, 30])
def test_a_checked_call_computes_its_arguments_once(
    connection: icesql.Connection, depth: int
) -> None:
    text = "s"
    for _ in range(depth):
        text = f"replace({text}, n::VARCHAR, s)"
    rows = fetched(connection, f"SELECT {text} FROM {ROWS} WHERE n < 2 ORDER BY n")
    assert rows == [("0",), ("1",)]
    ((one, other),) = fetched(
        connection,
        "SELECT v, v FROM (SELECT length(repeat('x', CAST(random() * 1000 AS INTEGER))) AS v)",
    )
    assert one == other


def test_a_checked_column_keeps_the_name_of_the_call(connection: icesql.Connection) -> None:
    cursor = connection.execute(f"SELECT repeat(s, n % 3) FROM {ROWS} WHERE n = 2")
    assert cursor.fetchall() == [("22",)]
    assert cursor.description is not None
    assert cursor.description[0][0] == "repeat(s, (n % 3))"


def test_the_function_behind_the_check_is_not_reached(connection: icesql.Connection) -> None:
    for text in ("system.main.repeat('x', 5)", 'SYSTEM."main"."repeat"(\'x\', 5)'):
        with pytest.raises(UnsupportedSqlError, match="by its schema"):
            connection.execute(f"SELECT {text}")
    with pytest.raises(ScanLimitError, match="repeat"):
        fetched(connection, "SELECT main.repeat('x', 1000000000)")


def test_one_call_may_take_what_it_is_asked_where_memory_allows() -> None:
    with icesql.connect(settings={"memory_limit": "8GB"}) as connection:
        sql = f"SELECT length(repeat(s, 100000)) FROM {ROWS} WHERE n = 7"
        assert fetched(connection, sql) == [(100000,)]


@pytest.mark.parametrize("kind", ["INTEGER[100000][100]", "STRUCT(a INTEGER[100000])[]"])
def test_an_array_type_has_a_size(connection: icesql.Connection, kind: str) -> None:
    with pytest.raises(ScanLimitError, match="elements in each value"):
        connection.execute(f"SELECT CAST(NULL AS {kind})")
    assert fetched(connection, "SELECT CAST([1, 2] AS INTEGER[2])") == [([1, 2],)]


def test_the_words_of_a_limit_in_somebody_s_text_say_nothing(connection: icesql.Connection) -> None:
    with pytest.raises(DataError):
        fetched(connection, "SELECT CAST('icesql:limit:repeat:5' AS INTEGER)")


class Recorded:
    """A cursor that only records its statements."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def execute(self, sql: str) -> None:
        self.asked.append(sql)


@rows_of(__file__, "guarded_calls.tsv", "sql", "hidden")
def test_only_calls_of_unknown_size_cost_anything(sql: str, hidden: str) -> None:
    from icesql.config import Settings

    cursor = Recorded()
    with duckdb.connect() as database:
        facts = check_written(sql, database, ["t"])
    guard_calls(facts, cursor, Settings())
    assert len(cursor.asked) == int(hidden)


def test_every_guarded_function_is_known_by_its_node() -> None:
    with duckdb.connect() as database:
        for name in sorted(GUARDED):
            facts = check_written(f"SELECT {name}(1, 2, 3)", database, ())
            assert [call.name for call in calls_of(facts, GUARDED)] == [name]


PEAK = """
import resource, sys, icesql
with icesql.connect(settings={"memory_limit": "500MB", "threads": "2"}) as connection:
    connection.execute("SELECT repeat('ab', 3)").fetchall()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for call in sys.argv[1:]:
        try:
            connection.execute("SELECT " + call).fetchall()
        except icesql.OperationalError as error:
            print(type(error).__name__)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_refused_calls_take_no_memory(tmp_path: Path) -> None:
    calls = [f"length(CAST({call} AS VARCHAR))" for _, call in LARGE]
    done = warm.python(PEAK, *calls, timeout=600)
    assert done.returncode == 0, done.stderr
    *kinds, grown = done.stdout.split()
    assert kinds == ["ScanLimitError"] * len(calls)
    assert int(grown) < 300 << 10  # KiB: three values of less than a quarter of the limit
