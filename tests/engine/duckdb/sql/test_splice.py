"""Subqueries replace the tables of the tree, whatever other texts contain."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from icesql.engine.duckdb.sql.composed import filled, renamed_sql, spliced_sql
from tests.tables import read_cases

SOURCES = {
    "__scan_0": 'SELECT 1 AS "__scan_1", \'"__scan_1" __scan_1 \' AS b',
    "__scan_1": "SELECT 2 AS x",
}


def rows(sql: str) -> list[tuple[object, ...]]:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    with duckdb.connect() as con:
        return con.sql(spliced_sql(tree, SOURCES)).fetchall()


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "spliced.tsv", 1))
def test_only_tables_are_replaced(sql: str, expected: tuple[object, ...]) -> None:
    assert rows(sql) == [expected]


def test_subqueries_are_not_looked_at_again() -> None:
    assert filled('"a" "b"', {"a": '"b"', "b": '"a"'}) == '("b") ("a")'
    assert filled("x", {}) == "x"


def test_a_tree_stays_as_it_is() -> None:
    tree = sqlglot.parse_one('SELECT x FROM "__scan_1" AS b', dialect="duckdb")
    renamed = renamed_sql(tree, {"__scan_1": "odd\"'$$"})
    assert renamed == 'SELECT x FROM "odd""\'$$" AS b'
    assert tree.sql(dialect="duckdb") == 'SELECT x FROM "__scan_1" AS b'
