"""The value of intervals with months: text and order as DuckDB has them."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import duckdb
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icesql
from icesql import Interval

MONTHS = st.integers(-400_000, 400_000) | st.sampled_from([0, 1, -1, 12, -12])
DAYS = st.integers(-20_000_000, 20_000_000) | st.sampled_from([0, 1, -1, 30])
MICROS = st.integers(-(1 << 52), 1 << 52) | st.sampled_from([0, 1, -1, 3_600_000_000, 500_000])
INTERVALS = st.builds(Interval, MONTHS, DAYS, MICROS)
LITTLE = st.builds(Interval, st.integers(-1, 1), st.sampled_from([-30, 0, 1, 30]),
                   st.sampled_from([0, 86_400_000_000, -86_400_000_000, 1]))  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as con:
        yield con


def sql(value: Interval) -> str:
    return (
        f"(to_months({value.months}) + to_days({value.days}) + "
        f"to_microseconds({value.microseconds}))"
    )


@settings(max_examples=200, deadline=None)
@given(value=INTERVALS)
def test_text_is_the_engines(engine, value):
    ((text,),) = engine.sql(f"SELECT {sql(value)}::VARCHAR").fetchall()
    assert str(value) == text


@settings(max_examples=200, deadline=None)
@given(left=INTERVALS | LITTLE, right=LITTLE | INTERVALS)
def test_order_is_the_engines(engine, left, right):
    wanted = engine.sql(
        f"SELECT l = r, l < r, l <= r, l > r, l >= r FROM (SELECT {sql(left)} l, {sql(right)} r)"
    ).fetchall()[0]
    assert (left == right, left < right, left <= right, left > right, left >= right) == wanted
    if wanted[0]:
        assert hash(left) == hash(right)


def test_it_compares_with_timedelta():
    assert Interval(0, 1, 500_000) == timedelta(days=1, seconds=0.5)
    assert timedelta(days=1) == Interval(0, 0, 86_400_000_000)
    assert hash(Interval(0, 1)) == hash(timedelta(days=1))
    assert hash(Interval(2**31)) == hash(Interval(2**31))
    values = [Interval(1), timedelta(days=29), Interval(0, 31), timedelta(days=-1)]
    assert sorted(values) == [timedelta(-1), timedelta(29), Interval(1), Interval(0, 31)]
    assert Interval(1) != "1 month"
    with pytest.raises(TypeError):
        Interval(1) < 5  # noqa: B015


def test_it_is_a_frozen_value():
    value = Interval(14, 3, -500_000)
    assert repr(value) == "Interval(months=14, days=3, microseconds=-500000)"
    assert repr(pickle.loads(pickle.dumps(value))) == repr(copy.deepcopy(value)) == repr(value)
    with pytest.raises(AttributeError):
        value.months = 1
    assert msgspec.structs.astuple(value) == (14, 3, -500_000)


@given(value=st.timedeltas())
def test_a_timedelta_becomes_days_and_time_of_one_sign(value):
    made = Interval.of(value)
    assert made == value
    assert made.days * made.microseconds >= 0
    assert abs(made.microseconds) < 86_400_000_000


def test_it_goes_back_as_a_parameter():
    with icesql.connect() as con:
        for value in (Interval(), Interval(1), Interval(-14, 3, 500_000), Interval(0, -2, 1)):
            ((text, found),) = con.execute("SELECT ?::VARCHAR, ?", [value, value]).fetchall()
            assert (text, found) == (str(value), value)
        day = con.execute("SELECT DATE '2026-01-31' + ?", [Interval(1)]).fetchall()
        assert str(day[0][0]) == "2026-02-28 00:00:00"
