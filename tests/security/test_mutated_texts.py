"""A part of ``tests/campaigns/mutated_texts.py``, and texts that it or its author found."""

from __future__ import annotations

import pytest

from icesql.errors import Error
from tests.campaigns.mutated_texts import LEAKS, opened, run


def test_no_mutated_text_escapes() -> None:
    found = run(300, seed=7731)
    assert found["rows"] > 15
    assert len(found) > 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g FROM t -- \rUNION ALL SELECT name FROM duckdb_settings()",
        "SELECT g FROM t -- a\r\nWHERE a = 1 -- \rUNION ALL SELECT name FROM duckdb_settings()",
        "SELECT a FROM t WHERE g = E'\\' UNION ALL SELECT 1 FROM duckdb_settings() --'",
        "SELECT g FROM t\u00a0UNION ALL SELECT name FROM duckdb_settings()",
        "WITH x AS (SELECT name FROM duckdb_settings) SELECT * FROM x",
        "WITH y AS (FROM duckdb_settings), duckdb_settings AS (SELECT 1) FROM y",
        "SELECT * FROM (WITH pg_attribute AS (SELECT 1) SELECT 2), pg_attribute",
        "SELECT g FROM t; SELECT name FROM duckdb_settings()",
        'SELECT * FROM "duckdb_settings"()',
        "SELECT list_aggregate(['a'], 'hist' || 'ogram') FROM t",
        "SELECT g.current_setting() FROM (SELECT 'access_mode' AS g)",
        # sqlglot takes {# … #} for a comment.
        "SELECT a, MAP {#1: (SELECT string_agg(name) FROM duckdb_settings()), 99: '#} , {\"a\": 1 --'\n"
        "} FROM (SELECT a, 1 AS map FROM t)",
    ],
)
def test_texts_for_two_parsers_are_refused_or_harmless(sql: str) -> None:
    with opened() as (connection, _):
        try:
            rows = [row for cursor in [connection.execute(sql)] for row in cursor.fetchall()]
        except Error:
            return
        assert not any(leak in repr(rows) for leak in LEAKS)
        assert "duckdb_settings" in sql
        assert len(rows) <= 5
