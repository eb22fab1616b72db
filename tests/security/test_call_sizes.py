"""Calls whose result has the size that an argument says, checked before they allocate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.engine.duckdb.sql.call_sizes import calls_of
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.size_guards import GUARDED, guard_calls
from icesql.errors import DataError, ScanLimitError, UnsupportedSqlError
from tests import warm

ROWS = "(SELECT CAST(x AS VARCHAR) AS s, x AS n FROM range(4000) AS r(x))"


@pytest.fixture(scope="module")
def connection() -> Iterator[icesql.Connection]:
    settings = {"memory_limit": "500MB", "threads": "2"}
    with icesql.connect(settings=settings) as connection:
        yield connection


LARGE = {
    "repeat": ["repeat('x', 1000000000)", "'x'.repeat(1000000000)", "repeat([1], 1000000000)",
               "repeat('x'::BLOB, 1000000000)", "repeat(repeat('x', 100000), 100000)",
               "repeat(repeat(repeat('x', 1000), 1000), 1000)", "main.repeat('x', 1000000000)"],
    "lpad": ["lpad('a', 1000000000, 'b')", "lpad('a', 100000000, 'é')"],
    "rpad": ["rpad('a', 1000000000, 'b')"],
    "range": ["range(1000000000)", "range(1, 1000000000)", "range(1000000000, 0, -1)",
              "range(TIMESTAMP '2000-01-01', TIMESTAMP '2100-01-01', INTERVAL 1 SECOND)",
              "range(-9223372036854775808, 9223372036854775807, 1)"],
    "generate_series": ["generate_series(1, 1000000000)",
                        "generate_series(TIMESTAMPTZ '2000-01-01 00:00:00Z', now(), INTERVAL 1 SECOND)"],
    "list_resize": ["list_resize([1], 1000000000)", "list_resize(['a'], 1000000, repeat('b', 1000))"],
    "array_resize": ["array_resize([1], 1000000000, 7)"],
    "bitstring": ["bitstring('1', 2147483647)"],
    "format": ["format('{:>1000000000}', 'a')", "format('{:>{}}', 'a', 1000000000)"],
    "printf": ["printf('%1000000000d', 1)", "printf('%*d', 1000000000, 1)",
               "printf('%' || '1000000000' || 'd', 1)"],
    "replace": ["replace(repeat('x', 100000), 'x', repeat('y', 100000))"],
    "regexp_replace": ["regexp_replace(repeat('x', 100000), 'x', repeat('y', 100000), 'g')"],
    **{name: [f"{name}(repeat('a,', 10000000), ',')", f"{name}(repeat('a', 10000000), '')"]
       for name in ("string_split", "str_split", "string_to_array", "split")},
    **{name: [f"{name}(repeat('a,', 10000000), 'a')"]
       for name in ("string_split_regex", "str_split_regex", "regexp_split_to_array")},
    "regexp_extract_all": ["regexp_extract_all(repeat('a,', 10000000), 'a')",
                           "regexp_extract_all(repeat('a,', 10000000), '(a)', 1, 'i')"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, group in LARGE.items() for call in group]
)
def test_a_large_value_is_refused_before_it_is_made(
    connection: icesql.Connection, name: str, call: str
) -> None:
    with pytest.raises(ScanLimitError, match=rf"^{name}\(\) would make a value of more than"):
        connection.execute(f"SELECT {call}").fetchall()


@pytest.mark.parametrize(
    "call",
    ["repeat(s, 1000000)", "repeat(s, 100 * n)", "lpad(s, 1000000, 'x')", "rpad(s, CAST(n * 1000 AS INTEGER), 'x')",
     "range(n * 1000)", "generate_series(0, n, 1)::VARCHAR || repeat('x', n * 1000)",
     "list_resize([n], n * 1000)", "equi_width_bins(0, 1000000, 500000 + n, false)",
     "replace(s, '1', repeat(s, 10000))", "format('{:>' || n || '00}', s)",
     "printf('%*d', CAST(n * 1000 AS INTEGER), 1)",
     "list_transform(range(3000), lambda x: repeat('x', 1000000 + x))"],
)  # fmt: skip
def test_values_of_many_rows_are_refused_by_what_they_take_together(
    connection: icesql.Connection, call: str
) -> None:
    with pytest.raises(ScanLimitError, match="would make a value of more than"):
        connection.execute(f"SELECT max({call}::VARCHAR) FROM {ROWS}").fetchall()


USUAL = [
    ("repeat('ab', 3)", "ababab"), ("repeat('ab', '3')", "ababab"), ("repeat('ab', NULL)", None),
    ("repeat('-', CAST(n AS INTEGER) % 4) || 'x'", None), ("lpad(s, 6, '0')", None),
    ("length(repeat('x', 100000000))", 100000000), ("len(range(1000000))", 1000000),
    ("lpad('7', 3, '0')", "007"), ("replace('ä', 'ä', 'ae')", "ae"), ("printf('%*d', 5, 1)", "    1"),
    ("replace(s, '1', 'one')", None), ("format('{:>10} {}', 'a', 20251231)", "         a 20251231"),
    ("range(5, 1, -2)", [5, 3]), ("range(1, 1)", []), ("generate_series(1, 2)", [1, 2]),
    ("list_resize([1], 2, 0)", [1, 0]), ("bitstring('1', 5)", "00001"), ("repeat([1], 2)", [1, 1]),
    ("string_split(repeat('a,', 100), ',')[101]", ""),
    ("string_split(lpad('b', 3, ','), ',')", ["", "", "b"]),
    ("regexp_extract_all(repeat('ab', 2), '(a)b', 1)", ["a", "a"]),
    ("string_split_regex(repeat('aB', 2), 'b', 'i')", ["a", "a", ""]),
    ("len(range(DATE '2000-01-01', DATE '2001-01-01', INTERVAL 1 DAY))", 366),
]  # fmt: skip


@pytest.mark.parametrize(("call", "value"), USUAL)
def test_usual_calls_are_left_alone(connection: icesql.Connection, call: str, value: Any) -> None:
    source = f"FROM {ROWS} WHERE n = 7" if "n " in call or "(s" in call else ""
    rows = connection.execute(f"SELECT {call} AS v {source}").fetchall()
    assert len(rows) == 1
    if value is not None:
        assert rows == [(value,)]


@pytest.mark.parametrize("depth", [3, 30])
def test_a_checked_call_computes_its_arguments_once(
    connection: icesql.Connection, depth: int
) -> None:
    text = "s"
    for _ in range(depth):
        text = f"replace({text}, n::VARCHAR, s)"
    rows = connection.execute(f"SELECT {text} FROM {ROWS} WHERE n < 2 ORDER BY n").fetchall()
    assert rows == [("0",), ("1",)]
    ((one, other),) = connection.execute(
        "SELECT v, v FROM (SELECT length(repeat('x', CAST(random() * 1000 AS INTEGER))) AS v)"
    ).fetchall()
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
        connection.execute("SELECT main.repeat('x', 1000000000)").fetchall()


def test_one_call_may_take_what_it_is_asked_where_memory_allows() -> None:
    with icesql.connect(settings={"memory_limit": "8GB"}) as connection:
        sql = f"SELECT length(repeat(s, 100000)) FROM {ROWS} WHERE n = 7"
        assert connection.execute(sql).fetchall() == [(100000,)]


@pytest.mark.parametrize("kind", ["INTEGER[100000][100]", "STRUCT(a INTEGER[100000])[]"])
def test_an_array_type_has_a_size(connection: icesql.Connection, kind: str) -> None:
    with pytest.raises(ScanLimitError, match="elements in each value"):
        connection.execute(f"SELECT CAST(NULL AS {kind})")
    assert connection.execute("SELECT CAST([1, 2] AS INTEGER[2])").fetchall() == [([1, 2],)]


def test_the_words_of_a_limit_in_somebody_s_text_say_nothing(connection: icesql.Connection) -> None:
    with pytest.raises(DataError):
        connection.execute("SELECT CAST('icesql:limit:repeat:5' AS INTEGER)").fetchall()


class Recorded:
    """A cursor that only remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def execute(self, sql: str) -> None:
        self.asked.append(sql)


@pytest.mark.parametrize(
    ("sql", "hidden"),
    [
        ("SELECT repeat('ab', 3), lpad(s, 10, ' '), replace(s, 'a', 'b') FROM t", 0),
        ("SELECT repeat(s, n) FROM t", 1),
        ("SELECT * FROM range(5)", 0),
        ("SELECT string_split(s, ','), regexp_extract_all(s, 'a') FROM t", 0),
        ("SELECT x FROM t, range(t.n) AS r(x)", 0),
        ("SELECT 'repeat(' || s FROM t", 0),
        ("SELECT repeat('a', 3), repeat(s, n), lpad(s, n, 'x') FROM t", 2),
    ],
)
def test_only_calls_of_unknown_size_cost_anything(sql: str, hidden: int) -> None:
    from icesql.config import Settings

    cursor = Recorded()
    with duckdb.connect() as database:
        facts = check_written(sql, database, ["t"])
    guard_calls(facts, cursor, Settings())
    assert len(cursor.asked) == hidden


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
    calls = [f"length(CAST({call} AS VARCHAR))" for group in LARGE.values() for call in group]
    done = warm.python(PEAK, *calls)
    assert done.returncode == 0, done.stderr
    *kinds, grown = done.stdout.split()
    assert kinds == ["ScanLimitError"] * len(calls)
    assert int(grown) < 300 << 10  # KiB: three values of less than a quarter of the limit
