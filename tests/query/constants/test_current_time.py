from __future__ import annotations

from datetime import UTC, datetime

import sqlglot

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.query.constants.volatile import stop_clock

LATE = QueryContext(
    settings=Settings(timezone="America/New_York"),
    now=datetime(2026, 11, 21, 3, 0, 0, 5, tzinfo=UTC),
)


def stopped(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="duckdb")
    stop_clock(tree, LATE)
    return tree.sql(dialect="duckdb")


def test_now_is_the_instant_of_the_statement():
    assert stopped("SELECT 1 FROM t WHERE a > now() AND b > current_timestamp") == (
        "SELECT 1 FROM t WHERE a > CAST('2026-11-21 03:00:00.000005+00:00' AS TIMESTAMPTZ) "
        "AND b > CAST('2026-11-21 03:00:00.000005+00:00' AS TIMESTAMPTZ)"
    )


def test_today_is_the_day_in_the_session_zone():
    assert stopped("SELECT current_date - 1 FROM t") == (
        "SELECT CAST('2026-11-20' AS DATE) - 1 FROM t"
    )


def test_a_column_of_the_result_keeps_its_name():
    assert stopped("SELECT now()").endswith('AS "now()"')


def test_a_column_called_now_is_left_alone():
    assert stopped("SELECT now + 1 FROM t") == "SELECT now + 1 FROM t"
