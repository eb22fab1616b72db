"""Words that DuckDB reads in another way than sqlglot: the same rows as DuckDB gives."""

from __future__ import annotations

import duckdb
import pytest

import icesql

LIST = "(SELECT [1, 2, 3, 4, 5] AS l, 2 AS two, 4 AS four, 'ahoy' AS s)"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT [1, 2, 3][NULL:3], [1, 2, 3][2:NULL], [1, 2, 3][NULL:NULL + 1]",
        "SELECT [1, 2, 3, 4][1:-:2], [1, 2, 3, 4][2:-:2]",
        f"SELECT l[two:-:two], l[:two:two], l[:two], l[two:four], l[two + 1 : four - 1] FROM {LIST}",
        f"SELECT l[:], l[2:], l[:-2], l[-2:], s[:two], s[two:], s[:NULL], l[l[1]:l[:3][2]] FROM {LIST}",
        "SELECT {'a': [1, 2, 3][:2], 'b': 1}, MAP {1: [1, 2][1:1]}, [{'a': 1}][1]",
        "SELECT sum(i) OVER (GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM range(3) t(i)",
        "SELECT sum(i) OVER (GROUPS UNBOUNDED PRECEDING) FROM range(3) t(i)",
        "SELECT sum(i) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM range(3) t(i)",
        "SELECT sum(i) OVER (ORDER BY i RANGE 1 PRECEDING) FROM range(3) t(i)",
        "SELECT sum(i) OVER groups FROM range(3) t(i) WINDOW groups AS (ORDER BY i)",
        "SELECT range, if(range < 2, NULL, range), range + 1, -range FROM range(3)",
        "SELECT interval, map, interval < 2, map < 3 FROM (SELECT 1 AS interval, 2 AS map)",
        "SELECT map FROM (SELECT MAP {1: 2} AS map), range(1)",
    ],
)
def test_words_mean_what_they_mean_to_duckdb(sql: str) -> None:
    with icesql.connect() as connection, duckdb.connect() as database:
        expected = database.execute(sql).fetchall()
        found = connection.execute(sql).fetchall()
    assert [_plain(row) for row in found] == [_plain(row) for row in expected]


def _plain(value: object) -> object:
    """Maps come as pairs from one and as dictionaries from the other."""
    if isinstance(value, dict):
        return [[key, _plain(each)] for key, each in value.items()]
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_a_colon_before_a_name_is_a_parameter_outside_of_a_slice() -> None:
    with icesql.connect() as connection:
        sql = "SELECT :two, [:two, 3], [1, 2, 3][:two], [1, 2, 3][(:two):], {'a': :two} FROM (SELECT 1 AS two)"
        found = connection.execute(sql, {"two": 2}).fetchall()
    assert found == [(2, [2, 3], [1], [2, 3], {"a": 2})]
