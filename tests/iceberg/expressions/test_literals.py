"""Literals: every adapted predicate is implied by SQL's comparison, and exact where it can be."""

from __future__ import annotations

import math
import operator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.expressions.evaluate import evaluate
from icesql.iceberg.expressions.literals import EpochMicros, NanoTimestamp, compare
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
)
from icesql.iceberg.types import UUID as UUID_TYPE

O = Operation  # noqa: E741
X = Term(1, "x")
ORDERED = [O.LT, O.LT_EQ, O.GT, O.GT_EQ, O.EQ, O.NOT_EQ]
NOT_NULL = Leaf(O.NOT_NULL, X)
D2 = DecimalType(9, 2)
EPOCH = datetime(1970, 1, 1)


def leaf(operation: Operation, literal: Any) -> Leaf:
    return Leaf(operation, X, literal)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


DAY = (date(2020, 1, 1) - EPOCH.date()).days
MIDNIGHT = micros("2020-01-01")


@pytest.mark.parametrize(
    ("operation", "column", "value", "expected"),
    [
        # numbers between the values of the column
        (O.LT, INTEGER, Decimal("5.4"), leaf(O.LT_EQ, 5)),
        (O.LT, INTEGER, Decimal("5.0"), leaf(O.LT, 5)),
        (O.LT_EQ, INTEGER, Decimal("-5.4"), leaf(O.LT_EQ, -6)),
        (O.GT, INTEGER, 5.4, leaf(O.GT_EQ, 6)),
        (O.GT_EQ, INTEGER, 5.0, leaf(O.GT_EQ, 5)),
        (O.EQ, INTEGER, 5.4, ALWAYS_FALSE),
        (O.EQ, LONG, 5.0, leaf(O.EQ, 5)),
        (O.NOT_EQ, INTEGER, Decimal("5.4"), NOT_NULL),
        # beyond the column
        (O.LT, INTEGER, 5_000_000_000, NOT_NULL),
        (O.GT, INTEGER, 5_000_000_000, ALWAYS_FALSE),
        (O.EQ, INTEGER, -5_000_000_000, ALWAYS_FALSE),
        (O.NOT_EQ, INTEGER, 5_000_000_000, NOT_NULL),
        (O.GT_EQ, INTEGER, -5_000_000_000, NOT_NULL),
        (O.LT_EQ, INTEGER, 2**31 - 1, NOT_NULL),
        (O.LT, INTEGER, 2**31 - 1, leaf(O.LT, 2**31 - 1)),
        (O.GT, INTEGER, 2**31 - 1, ALWAYS_FALSE),
        (O.GT_EQ, LONG, 2**63 - 1, leaf(O.GT_EQ, 2**63 - 1)),
        (O.LT, LONG, math.inf, NOT_NULL),
        (O.LT, LONG, -math.inf, ALWAYS_FALSE),
        (O.GT_EQ, LONG, -math.inf, NOT_NULL),
        (O.EQ, LONG, Decimal("1E+999999"), ALWAYS_FALSE),
        (O.GT, LONG, Decimal("-1E+999999"), NOT_NULL),
        (O.GT, LONG, Decimal("1E-999999"), leaf(O.GT_EQ, 0)),
        # long against DOUBLE beyond 2^53: the engine rounds the column
        (O.EQ, LONG, 9007199254740992.0,
         leaf(O.GT_EQ, 9007199254740992 - 2**31) & leaf(O.LT_EQ, 9007199254740992 + 2**31)),
        # decimals
        (O.EQ, D2, Decimal("1.5"), leaf(O.EQ, Decimal("1.50"))),
        (O.EQ, D2, Decimal("1.005"), ALWAYS_FALSE),
        (O.LT, D2, Decimal("1.005"), leaf(O.LT_EQ, Decimal("1.00"))),
        (O.GT, D2, Decimal("1.005"), leaf(O.GT_EQ, Decimal("1.01"))),
        (O.EQ, D2, 7, leaf(O.EQ, Decimal("7.00"))),
        (O.EQ, D2, 0.1, leaf(O.EQ, Decimal("0.10"))),
        (O.LT, D2, 0.1, leaf(O.LT_EQ, Decimal("0.10"))),
        (O.LT, D2, 10**20, NOT_NULL),
        (O.GT, D2, Decimal("99999999.99"), ALWAYS_FALSE),
        # floats
        (O.EQ, DOUBLE, Decimal("0.1"), leaf(O.EQ, 0.1)),
        (O.LT, DOUBLE, Decimal("0.1"), leaf(O.LT, 0.1)),
        (O.EQ, DOUBLE, 3, leaf(O.EQ, 3.0)),
        (O.EQ, FLOAT, 1.5, leaf(O.EQ, 1.5)),
        (O.EQ, FLOAT, Decimal("0.1"), leaf(O.EQ, 0.10000000149011612)),
        (O.LT, FLOAT, 0.1, leaf(O.LT_EQ, 0.09999999403953552)),
        (O.LT_EQ, FLOAT, 0.1, leaf(O.LT_EQ, 0.10000000149011612)),
        (O.GT, FLOAT, 0.1, leaf(O.GT_EQ, 0.10000000149011612)),
        (O.NOT_EQ, FLOAT, 0.1, NOT_NULL),
        (O.GT, FLOAT, 1e39, leaf(O.GT_EQ, math.inf)),
        (O.EQ, DOUBLE, -0.0, leaf(O.EQ, 0.0)),
        # NaN is equal to itself and the greatest
        (O.EQ, DOUBLE, math.nan, Leaf(O.IS_NAN, X)),
        (O.GT_EQ, FLOAT, math.nan, Leaf(O.IS_NAN, X)),
        (O.NOT_EQ, DOUBLE, math.nan, Leaf(O.NOT_NAN, X)),
        (O.LT, DOUBLE, math.nan, Leaf(O.NOT_NAN, X)),
        (O.LT_EQ, DOUBLE, math.nan, NOT_NULL),
        (O.GT, DOUBLE, math.nan, ALWAYS_FALSE),
        (O.LT, INTEGER, math.nan, NOT_NULL),
        (O.EQ, D2, math.nan, ALWAYS_FALSE),
        (O.EQ, D2, Decimal("NaN"), ALWAYS_FALSE),
        # dates and times
        (O.EQ, DATE, date(2020, 1, 1), leaf(O.EQ, DAY)),
        (O.LT, DATE, datetime(2020, 1, 1, 12), leaf(O.LT_EQ, DAY)),
        (O.LT, DATE, datetime(2020, 1, 1), leaf(O.LT, DAY)),
        (O.GT_EQ, DATE, datetime(2020, 1, 1, 12), leaf(O.GT_EQ, DAY + 1)),
        (O.EQ, DATE, datetime(2020, 1, 1, 12), ALWAYS_FALSE),
        (O.EQ, DATE, "2020-01-01", NOT_NULL),
        (O.EQ, TIMESTAMP, "2020-01-01 00:00:00", NOT_NULL),
        (O.EQ, TIME, "10:00:00", NOT_NULL),
        (O.GT_EQ, TIMESTAMP, date(2020, 1, 1), leaf(O.GT_EQ, MIDNIGHT)),
        (O.EQ, TIMESTAMPTZ, datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
         leaf(O.EQ, MIDNIGHT)),
        (O.EQ, TIMESTAMPTZ_NS, datetime(2020, 1, 1, tzinfo=UTC), leaf(O.EQ, MIDNIGHT * 1000)),
        (O.EQ, TIMESTAMP, NanoTimestamp(MIDNIGHT * 1000 + 1, zoned=False), ALWAYS_FALSE),
        (O.LT, TIMESTAMP, NanoTimestamp(MIDNIGHT * 1000 + 1, zoned=False),
         leaf(O.LT_EQ, MIDNIGHT)),
        (O.EQ, TIMESTAMP, EpochMicros(10**18, zoned=False), leaf(O.EQ, 10**18)),
        (O.LT, TIMESTAMP_NS, EpochMicros(10**18, zoned=False), NOT_NULL),
        (O.EQ, TIME, time(10, 0, 0, 1), leaf(O.EQ, 36_000_000_001)),
        (O.EQ, TIME, time(10, tzinfo=UTC), NOT_NULL),
        # the rest
        (O.EQ, BOOLEAN, True, leaf(O.EQ, True)),
        (O.EQ, BOOLEAN, 1, NOT_NULL),
        (O.EQ, INTEGER, True, NOT_NULL),
        (O.EQ, DOUBLE, True, NOT_NULL),
        (O.EQ, INTEGER, "5", leaf(O.EQ, 5)),
        (O.EQ, INTEGER, "5.0", NOT_NULL),
        (O.EQ, D2, "5", NOT_NULL),
        (O.LT, STRING, "b", leaf(O.LT, "b")),
        (O.EQ, STRING, "\ud800", NOT_NULL),
        (O.EQ, STRING, 5, NOT_NULL),
        (O.EQ, BINARY, bytearray(b"ab"), leaf(O.EQ, b"ab")),
        (O.EQ, FixedType(2), b"ab", leaf(O.EQ, b"ab")),
        (O.EQ, FixedType(2), b"abc", ALWAYS_FALSE),
        (O.NOT_EQ, FixedType(2), b"abc", NOT_NULL),
        (O.EQ, UUID_TYPE, UUID(int=5), leaf(O.EQ, UUID(int=5).bytes)),
        (O.EQ, UUID_TYPE, str(UUID(int=5)).upper(), leaf(O.EQ, UUID(int=5).bytes)),
        (O.LT, UUID_TYPE, UUID(int=5), NOT_NULL),
        (O.EQ, UUID_TYPE, "no uuid", NOT_NULL),
        (O.EQ, VARIANT, 5, NOT_NULL),
        (O.EQ, ListType(3, INTEGER), [5], NOT_NULL),
        (O.EQ, UNKNOWN, 5, ALWAYS_FALSE),
        (O.STARTS_WITH, STRING, "ab", leaf(O.STARTS_WITH, "ab")),
        (O.STARTS_WITH, STRING, "", NOT_NULL),
        (O.NOT_STARTS_WITH, STRING, "", ALWAYS_FALSE),
        (O.STARTS_WITH, INTEGER, "1", NOT_NULL),
    ],
)  # fmt: skip
def test_adaptation(operation, column, value, expected):
    assert compare(operation, X, column, value) == expected


@pytest.mark.parametrize("operation", [*ORDERED, O.STARTS_WITH, O.NOT_STARTS_WITH])
def test_null_literal_never_matches(operation):
    assert compare(operation, X, STRING, None) is ALWAYS_FALSE


def test_unary_operations_know_the_type():
    assert compare(O.IS_NAN, X, INTEGER, None) is ALWAYS_FALSE
    assert compare(O.NOT_NAN, X, INTEGER, None) == NOT_NULL
    assert compare(O.IS_NAN, X, FLOAT, None) == Leaf(O.IS_NAN, X)
    assert compare(O.IS_NULL, X, UNKNOWN, None) is ALWAYS_TRUE
    assert compare(O.NOT_NULL, X, UNKNOWN, None) is ALWAYS_FALSE


def test_in_adapts_each_literal_and_drops_what_cannot_match():
    assert compare(O.IN, X, INTEGER, [1, 2.0, None, 2, 7.5, 2**40]) == leaf(O.IN, frozenset({1, 2}))
    assert compare(O.IN, X, INTEGER, [1, None]) == leaf(O.EQ, 1)
    assert compare(O.IN, X, INTEGER, [None, 0.5]) is ALWAYS_FALSE
    assert compare(O.IN, X, INTEGER, []) is ALWAYS_FALSE
    assert compare(O.IN, X, DOUBLE, [1, math.nan]) == leaf(O.EQ, 1.0) | Leaf(O.IS_NAN, X)
    assert compare(O.IN, X, D2, [Decimal("1.0"), Decimal("1.00")]) == leaf(O.EQ, Decimal("1.00"))


def test_not_in_is_false_beside_null_and_needs_a_value_beside_what_cannot_match():
    assert compare(O.NOT_IN, X, INTEGER, [1, 2]) == leaf(O.NOT_IN, frozenset({1, 2}))
    assert compare(O.NOT_IN, X, INTEGER, [1, None]) is ALWAYS_FALSE
    assert compare(O.NOT_IN, X, INTEGER, [1, 2**40]) == leaf(O.NOT_EQ, 1)
    assert compare(O.NOT_IN, X, INTEGER, [2**40]) == NOT_NULL
    assert compare(O.NOT_IN, X, INTEGER, []) is ALWAYS_TRUE
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
NUMBERS = ["0", "1", "-1", "5", "16777216", "16777217", "-16777217", "9007199254740992",
           "9007199254740993", "2147483647", "-2147483648", "4611686018427387905"]  # fmt: skip
FRACTIONS = [*NUMBERS[:7], "0.1", "0.5", "1.5", "-2.25", "0.3", "123456.78", "-0.0"]
COLUMNS: list[tuple[IcebergType, str, list[str]]] = [
    (INTEGER, "INTEGER", [n for n in NUMBERS if abs(int(n)) < 2**31 or n == "-2147483648"]),
    (LONG, "BIGINT", NUMBERS),
    (DecimalType(9, 2), "DECIMAL(9, 2)", ["0", "0.10", "1.50", "-2.25", "0.30", "5", "123456.78"]),
    (DecimalType(38, 10), "DECIMAL(38, 10)", [*NUMBERS, "0.1", "0.3000000001", "1.5"]),
    (FLOAT, "FLOAT", [*FRACTIONS, "'inf'", "'nan'"]),
    (DOUBLE, "DOUBLE", [*FRACTIONS, "'inf'", "'-inf'", "'nan'"]),
]
EXACT_LITERALS = [*NUMBERS, "0.1", "0.5", "1.5", "-2.25", "0.3", "5.0", "16777217.0", "123456.78",
                  "5000000000", "-5000000000", "0.30000000000000004", "0.10000000149011612",
                  "0.1000000000000000055511151231257827", "9223372036854775807"]  # fmt: skip
DOUBLE_LITERALS = ["0e0", "1e0", "5e0", "16777216e0", "16777217e0", "9007199254740992e0", "0.1e0",
                   "0.5e0", "1.5e0", "-2.25e0", "0.3e0", "4611686018427387905e0", "1e39",
                   "0.10000000149011612e0"]  # fmt: skip


@pytest.mark.parametrize(("column", "sql_type", "values"), COLUMNS, ids=lambda each: str(each)[:20])
def test_rows_that_duckdb_finds_satisfy_the_predicate(column, sql_type, values):
    literals = [(text, Decimal(text)) for text in EXACT_LITERALS if "." in text]
    literals += [(text, int(text)) for text in EXACT_LITERALS if "." not in text]
    literals += [(text, float(text)) for text in DOUBLE_LITERALS]
    literals += [(f"CAST({text} AS FLOAT)", float32(text)) for text in ("0.1", "16777217", "1.5")]
    connection = duckdb.connect()
    rows = ", ".join(f"(CAST({value} AS {sql_type}))" for value in values)
    connection.execute(f"CREATE TABLE t AS SELECT x FROM (VALUES {rows}) AS v(x)")
    missed = []
    for text, literal in literals:
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


def float32(text: str) -> float:
    import struct

    value: float = struct.unpack("<f", struct.pack("<f", float(text)))[0]
    return value


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
