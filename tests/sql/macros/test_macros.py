"""Macros: the same answers as DuckDB over the same rows, and the limits of macros."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import UnsupportedSqlError
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


def test_parameters_and_scripts_around_it(made: Any) -> None:
    made.execute("CREATE MACRO f(x) AS x * 10")
    assert made.execute("SELECT f($1), f($2)", [1, 2]).fetchall() == [(10, 20)]
    with pytest.raises(UnsupportedSqlError, match=r"write \$1"):
        made.execute("SELECT f(?)", [1])
    assert made.execute("SELECT f(1), ?", [2]).fetchall() == [(10, 2)]
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
