"""Constant time expressions become instants; expected values worked out by hand or by DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.engines import Engines
from icesql.errors import Error, SqlSyntaxError
from icesql.query.travel.instant import fold_instant
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.time_travel import AtTime

ENGINES = Engines(None)
EARLY, LATE = "TIMESTAMPTZ '2020-10-24 02:30:00+02'", "TIMESTAMPTZ '2020-10-26 02:30:00+01'"
NOW = datetime(2026, 3, 31, 10, 30, 15, 250_000, tzinfo=UTC)


def fold(sql: str, zone: str = "UTC", *, dialect: str = "duckdb", seconds: bool = False) -> str:
    context = QueryContext(settings=Settings(timezone=zone), now=NOW, ask=ENGINES.ask)
    statement = parse(f"SELECT {sql}", dialect=dialect)[0]
    assert isinstance(statement, Query)
    tree = statement.tree.expressions[0]
    us = fold_instant(AtTime(tree, sql, seconds), context)
    moment = datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
    return moment.isoformat(" ").replace("+00:00", "")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("'2026-01-31'", "2026-01-31 00:00:00"),
        ("'2026-01-31 12:00'", "2026-01-31 12:00:00"),
        ("'2026-01-31T12:00:00.5Z'", "2026-01-31 12:00:00.500000"),
        ("'2026-01-31 12:00:00+02'", "2026-01-31 10:00:00"),
        ("'2026-01-31 12:00:00 -05:30'", "2026-01-31 17:30:00"),
        ("TIMESTAMP '2022-03-23 09:59:29.803 Europe/Vienna'", "2022-03-23 08:59:29.803000"),
        ("TIMESTAMP '2026-01-31 12:00:00 UTC'", "2026-01-31 12:00:00"),
        ("TIMESTAMPTZ '2026-07-31 12:00:00 America/New_York'", "2026-07-31 16:00:00"),
        ("'2026-01-31 12:00:00.123456789'", "2026-01-31 12:00:00.123456"),
        ("DATE '2026-01-31'", "2026-01-31 00:00:00"),
        ("CAST('2026-01-31 23:59:00' AS DATE)", "2026-01-31 00:00:00"),
        ("'2026-01-31'::TIMESTAMP", "2026-01-31 00:00:00"),
        ("now()", "2026-03-31 10:30:15.250000"),
        ("current_timestamp", "2026-03-31 10:30:15.250000"),
        ("current_date", "2026-03-31 00:00:00"),
        ("today()", "2026-03-31 00:00:00"),
        ("current_date - 1", "2026-03-30 00:00:00"),
        ("now() - INTERVAL 1 DAY", "2026-03-30 10:30:15.250000"),
        ("now() - INTERVAL '1' MONTH", "2026-02-28 10:30:15.250000"),
        ("now() - INTERVAL '1 day 2 hours'", "2026-03-30 08:30:15.250000"),
        ("now() - INTERVAL '1 day 02:00:00'", "2026-03-30 08:30:15.250000"),
        ("now() - 3 * INTERVAL '1 day'", "2026-03-28 10:30:15.250000"),
        ("now() - (INTERVAL 1 DAY + INTERVAL 2 HOUR)", "2026-03-30 08:30:15.250000"),
        ("now() + -INTERVAL 1 YEAR", "2025-03-31 10:30:15.250000"),
        ("INTERVAL 1 DAY + DATE '2026-01-31'", "2026-02-01 00:00:00"),
        ("DATE '2024-02-29' + INTERVAL 1 YEAR", "2025-02-28 00:00:00"),
        ("TIMESTAMP '2026-01-31' + INTERVAL 1.5 HOUR", "2026-01-31 01:30:00"),
        ("to_timestamp(1769860800)", "2026-01-31 12:00:00"),
        ("to_timestamp(1769860800.25)", "2026-01-31 12:00:00.250000"),
        ("epoch_ms(1769860800123)", "2026-01-31 12:00:00.123000"),
        ("make_timestamp(1769860800123456)", "2026-01-31 12:00:00.123456"),
        ("date_trunc('month', now())", "2026-03-01 00:00:00"),
        ("date_trunc('week', TIMESTAMP '2026-04-02 10:00:00')", "2026-03-30 00:00:00"),
        ("TIMESTAMP '2026-01-31 12:00:00' AT TIME ZONE 'Europe/Vienna'", "2026-01-31 11:00:00"),
        ("TIMESTAMP '1969-12-31 23:59:59.999999'", "1969-12-31 23:59:59.999999"),
    ],
)
def test_a_constant_time_in_utc(sql: str, expected: str) -> None:
    assert fold(sql) == expected


@pytest.mark.parametrize(
    ("sql", "zone", "expected"),
    [
        ("'2026-07-01 00:00:00'", "Europe/Vienna", "2026-06-30 22:00:00"),
        ("'2026-07-01 00:00:00+00'", "Europe/Vienna", "2026-07-01 00:00:00"),
        ("DATE '2026-01-31'", "America/New_York", "2026-01-31 05:00:00"),
        ("current_date", "Asia/Tokyo", "2026-03-30 15:00:00"),
        ("localtimestamp", "Asia/Tokyo", "2026-03-31 10:30:15.250000"),
        # skipped by daylight saving: forward by the gap; twice: the earlier (Java's rule)
        ("'2020-03-29 02:30:00'", "Europe/Vienna", "2020-03-29 01:30:00"),
        ("'2020-10-25 02:30:00'", "Europe/Vienna", "2020-10-25 00:30:00"),
        # a day of the calendar, not 24 hours: the clock went forward on 2026-03-29
        ("now() - INTERVAL 3 DAY", "Europe/Vienna", "2026-03-28 11:30:15.250000"),
        ("now() - INTERVAL 72 HOUR", "Europe/Vienna", "2026-03-28 10:30:15.250000"),
        # a step of days keeps the offset where the clock shows the hour twice, as in DuckDB and Java
        (f"{LATE} - INTERVAL 1 DAY", "Europe/Vienna", "2020-10-25 01:30:00"),
        (f"{EARLY} + INTERVAL 1 DAY", "Europe/Vienna", "2020-10-25 00:30:00"),
        ("date_trunc('day', now())", "Europe/Vienna", "2026-03-30 22:00:00"),
        ("now() AT TIME ZONE 'UTC'", "Europe/Vienna", "2026-03-31 08:30:15.250000"),
        ("now() AT TIME ZONE '+02:00'", "UTC", "2026-03-31 12:30:15.250000"),
        ("now() - INTERVAL 200 YEAR", "Europe/Vienna", "1826-03-31 11:24:54.250000"),
    ],
)
def test_a_time_without_zone_is_read_in_the_sessions(sql: str, zone: str, expected: str) -> None:
    assert fold(sql, zone) == expected


@pytest.mark.parametrize(
    ("sql", "dialect", "expected"),
    [
        # no part of a span is left out
        ("DATE '2026-01-31' - INTERVAL '1 day 02:30:00'", "duckdb", "2026-01-29 21:30:00"),
        ("DATE '2026-01-31' - INTERVAL '1 day'", "duckdb", "2026-01-30 00:00:00"),
        ("DATE '2026-01-31' - INTERVAL '02:30:00'", "duckdb", "2026-01-30 21:30:00"),
        ("DATE '2026-01-31' - INTERVAL '1 day 02:30:00'", "spark", "2026-01-29 21:30:00"),
        ("date_sub(current_date(), 1)", "spark", "2026-03-30 00:00:00"),
        ("TIMESTAMP '2026-01-31 12:00:00'", "spark", "2026-01-31 12:00:00"),
        ("current_timestamp - interval '1' day", "trino", "2026-03-30 10:30:15.250000"),
        ("'2024-06-05 12:30:00'::TIMESTAMP_LTZ", "snowflake", "2024-06-05 12:30:00"),
        ("INTERVAL '1-2' YEAR TO MONTH + DATE '2026-01-31'", "trino", "2027-03-31 00:00:00"),
    ],
)
def test_spellings_of_other_dialects(sql: str, dialect: str, expected: str) -> None:
    statement = parse(f"SELECT * FROM t TIMESTAMP AS OF {sql}", dialect=dialect)[0]
    assert isinstance(statement, Query)
    context = QueryContext(settings=Settings(timezone="UTC"), now=NOW, ask=ENGINES.ask)
    (reference,) = statement.references
    assert isinstance(reference.travel, AtTime)
    us = fold_instant(reference.travel, context)
    assert datetime.fromtimestamp(us / 1_000_000, UTC).replace(tzinfo=None) == (
        datetime.fromisoformat(expected)
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("5", "seconds"),
        ("'5'", "seconds"),
        ("'2026-13-01'", "month must be"),
        ("'2026-01-31 25:00:00'", "hour must be"),
        ("'2026-01-31 12:00:00 Mars/Olympus'", "not a time zone"),
        ("'soon'", "is not a time"),
        ("INTERVAL 1 DAY", "is an interval"),
        ("a", "is a name"),
        ("(SELECT 1)", "subquery"),
        ("random()", "not a constant"),
        ("getenv('HOME')", "getenv"),
        ("now() - to_days(CAST(random() AS INT))", "not a constant"),
        ("now() - INTERVAL (length(repeat('x', 2))) DAY", "not a constant"),
        ("DATE '2026-01-31' - DATE '2026-01-30'", "not a constant"),
        ("'2026-01-31' - '2026-01-30'", "is an interval"),
        ("now() AT TIME ZONE UTC", "not a constant"),
        ("date_trunc('decade', now())", "not a constant"),
        ("1 + DATE '2026-01-31'", "not a constant"),
        ("now() - '1 day'", "is not a time"),
        ("to_timestamp('soon')", "is not a number"),
        ("NULL", "not a constant"),
        ("DATE '0001-01-01' - INTERVAL 2 YEAR", "outside the years"),
        ("now() - INTERVAL 99999 YEAR", "outside the years"),
        ("now() - to_days(1e999999)", "outside the years"),
        ("to_timestamp(1e99999999)", "outside the years"),
    ],
)
def test_what_is_no_constant_time_is_refused_by_name(sql: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        fold(sql)


def test_a_span_with_another_word_is_none() -> None:
    sql = "SELECT * FROM t TIMESTAMP AS OF now() - INTERVAL '1 day x'"
    statement = parse(sql)[0]
    assert isinstance(statement, Query)
    travel = statement.references[0].travel
    assert isinstance(travel, AtTime)
    with pytest.raises(SqlSyntaxError, match="is not an interval"):
        fold_instant(travel, QueryContext())


def test_numbers_are_seconds_where_the_dialect_says_so() -> None:
    assert fold("1769860800", seconds=True) == "2026-01-31 12:00:00"
    assert fold("-1", seconds=True) == "1969-12-31 23:59:59"
