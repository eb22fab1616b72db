"""Macros: the same answers as DuckDB over the same rows, and the limits of macros."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    SqlSyntaxError,
    UnsupportedSqlError,
)
from tests.tables import read_cases, read_table

TABLES = (
    "CREATE TEMP TABLE t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, 20)) v(a, b)",
    "CREATE TEMP TABLE u AS SELECT * FROM (VALUES (10), (20), (99)) v(b)",
)


def _run(connection: Any, script: str) -> tuple[list[str], list[Any]]:
    *before, last = [*TABLES, *script.split("; ")]
    for sql in before:
        connection.execute(sql)
    cursor = connection.execute(last)
    return [column[0] for column in cursor.description], cursor.fetchall()


@pytest.fixture
def made() -> Any:
    with icesql.connect() as opened:
        for sql in TABLES:
            opened.execute(sql)
        yield opened


@pytest.mark.parametrize(
    "script", [each for (each,) in read_cases(__file__, "macro_scripts.tsv", 0)]
)
def test_it_is_what_duckdb_makes_of_it(script: str) -> None:
    with icesql.connect() as connection:
        found = _run(connection, script)
    with duckdb.connect() as reference:
        assert found == _run(reference, script)


@pytest.mark.parametrize(("script", "message"), read_table(__file__, "no_macros.tsv"))
def test_it_is_refused_by_name(made: Any, script: str, message: str) -> None:
    *before, last = script.split("; ")
    for sql in before:
        made.execute(sql)
    with pytest.raises(icesql.Error, match=message):
        made.execute(last)


@pytest.mark.parametrize(("call", "message"), read_table(__file__, "macro_arguments.tsv"))
def test_other_arguments_are_an_error(made: Any, call: str, message: str) -> None:
    made.execute("CREATE MACRO f(x, y := 1) AS x + y")
    with pytest.raises(SqlSyntaxError, match=message):
        made.execute(f"SELECT {call}")


def test_names_are_taken_and_missing(made: Any) -> None:
    made.execute("CREATE MACRO twice(x) AS x * 2")
    with pytest.raises(ProgrammingError, match="exists; CREATE OR REPLACE MACRO"):
        made.execute("CREATE MACRO TWICE(x) AS x")
    with pytest.raises(ProgrammingError, match="did you mean twice"):
        made.execute("DROP MACRO twic")
    with pytest.raises(ProgrammingError, match="no table macro"):
        made.execute("DROP MACRO TABLE twice")
    made.execute("DROP MACRO IF EXISTS nothing")
    assert made.execute("SHOW FUNCTIONS LIKE 'twi%'").fetchall() == [("twice",)]
    made.execute("DROP FUNCTION twice")
    assert made.execute("SHOW FUNCTIONS LIKE 'twi%'").fetchall() == []
    with pytest.raises(UnsupportedSqlError, match="the function twice"):
        made.execute("SELECT twice(1)")


def test_macros_that_call_each_other_end(made: Any) -> None:
    for sql in ("CREATE MACRO g(x) AS 1", "CREATE MACRO f(x) AS g(x)"):
        made.execute(sql)
    with pytest.raises(icesql.Error):
        made.execute("CREATE OR REPLACE MACRO g(x) AS f(x)")
    assert made.execute("SELECT f(0)").fetchall() == [(1,)]
    # Each call multiplies the tokens by eight, and none of them reach the engine.
    made.execute("CREATE MACRO more(x) AS " + "+".join("x" * 8))
    with pytest.raises(ProgrammingError, match="over 2,000,000 characters"):
        made.execute("SELECT " + "more(" * 9 + "1" + ")" * 9)


def test_errors_are_at_places_of_the_texts_that_they_are_of(made: Any) -> None:
    made.execute("CREATE MACRO f(x) AS (SELECT missing + x FROM t)")
    with pytest.raises(
        ColumnNotFoundError, match=r'in macro "f" \(line 1, column 9\): column "mis'
    ):
        made.execute("SELECT f(1) FROM t")
    made.execute("CREATE MACRO g(x) AS x + 1")
    with pytest.raises(ColumnNotFoundError, match=r"\(line 2, column 7\)"):
        made.execute("SELECT a, g(1),\n    g(nope) FROM t")


def test_statements_around_it(made: Any) -> None:
    made.execute("CREATE MACRO f(x) AS x * 10")
    made.execute("CREATE TEMP VIEW v AS SELECT f(a) AS k FROM t")
    made.execute("PREPARE p AS SELECT f($1)")
    assert made.execute("EXECUTE p(4)").fetchall() == [(40,)]
    assert made.execute("SELECT f($1), f($2)", [1, 2]).fetchall() == [(10, 20)]
    with pytest.raises(UnsupportedSqlError, match=r"write \$1"):
        made.execute("SELECT f(?)", [1])
    assert made.execute("SELECT f(1), ?", [2]).fetchall() == [(10, 2)]
    made.execute("DROP MACRO f")
    # A view keeps the macros of its creation; a prepared text uses those of its execution.
    assert made.execute("SELECT max(k) FROM v").fetchall() == [(30,)]
    with pytest.raises(UnsupportedSqlError, match="the function f"):
        made.execute("EXECUTE p(4)")
    done = made.execute_script("CREATE MACRO h(x) AS x * 3; SELECT h(2); DROP MACRO h")
    assert [each.fetchall() for each in done if each.description] == [[(6,)]]


def test_filters_in_it_reach_the_files(connection: Any) -> None:
    connection.execute(
        "CREATE MACRO of_region(r) AS (SELECT count(*) FROM shop.orders WHERE region = r)"
    )
    cursor = connection.execute("SELECT of_region('eu')")
    expected = connection.execute("SELECT count(*) FROM shop.orders WHERE region = 'eu'").fetchall()
    assert cursor.fetchall() == expected
    plan = "\n".join(
        row[0] for row in connection.execute("EXPLAIN SELECT of_region('eu')").fetchall()
    )
    assert "region = 'eu'" in plan


def test_sql_functions_end_in_return(made: Any) -> None:
    made.execute("CREATE TEMPORARY FUNCTION f(x INT) RETURNS BIGINT RETURN x + 1")
    assert made.execute("SELECT f('4'), typeof(f(4))").fetchall() == [(5, "BIGINT")]


@pytest.mark.parametrize("dialect", ["spark", "trino", "snowflake"])
def test_every_dialect_has_them(dialect: str) -> None:
    with icesql.connect(dialect=dialect) as opened:
        opened.execute("CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1")
        opened.execute("CREATE MACRO g(x, y) AS coalesce(x, y)")
        rows = opened.execute("SELECT f(2), g(NULL, 'a')").fetchall()
    assert rows == [(3, "a")]


def test_a_connection_that_only_reads_has_them() -> None:
    with icesql.connect(read_only=True) as opened:
        opened.execute("CREATE MACRO f(x) AS x + 1")
        assert opened.execute("SELECT f(1)").fetchall() == [(2,)]


def test_ago_reads_the_clock_of_the_statement(connection: Any) -> None:
    asked = "SELECT ago(INTERVAL 1 DAY), now() - INTERVAL 1 DAY, ago('3 days') - now(), AGO(a) "
    first, second, third, fourth = connection.execute(
        f"{asked} FROM (SELECT INTERVAL 2 MONTH AS a) ago"
    ).fetchone()
    assert (first, third) == (second, -timedelta(days=3))
    assert fourth < first
    cursor = connection.execute("SELECT ago(INTERVAL '1' DAY)")
    assert cursor.description[0][0] == "ago(INTERVAL '1' DAY)"
    plan = "EXPLAIN SELECT id FROM shop.orders WHERE ordered_at > ago(INTERVAL 1 DAY)"
    assert any("pushed to" in row[0] for row in connection.execute(plan).fetchall())
    connection.execute("CREATE MACRO ago(x) AS x + 1")
    assert connection.execute("SELECT ago(3)").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("made", "call", "value"),
    [
        ("f(a) AS a || ','", "f('x')", "x,"),
        ("f(a, b := ',') AS a || b", "f('x')", "x,"),
        ("f(a, b := '(') AS a || b", "f('x')", "x("),
        ("f(a) AS a || '(', (a, b) AS a || ')' || b", "f('x', 'y')", "x)y"),
    ],
)
def test_a_text_of_punctuation_ends_no_part_of_a_macro(made: str, call: str, value: str) -> None:
    with icesql.connect() as connection:
        connection.execute(f"CREATE MACRO {made}")
        assert connection.execute(f"SELECT {call}").fetchone() == (value,)
