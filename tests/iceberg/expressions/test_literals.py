"""Literals: every adapted predicate is implied by SQL's comparison, and exact where it can be."""

from __future__ import annotations

import math
import operator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.expressions.literals import NanoTimestamp, compare
from icesql.iceberg.expressions.predicate import (
    Leaf,
    Operation,
    Predicate,
    Term,
    evaluate,
)
from icesql.iceberg.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    DecimalType,
)
from tests.iceberg.text_forms import columns, read_predicate, read_python, read_type
from tests.tables import read_table

O = Operation  # noqa: E741
X = Term(1, "x")
ORDERED = [O.LT, O.LT_EQ, O.GT, O.GT_EQ, O.EQ, O.NOT_EQ]
D2 = DecimalType(9, 2)
EPOCH = datetime(1970, 1, 1)


def leaf(operation: Operation, literal: Any) -> Leaf:
    return Leaf(operation, X, literal)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


MIDNIGHT = micros("2020-01-01")


@pytest.mark.parametrize(
    ("operation", "column", "value", "expected"), read_table(__file__, "literals.tsv")
)
def test_adaptation(operation, column, value, expected):
    found = compare(Operation(operation), X, read_type(column), read_python(value))
    assert found == read_predicate(expected, columns(f"x {column}"))


def test_lists_of_nan_and_of_equal_decimals():
    assert compare(O.IN, X, DOUBLE, [1, math.nan]) == leaf(O.EQ, 1.0) | Leaf(O.IS_NAN, X)
    assert compare(O.IN, X, D2, [Decimal("1.0"), Decimal("1.00")]) == leaf(O.EQ, Decimal("1.00"))
    assert compare(O.NOT_IN, X, DOUBLE, [1, math.nan]) == leaf(O.NOT_EQ, 1.0) & Leaf(O.NOT_NAN, X)


@pytest.mark.parametrize("column", [TIMESTAMP, TIMESTAMPTZ, DATE])
def test_where_only_one_side_has_a_zone_every_zone_is_allowed_for(column):
    value: Any = datetime(2020, 1, 1, 12)
    if column != TIMESTAMPTZ:
        value = value.replace(tzinfo=UTC)
    predicate = compare(O.EQ, X, column, value)
    noon = MIDNIGHT + 12 * 3_600_000_000
    for hours in (-14, -5, 0, 5, 12):
        row = noon + hours * 3_600_000_000
        row = row // 86_400_000_000 if column == DATE else row
        if column == DATE and hours == -14:
            continue
        assert evaluate(predicate, lambda _, row=row: row), hours
    assert not evaluate(predicate, lambda _: 0)


def test_datetimes_at_the_ends_of_the_calendar_are_adapted():
    assert compare(O.GT, X, TIMESTAMPTZ, datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))))
    assert compare(O.GT, X, TIMESTAMPTZ, datetime.min.replace(tzinfo=timezone(timedelta(hours=5))))


# ------------------------------------------------------------------ against another engine

PYTHON = {O.LT: operator.lt, O.LT_EQ: operator.le, O.GT: operator.gt, O.GT_EQ: operator.ge,
          O.EQ: operator.eq, O.NOT_EQ: operator.ne}  # fmt: skip


@pytest.mark.parametrize(("kind", "sql_type", "values"), read_table(__file__, "duckdb_columns.tsv"))
def test_rows_that_duckdb_finds_satisfy_the_predicate(kind, sql_type, values):
    column, connection = read_type(kind), duckdb.connect()
    rows = ", ".join(f"(CAST({value} AS {sql_type}))" for value in values.split())
    connection.execute(f"CREATE TABLE t AS SELECT x FROM (VALUES {rows}) AS v(x)")
    missed = []
    for text, written in read_table(__file__, "duckdb_literals.tsv"):
        literal = read_python(written)
        for operation in ORDERED:
            try:
                sql = f"SELECT x FROM t WHERE x {operation.value} {text}"
                found = [row[0] for row in connection.execute(sql).fetchall()]
            except duckdb.Error:
                continue  # out of the type's range: DuckDB refuses the query
            predicate = compare(operation, X, column, literal)
            if operation in (O.GT, O.GT_EQ) and column in (FLOAT, DOUBLE):
                predicate = predicate | Leaf(O.IS_NAN, X)  # as callers do: NaN is the greatest
            missed += [
                (row, operation.value, text)
                for row in found
                if not evaluate(predicate, lambda _, row=row: row)
            ]
    connection.close()
    assert missed == []


numbers = (
    st.integers(-40, 40)
    | st.integers(-(2**66), 2**66)
    | st.decimals(-40, 40, places=3)
    | st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63)])
)
ROWS = {
    INTEGER: st.integers(-40, 40) | st.sampled_from([2**31 - 1, -(2**31)]),
    LONG: st.integers(-40, 40) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
    D2: st.integers(-4000, 4000).map(lambda n: Decimal(n).scaleb(-2)),
}


@given(st.sampled_from(list(ROWS)), st.sampled_from(ORDERED), numbers, st.data())
@settings(max_examples=600)
def test_exact_literals_give_exactly_the_comparison(column, operation, literal, data):
    row = data.draw(ROWS[column])
    predicate = compare(operation, X, column, literal)
    assert evaluate(predicate, lambda _: row) is PYTHON[operation](row, literal)
    assert not evaluate(predicate, lambda _: None)


@given(st.sampled_from([INTEGER, LONG, D2, DOUBLE]), st.sampled_from(ORDERED),
       st.floats(-50, 50) | st.floats(allow_nan=False), st.data())  # fmt: skip
@settings(max_examples=600)
def test_float_literals_allow_for_both_ways_to_compare(column, operation, literal, data):
    row = data.draw(ROWS.get(column, st.floats(allow_nan=False)))
    predicate: Predicate = compare(operation, X, column, literal)
    if PYTHON[operation](float(row), literal) or PYTHON[operation](row, literal):
        assert evaluate(predicate, lambda _: row)


@given(st.sampled_from([DATE, TIMESTAMP, TIMESTAMP_NS]), st.sampled_from(ORDERED),
       st.integers(-(3 * 10**14), 3 * 10**14), st.integers(-2, 2))  # fmt: skip
@settings(max_examples=400)
def test_timestamps_meet_on_one_line_of_time(column, operation, literal_ns, near):
    unit = {DATE: 86_400 * 10**9, TIMESTAMP: 1000, TIMESTAMP_NS: 1}[column]
    row = literal_ns // unit + near
    predicate = compare(operation, X, column, NanoTimestamp(literal_ns, zoned=False))
    assert evaluate(predicate, lambda _: row) is PYTHON[operation](row * unit, literal_ns)
