"""Statements in Spark's dialect: the user's own text, spliced, and what it may not contain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import icesql
from icesql.interval import Interval
from icesql.query.spark_text import spark_statement
from icesql.sql.parse import parse
from icesql.sql.spark_sql import SparkText, spark_tokens
from icesql.sql.statement import Query
from tests.tables import read_cases, read_table


class Own(str):
    def __str__(self) -> str:
        return "no"


CLOCKS = {"now": "NOW", "current_timestamp": "NOW", "current_date": "DAY", "localtimestamp": "L"}


def text_of(sql: str, parameters: Any = None) -> SparkText:
    (statement,) = parse(sql, dialect="spark", parameters=parameters)
    assert isinstance(statement, Query)
    found = spark_statement(statement).spark
    assert isinstance(found, SparkText)
    return found


def final(sql: str, parameters: Any = None) -> str:
    return text_of(sql, parameters).final(["v0", "v1"], CLOCKS)[0]


@pytest.mark.parametrize(("sql", "expected"), read_table(__file__, "spark_texts.tsv"))
def test_only_what_must_change_changes(sql: str, expected: str) -> None:
    assert final(sql).rstrip() == expected.rstrip()


@pytest.mark.parametrize(
    ("sql", "parameters", "expected"),
    [
        *read_cases(__file__, "spark_parameters.tsv", 1),
        ("SELECT ?", [timedelta(seconds=1)], "SELECT INTERVAL '1000000' MICROSECOND"),
        ("SELECT ?", [Interval(months=3)], "SELECT INTERVAL '3' MONTH"),
        ("SELECT a IN ?, ?", [[Own("x")], Own("y")], "SELECT a IN ('x'), 'y'"),
    ],
)
def test_parameters_stand_where_they_were(sql: str, parameters: Any, expected: str) -> None:
    assert final(sql, parameters) == expected


@pytest.mark.parametrize(("sql", "named"), read_cases(__file__, "spark_refusals.tsv", 0))
def test_what_reaches_out_is_refused_by_name(sql: str, named: str) -> None:
    with pytest.raises((icesql.UnsupportedSqlError, icesql.SqlSyntaxError)) as caught:
        text_of(sql).check_names(frozenset())
    assert named in str(caught.value).lower()


def test_a_column_may_be_called_user() -> None:
    text_of("SELECT user FROM t").check_names(frozenset({"user"}))


def test_places_in_the_final_text_are_those_of_the_user() -> None:
    sql = "SELECT a,\n  b FROM n.some_table WHERE c = ? AND d"
    made = text_of(sql, [5])
    written, original = made.final(["v0"], CLOCKS)
    for word in ("SELECT", "a,", "b FROM", "WHERE", "c =", "AND", "d"):
        assert original(written.index(word)) == sql.index(word), word
    assert original(written.index("v0")) == sql.index("n.some_table")


def test_the_local_engine_still_refuses_what_it_lacks() -> None:
    (statement,) = parse("SELECT xxhash64(1)", dialect="spark")
    assert isinstance(statement, Query)
    assert isinstance(spark_statement(statement).spark, SparkText)
    assert isinstance(statement.refused, icesql.UnsupportedSqlError)


def test_tokens_are_those_of_sparks_lexer() -> None:
    sql = "a.`b``c` 'd\\'e' \"f\" r'\\' 1e3 /* /* */ */ -- x\ny"
    found = spark_tokens(sql, 0, len(sql))
    assert [sql[each.start : each.stop] for each in found] == [
        "a", ".", "`b``c`", "'d\\'e'", '"f"', "r'\\'", "1e3", "y",
    ]  # fmt: skip
    assert found[2].text == "b`c"


@pytest.mark.parametrize("sql", ["SELECT 'a", "SELECT `a", "SELECT /* a", "SELECT $$a$$"])
def test_what_is_no_token_is_refused(sql: str) -> None:
    with pytest.raises(icesql.Error):
        text_of(sql)
