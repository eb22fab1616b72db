"""Transforms: the vectors of the spec's Appendix B and of Java's TestBucketing, TestDates, …"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.bounds import minimal_twos_complement, scaled, unscaled
from icesql.iceberg.calendar import civil_from_days, days_from_civil
from icesql.iceberg.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Truncate,
    UnknownTransform,
    Void,
    bucket_hash,
    parse_transform,
)
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    ListType,
)
from tests.iceberg.text_forms import read_type, read_value
from tests.tables import read_table

EPOCH = datetime(1970, 1, 1)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(("source", "value", "expected"), read_table(__file__, "bucket_hashes.tsv"))
def test_bucket_hashes_are_those_of_the_spec(source, value, expected):
    kind = read_type(source)
    assert bucket_hash(read_value(kind, value), kind) == int(expected)


@pytest.mark.parametrize("length", range(9))
def test_hash_reads_every_tail_length(length):
    hashes = {
        bucket_hash(data, BINARY) for data in (bytes(range(length)), bytes(range(1, length + 1)))
    }
    assert len(hashes) == (1 if length == 0 else 2)


def test_bucket_refuses_floating_sources():
    assert not Bucket(4).accepts(DOUBLE)
    assert not Bucket(4).accepts(BOOLEAN)
    with pytest.raises(ValueError):
        Bucket(4).apply(1.0, DOUBLE)


@pytest.mark.parametrize(
    ("text", "source", "value", "expected"), read_table(__file__, "transforms.tsv")
)
def test_transforms_give_the_values_of_partitions(text, source, value, expected):
    kind, transform = read_type(source), parse_transform(text)
    found = transform.apply(read_value(kind, value), kind)
    assert found == read_value(transform.result_type(kind), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-12-01T10:12:55.038194", (47, 575, 17501, 420034)),
        ("1970-01-01T00:00:00", (0, 0, 0, 0)),
        ("1969-12-31T23:59:58.999999", (-1, -1, -1, -1)),
        ("1969-01-01T00:00:00", (-1, -12, -365, -8760)),
        ("1968-12-31T23:59:59", (-2, -13, -366, -8761)),
    ],
)
def test_time_transforms_of_timestamps_round_down(text, expected):
    units = [TimeTransform(unit) for unit in ("year", "month", "day", "hour")]
    value = micros(text)
    assert tuple(unit.apply(value, TIMESTAMP) for unit in units) == expected
    assert tuple(unit.apply(value, TIMESTAMPTZ) for unit in units) == expected
    assert tuple(unit.apply(value * 1000, TIMESTAMP_NS) for unit in units) == expected


def test_dates_have_no_hours():
    assert not TimeTransform("hour").accepts(DATE)


@pytest.mark.parametrize(
    ("text", "source", "value", "expected"), read_table(__file__, "human_values.tsv")
)
def test_human_strings(text, source, value, expected):
    kind, transform = read_type(source), parse_transform(text)
    assert transform.human(read_value(transform.result_type(kind), value), kind) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("identity", Identity()),
        ("BUCKET[16]", Bucket(16)),
        ("Truncate[4]", Truncate(4)),
        ("Day", TimeTransform("day")),
        ("VOID", Void()),
        ("zorder[3]", UnknownTransform("zorder[3]")),
        ("bucket[0]", UnknownTransform("bucket[0]")),
        ("days", UnknownTransform("days")),
    ],
)
def test_names_parse_in_any_case_and_unknown_ones_are_kept(text, expected):
    assert parse_transform(text) == expected


@pytest.mark.parametrize("text", ["identity", "bucket[16]", "truncate[4]", "hour", "zorder[3]"])
def test_text_round_trips(text):
    assert str(parse_transform(text)) == text


@pytest.mark.parametrize(
    ("text", "source", "result"),
    [
        ("bucket[4]", "string", "int"),
        ("day", "timestamp", "date"),
        ("hour", "unknown", "int"),
        ("truncate[2]", "decimal(9, 2)", "decimal(9, 2)"),
        ("identity", "float", "float"),
        ("void", "string", "string"),
        ("x", "string", "unknown"),
    ],
)
def test_result_types(text, source, result):
    assert parse_transform(text).result_type(read_type(source)) == read_type(result)


def test_order_is_kept_by_all_but_bucket_void_and_unknown():
    keeps = {text: parse_transform(text).preserves_order for text in
             ("identity", "truncate[2]", "year", "hour", "bucket[2]", "void", "x")}  # fmt: skip
    assert keeps == {"identity": True, "truncate[2]": True, "year": True, "hour": True,
                     "bucket[2]": False, "void": False, "x": False}  # fmt: skip


def test_identity_takes_no_nested_source():
    assert not Identity().accepts(ListType(3, INTEGER))


def test_unknown_transform_cannot_be_computed():
    with pytest.raises(ValueError):
        UnknownTransform("zorder").apply(1, INTEGER)


@given(st.dates())
def test_civil_calendar_agrees_with_python(day):
    number = (day - EPOCH.date()).days
    assert civil_from_days(number) == (day.year, day.month, day.day)
    assert days_from_civil(day.year, day.month, day.day) == number


@given(st.integers(-(2**31), 2**31 - 1))
def test_civil_calendar_round_trips_for_every_day_number(number):
    assert days_from_civil(*civil_from_days(number)) == number


@given(st.integers(-(10**38), 10**38), st.integers(0, 38))
def test_scaled_and_unscaled_are_inverse(number, scale):
    assert unscaled(scaled(number, scale), scale) == number


def test_unscaled_refuses_digits_that_do_not_fit():
    with pytest.raises(ValueError):
        unscaled(Decimal("1.005"), 2)
    assert unscaled(Decimal("1.500"), 1) == 15
    assert unscaled(Decimal("1E+3"), 2) == 100_000


@given(st.integers(-(2**127), 2**127))
def test_minimal_bytes_are_minimal(number):
    data = minimal_twos_complement(number)
    assert int.from_bytes(data, "big", signed=True) == number
    if len(data) > 1:
        with pytest.raises(OverflowError):
            number.to_bytes(len(data) - 1, "big", signed=True)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**31 - 1))
@settings(max_examples=50)
def test_truncated_number_is_the_multiple_below(value, width):
    truncated = Truncate(width).apply(value, LONG)
    assert truncated % width == 0
    assert truncated <= value < truncated + width
