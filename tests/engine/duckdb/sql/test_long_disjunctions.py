"""A long OR in pieces means what it meant, under NOT and for NULL too, and is not looked at whole."""

from __future__ import annotations

import random

import duckdb
import pytest
import sqlglot

import icesql
from icesql.engine.duckdb.sql.long_disjunctions import with_short_disjunctions

TERMS = 400


def condition(rng: random.Random) -> str:
    terms = [f"(a = {rng.randrange(9)} AND b > {rng.randrange(9)})" for _ in range(TERMS)]
    return " OR ".join([*terms, "b IS NULL AND a = 7"])


@pytest.mark.parametrize("shape", ["{}", "NOT ({})", "({}) IS NULL", "({}) AND a > 1 OR b = 2"])
@pytest.mark.parametrize("seed", range(3))
def test_pieces_mean_what_the_whole_meant(shape: str, seed: int) -> None:
    sql = f"SELECT a, b FROM t WHERE {shape.format(condition(random.Random(seed)))}"
    short = with_short_disjunctions(sqlglot.parse_one(sql, read="duckdb")).sql(dialect="duckdb")
    assert "COALESCE" in short
    rows = "(SELECT a, b FROM (VALUES (0), (3), (7), (8), (NULL)) x (a), (VALUES (0), (5), (NULL)) y (b))"
    answers = [
        sorted(duckdb.sql(each.replace("FROM t", f"FROM {rows}")).fetchall(), key=repr)
        for each in (sql, short)
    ]
    assert answers[0] == answers[1]


def test_short_ones_stay_as_they_are() -> None:
    tree = sqlglot.parse_one("SELECT a FROM t WHERE a = 1 OR b = 2 OR a > b", read="duckdb")
    assert with_short_disjunctions(tree) is tree


def test_three_thousand_terms_end(connection: icesql.Connection) -> None:
    # 16 s of DuckDB's time as one chain; the limit is far from both.
    terms = " OR ".join(f"(id = {each} AND amount > {each})" for each in range(3000))
    connection.execute("SET query_timeout = '60'")
    sql = f"SELECT count(*) FROM shop.orders WHERE {terms}"
    assert connection.execute(sql).fetchall() == [(0,)]
