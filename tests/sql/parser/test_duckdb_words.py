"""Tokens that DuckDB parses differently from sqlglot: the same rows as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import icesql
from tests.tables import read_lines

LIST = "(SELECT [1, 2, 3, 4, 5] AS l, 2 AS two, 4 AS four, 'ahoy' AS s)"


@pytest.mark.parametrize("sql", read_lines(__file__, "duckdb_words.tsv"))
def test_words_mean_what_they_mean_to_duckdb(sql: str) -> None:
    with icesql.connect() as connection, duckdb.connect() as database:
        expected = database.execute(sql).fetchall()
        found = connection.execute(sql).fetchall()
    assert [_plain(row) for row in found] == [_plain(row) for row in expected]


def _plain(value: object) -> object:
    """Maps are pairs in one result and dictionaries in the other."""
    if isinstance(value, dict):
        return [[key, _plain(each)] for key, each in value.items()]
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_a_colon_before_a_name_is_a_parameter_outside_of_a_slice() -> None:
    with icesql.connect() as connection:
        sql = "SELECT :two, [:two, 3], [1, 2, 3][:two], [1, 2, 3][(:two):], {'a': :two} FROM (SELECT 1 AS two)"
        found = connection.execute(sql, {"two": 2}).fetchall()
    assert found == [(2, [2, 3], [1], [2, 3], {"a": 2})]
