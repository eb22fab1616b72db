"""A tree that is written back says what DuckDB reads in the text, counted part by part."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

import icesql
from icesql.engine.duckdb.sql.nothing_lost import check_nothing_lost
from icesql.sql.reading.engine_tree import parse

LESS = [
    ("a <= b", "a < b"),
    ("NOT a", "a"),
    ("a IS NOT NULL", "a IS NULL"),
    ("a IS NOT DISTINCT FROM b", "a = b"),
    ("a NOT IN (1, 2)", "a IN (1, 2)"),
    ("TRY_CAST(a AS INT)", "CAST(a AS INT)"),
    ("a COLLATE NOCASE", "a"),
    ("CASE WHEN a THEN b END", "a AND b"),
    ("count(DISTINCT a)", "count(a)"),
    ("count(a) FILTER (WHERE b)", "count(a AND b)"),
    ("list(a ORDER BY b DESC)", "list(a ORDER BY b)"),
    ("list(a ORDER BY b NULLS FIRST)", "list(a ORDER BY b)"),
    ("sum(a) OVER (ORDER BY b ROWS 1 PRECEDING)", "sum(a) OVER (ORDER BY b RANGE 1 PRECEDING)"),
    (
        "sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE TIES)",
        "sum(a) OVER (ORDER BY b ROWS 1 PRECEDING)",
    ),
    ("sum(a) OVER (PARTITION BY b)", "sum(a) OVER (ORDER BY b)"),
    ("list_transform(a, x -> x)", "list_concat(a, x, x)"),
    ("(SELECT a) = ANY (SELECT b)", "(SELECT a) = (SELECT b)"),
    ("* EXCLUDE (a)", "*"),
    ("a UNION ALL SELECT b", "a UNION SELECT b"),
    ("a EXCEPT SELECT b", "a INTERSECT SELECT b"),
    ("DISTINCT a", "a"),
    ("a FROM t LIMIT 10 PERCENT", "a FROM t LIMIT 10"),
    ("a FROM t LEFT JOIN u ON t.b = u.b", "a FROM t JOIN u ON t.b = u.b"),
    ("a FROM t ASOF JOIN u ON t.b >= u.b", "a FROM t JOIN u ON t.b >= u.b"),
    ("a FROM t JOIN u USING (b)", "a FROM t, u WHERE b"),
    ("a FROM t PIVOT (max(b) FOR c IN (1))", "a, b, c, 1 FROM t"),
    ("a FROM t GROUP BY ROLLUP (a)", "a FROM t GROUP BY a"),
    ("a FROM t WHERE b", "a FROM t QUALIFY b"),
]


@pytest.mark.parametrize(("text", "less"), LESS)
def test_a_tree_that_says_less_than_the_text_is_not_written_back(text: str, less: str) -> None:
    with duckdb.connect() as database:
        cursor = database.cursor()
        user = parse(cursor, f"SELECT {text}")
        with pytest.raises(icesql.UnsupportedSqlError):
            check_nothing_lost(user, sqlglot.parse_one(f"SELECT {less}", read="duckdb"), cursor)
        check_nothing_lost(user, sqlglot.parse_one(f"SELECT {text}", read="duckdb"), cursor)


@pytest.mark.parametrize(
    "text",
    ["b IS NOT TRUE", "a NOT NULL", "a::VARCHAR(10)", "a FROM t ORDER BY a ASC NULLS LAST",
     "a FROM t, unnest([1]) AS u(x)", "if(a, b, 1)", "a IN [1, 2]", "INTERVAL '3 days'"],
)  # fmt: skip
def test_other_words_for_the_same_are_written_back(text: str) -> None:
    with duckdb.connect() as database:
        cursor = database.cursor()
        tree = sqlglot.parse_one(f"SELECT {text}", read="duckdb")
        check_nothing_lost(parse(cursor, f"SELECT {text}"), tree, cursor)
