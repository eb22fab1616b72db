"""Transforms: the vectors of the spec's Appendix B and of Java's TestBucketing, TestDates, …"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.bucket_hash import bucket_hash, minimal_twos_complement
from icesql.iceberg.calendar import civil_from_days, days_from_civil
from icesql.iceberg.decimals import scaled, unscaled
from icesql.iceberg.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Truncate,
    UnknownTransform,
    Void,
    parse_transform,
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
    DecimalType,
    FixedType,
    ListType,
)
from icesql.iceberg.types import UUID as UUID_TYPE

EPOCH = datetime(1970, 1, 1)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def days(text: str) -> int:
    return (date.fromisoformat(text) - EPOCH.date()).days


@pytest.mark.parametrize(
    ("value", "source", "expected"),
    [
        (34, INTEGER, 2017239379),
        (34, LONG, 2017239379),
        (Decimal("14.20"), DecimalType(9, 2), -500754589),
        (days("2017-11-16"), DATE, -653330422),
        ((22 * 3600 + 31 * 60 + 8) * 1_000_000, TIME, -662762989),
        (micros("2017-11-16T22:31:08"), TIMESTAMP, -2047944441),
        (micros("2017-11-16T22:31:08"), TIMESTAMPTZ, -2047944441),
        (micros("2017-11-16T22:31:08.000001"), TIMESTAMP, -1207196810),
        (micros("2017-11-16T22:31:08.000001") * 1000 + 999, TIMESTAMP_NS, -1207196810),
        ("iceberg", STRING, 1210000089),
        (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, UUID_TYPE, 1488055340),
        (bytes([0, 1, 2, 3]), BINARY, -188683207),
        (bytes([0, 1, 2, 3]), FixedType(4), -188683207),
    ],
)
def test_bucket_hashes_are_those_of_the_spec(value, source, expected):
    assert bucket_hash(value, source) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((1).to_bytes(8, "little"), 1392991556),
        (bytes.fromhex("000000000000f03f"), -142385009),  # double 1.0, little endian
        (bytes(8), 1669671676),  # double 0.0
        (b"", 0),
    ],
)
def test_murmur3_of_raw_bytes(data, expected):
    assert bucket_hash(data, BINARY) == expected


@pytest.mark.parametrize("length", range(9))
def test_hash_reads_every_tail_length(length):
    hashes = {
        bucket_hash(data, BINARY) for data in (bytes(range(length)), bytes(range(1, length + 1)))
    }
    assert len(hashes) == (1 if length == 0 else 2)


def test_bucket_of_a_hash_with_sign_bit_is_not_negative():
    assert Bucket(16).apply(Decimal("14.20"), DecimalType(9, 2)) == (-500754589 & 0x7FFFFFFF) % 16


@pytest.mark.parametrize(("value", "source"), [(0, INTEGER), ("", STRING), (b"", BINARY)])
def test_falsy_values_have_a_bucket(value, source):
    assert Bucket(16).apply(value, source) is not None
    assert Truncate(3).apply(value, source) == value


def test_nanosecond_bucket_floors_before_the_epoch():
    assert Bucket(1000).apply(-1, TIMESTAMPTZ_NS) == Bucket(1000).apply(-1, TIMESTAMPTZ)


def test_bucket_refuses_floating_sources():
    assert not Bucket(4).accepts(DOUBLE)
    assert not Bucket(4).accepts(BOOLEAN)
    with pytest.raises(ValueError):
        Bucket(4).apply(1.0, DOUBLE)


@pytest.mark.parametrize(
    ("width", "value", "source", "expected"),
    [
        (10, 0, INTEGER, 0),
        (10, 1, INTEGER, 0),
        (10, 10, LONG, 10),
        (10, -1, INTEGER, -10),
        (10, -10, INTEGER, -10),
        (10, -12, LONG, -20),
        (50, Decimal("10.65"), DecimalType(9, 2), Decimal("10.50")),
        (10, Decimal("12.34"), DecimalType(9, 2), Decimal("12.30")),
        (10, Decimal("0.05"), DecimalType(9, 2), Decimal("0.00")),
        (10, Decimal("-0.05"), DecimalType(9, 2), Decimal("-0.10")),
        (3, "abcdefg", STRING, "abc"),
        (5, "abc", STRING, "abc"),
        (2, "🙂🙃🙂", STRING, "🙂🙃"),  # code points, not UTF-16 units
        (3, b"\x00\x01\x02\x03", BINARY, b"\x00\x01\x02"),
    ],
)
def test_truncate(width, value, source, expected):
    assert Truncate(width).apply(value, source) == expected


def test_truncate_is_exact_for_38_digits():
    value = Decimal("99999999999999999999999999999999999.987")
    truncated = Truncate(10).apply(value, DecimalType(38, 3))
    assert truncated == Decimal("99999999999999999999999999999999999.980")


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2017-12-01", (47, 575, 17501)), ("1969-12-31", (-1, -1, -1)), ("1970-01-01", (0, 0, 0))],
)
def test_time_transforms_of_dates(text, expected):
    units = [TimeTransform(unit) for unit in ("year", "month", "day")]
    assert tuple(unit.apply(days(text), DATE) for unit in units) == expected
    assert not TimeTransform("hour").accepts(DATE)


@pytest.mark.parametrize("text", ["identity", "void", "bucket[3]", "truncate[3]", "month"])
def test_null_stays_null(text):
    source = DATE if text == "month" else STRING
    assert parse_transform(text).apply(None, source) is None


@pytest.mark.parametrize(
    ("text", "value", "source", "expected"),
    [
        ("year", 47, DATE, "2017"),
        ("year", -1, TIMESTAMP, "1969"),
        ("month", 575, DATE, "2017-12"),
        ("month", -1, DATE, "1969-12"),
        ("day", 17501, TIMESTAMP, "2017-12-01"),
        ("day", -1, DATE, "1969-12-31"),
        ("hour", 420034, TIMESTAMP, "2017-12-01-10"),
        ("hour", -1, TIMESTAMP, "1969-12-31-23"),
        ("identity", 17501, DATE, "2017-12-01"),
        ("identity", 36_775_038_194, TIME, "10:12:55.038194"),
        ("identity", 0, TIME, "00:00"),
        ("identity", 36_720_000_000, TIME, "10:12"),
        ("identity", 36_775_500_000, TIME, "10:12:55.500"),
        ("identity", float("-inf"), DOUBLE, "-Infinity"),
        ("identity", float("nan"), DOUBLE, "NaN"),
        ("identity", 1e7, DOUBLE, "1.0E7"),
        ("identity", -1234567.5, DOUBLE, "-1234567.5"),
        ("identity", 0.00012, DOUBLE, "1.2E-4"),
        ("identity", 0.10000000149011612, FLOAT, "0.1"),
        ("identity", 3.4028234663852886e38, FLOAT, "3.4028235E38"),
        ("identity", -0.0, DOUBLE, "-0.0"),
        ("identity", micros("2017-12-01T10:12:55.038194"), TIMESTAMPTZ,
         "2017-12-01T10:12:55.038194+00:00"),
        ("identity", micros("2017-12-01T10:12:55") * 1000 + 1, TIMESTAMP_NS,
         "2017-12-01T10:12:55.000000001"),
        ("identity", -1234567890000, LONG, "-1234567890000"),
        ("identity", "a/b/c=d", STRING, "a/b/c=d"),
        ("identity", Decimal("-1.50"), DecimalType(9, 2), "-1.50"),
        ("identity", True, BOOLEAN, "true"),
        ("identity", bytes([1, 2, 3]), BINARY, "AQID"),
        ("identity", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, UUID_TYPE,
         "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("bucket[4]", 3, STRING, "3"),
        ("truncate[2]", "ab", STRING, "ab"),
        ("truncate[2]", b"\x01\x02", BINARY, "AQI="),
        ("void", None, STRING, "null"),
        ("day", None, DATE, "null"),
    ],
)  # fmt: skip
def test_human_strings(text, value, source, expected):
    assert parse_transform(text).human(value, source) == expected


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


def test_result_types():
    assert Bucket(4).result_type(STRING) == INTEGER
    assert TimeTransform("day").result_type(TIMESTAMP) == DATE
    assert TimeTransform("hour").result_type(UNKNOWN) == INTEGER
    assert Truncate(2).result_type(DecimalType(9, 2)) == DecimalType(9, 2)
    assert Identity().result_type(FLOAT) == FLOAT
    assert Void().result_type(STRING) == STRING
    assert UnknownTransform("x").result_type(STRING) == UNKNOWN


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
