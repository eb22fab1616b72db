"""Constant time expressions become instants; expected values by hand or by DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.engines import Engines
from icesql.errors import Error, SqlSyntaxError
from icesql.query.time_travel import fold_instant
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.time_travel import AtTime
from tests.tables import read_table

ENGINES = Engines(None)
EARLY, LATE = "TIMESTAMPTZ '2020-10-24 02:30:00+02'", "TIMESTAMPTZ '2020-10-26 02:30:00+01'"
NOW = datetime(2026, 3, 31, 10, 30, 15, 250_000, tzinfo=UTC)


def fold(sql: str, zone: str = "UTC", *, dialect: str = "duckdb", seconds: bool = False) -> str:
    context = QueryContext(settings=Settings(timezone=zone), now=NOW, evaluate=ENGINES.evaluate)
    statement = parse(f"SELECT {sql}", dialect=dialect)[0]
    assert isinstance(statement, Query)
    tree = statement.tree.expressions[0]
    us = fold_instant(AtTime(tree, sql, seconds), context)
    moment = datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
    return moment.isoformat(" ").replace("+00:00", "")


@pytest.mark.parametrize(("sql", "zone", "expected"), read_table(__file__, "instants.tsv"))
def test_a_constant_time_is_an_instant(sql: str, zone: str, expected: str) -> None:
    assert fold(sql, zone) == expected


@pytest.mark.parametrize(
    ("sql", "dialect", "expected"), read_table(__file__, "instants_of_dialects.tsv")
)
def test_spellings_of_other_dialects(sql: str, dialect: str, expected: str) -> None:
    statement = parse(f"SELECT * FROM t TIMESTAMP AS OF {sql}", dialect=dialect)[0]
    assert isinstance(statement, Query)
    context = QueryContext(settings=Settings(timezone="UTC"), now=NOW, evaluate=ENGINES.evaluate)
    (reference,) = statement.references
    assert isinstance(reference.travel, AtTime)
    us = fold_instant(reference.travel, context)
    assert datetime.fromtimestamp(us / 1_000_000, UTC).replace(tzinfo=None) == (
        datetime.fromisoformat(expected)
    )


@pytest.mark.parametrize(("sql", "message"), read_table(__file__, "no_instants.tsv"))
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
