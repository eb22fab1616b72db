"""What DuckDB finds true when it runs the text itself, the marked part of sqlglot's tree passes."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb.sql.engine_tree import parse as engine_parse
from icesql.engine.duckdb.sql.same.queries import mark_tree
from icesql.errors import Error
from icesql.iceberg.expressions.evaluate import evaluate
from icesql.query.constants.current_time import stop_clock
from icesql.query.pushdown.predicate import translate
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from tests.query.pushdown.test_predicate_property import (
    FIELDS,
    ZONES,
    conditions,
    database,
    rows,
)

# Forms whose words sqlglot loses, moves or reads as something else.
LOST = (
    "t > TIMESTAMP '2020-03-01 00:03:00' - INTERVAL '3 min'",
    "t > TIMESTAMP '2020-02-01' - INTERVAL '1 mon'",
    "t - INTERVAL '3 min' < TIMESTAMP '2020-03-01'",
    "t + INTERVAL '2 hrs' >= '2020-03-01'",
    "t >= DATE '2020-06-15'::TIMESTAMP",
    "t >= TIMESTAMP '2020-06-15 12:34:56.789'::DATE",
    "e < TIMESTAMP '2020-06-15 12:34:56.789'::DATE",
    "e = TIMESTAMP '2020-02-29 23:59:59'::DATE",
    "z >= TIMESTAMP '2020-06-15 12:34:56.789'::DATE::TIMESTAMPTZ",
    "s = DATE '2020-01-01'::VARCHAR",
    "s < DATE '2020-01-01'::VARCHAR",
    "date_trunc(m, t) = TIMESTAMP '2020-01-01'",
    "date_trunc(m, e) BETWEEN DATE '2020-01-01' AND DATE '2020-01-01'",
    "TIMESTAMP '2020-01-01' >= date_trunc(m, z)::TIMESTAMP",
    "date_trunc(CASE WHEN b THEN 'year' ELSE 'month' END, t) = TIMESTAMP '2020-01-01'",
    "left(s, -1) = 'a'",
    "substr(s, 0, 2) = 'a'",
    "substr(s, -2, 1) = 'a'",
    "l = 1_0 / 2",
    "c = 1.01::DECIMAL(5, 1)",
    "i = 5.5::INT",
    "i = '5.5'::DOUBLE::INT",
    "l = -5::UTINYINT",
    "NOT i = 5 AND l",
    "i = 5 IS NOT NULL",
    "i = 5 = b",
    "NOT i IN (5, 6) = b",
    "- i ** 2 = 25",
    "i + 1 BETWEEN 1 AND 6 AND 7",
    "i BETWEEN 1 AND 6 = b",
    "s LIKE 'a\\%%' ESCAPE '\\' = b",
    "i::VARCHAR = '5' OR i = 5 AND s > 'a'",
    "i = 5 OR l = 5 AND NOT b OR b",
    "s || 'c' = 'abc'",
    "s COLLATE NOCASE = 'a'",
    "e = '2020-01-01 12:00:00'",
    "i IN (5, NULL) IS NULL",
    "(i, s) <> (5, 'a')",
    "(i, l) < (5, 0)",
    "i == 5",
    "s = 'a' 'b'",
    "s = $$a$$",
    "s ~~ 'a%'",
    "NOT s !~~ 'a%'",
)


@pytest.mark.timeout(120)
@settings(max_examples=300)
@given(st.sampled_from(ZONES), conditions)
def test_no_row_of_duckdb_is_lost(zone: str, condition: str) -> None:
    check(zone, condition)


@pytest.mark.parametrize("wrapped", ["{}", "NOT ({})", "({}) OR i = 0", "({}) AND i IS NOT NULL"])
@pytest.mark.parametrize("condition", LOST)
def test_no_row_is_lost_where_sqlglot_reads_another_condition(condition: str, wrapped: str) -> None:
    for zone in ZONES:
        check(zone, wrapped.format(condition))


def check(zone: str, condition: str) -> None:
    """Every row that DuckDB keeps by the text itself passes the predicate."""
    sql = f"SELECT n FROM r WHERE {condition}"
    try:
        kept = database(zone).execute(sql).fetchall()
        (statement,) = parse(sql)
    except (duckdb.Error, Error):
        return  # a comparison of types that do not meet
    assert isinstance(statement, Query)
    context = QueryContext(
        settings=Settings(timezone=zone), now=datetime(2026, 11, 21, 12, tzinfo=UTC)
    )
    tree = statement.tree
    stop_clock(tree, context)
    mark_tree(tree, engine_parse(database(zone), statement.engine_text), statement.start)
    where = tree.args["where"].this
    predicate = translate(
        where, lambda column: FIELDS.get(column.name), context, marked=True
    ).predicate
    all_rows = rows()
    lost = [all_rows[n] for (n,) in kept if not evaluate(predicate, all_rows[n].get)]
    assert not lost, f"{condition} in {zone} became {predicate}, which loses {lost[0]}"
