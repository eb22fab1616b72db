"""Which texts are read as times for a column, and as which value."""

from __future__ import annotations

from datetime import date, time
from typing import Any

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.expressions.literals import NanoTimestamp
from icesql.query.constants.canonical_times import read_for

MICROS, NANOS = t.TimestampType(), t.TimestampNanoType()
ZONED, ZONED_NANOS = t.TimestamptzType(), t.TimestamptzNanoType()
DATE, TIME = t.DateType(), t.TimeType()
MIDNIGHT = 1_577_836_800 * 10**9  # 2020-01-01


def clock(nanos: int) -> NanoTimestamp:
    return NanoTimestamp(MIDNIGHT + nanos, zoned=False)


def instant(nanos: int) -> NanoTimestamp:
    return NanoTimestamp(MIDNIGHT + nanos, zoned=True)


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        (DATE, "2020-01-01", date(2020, 1, 1)),
        (MICROS, "2020-01-01", date(2020, 1, 1)),
        (MICROS, "2020-01-01 00:00:00.5", clock(500_000_000)),
        (NANOS, "2020-01-01T00:00:00.000000001", clock(1)),
        (ZONED, "2020-01-01T01:00:00+01:00", instant(0)),
        (ZONED, "2020-01-01 00:00:00-00:30", instant(1_800 * 10**9)),
        (ZONED_NANOS, "2020-01-01 00:00:00.000000001Z", instant(1)),
        (MICROS, "2020-01-01 00:00:00+01", instant(-3_600 * 10**9)),
        (TIME, "10:00:00.000001", time(10, 0, 0, 1)),
    ],
)
def test_canonical_texts_are_values(column: t.IcebergType, text: str, expected: Any) -> None:
    assert read_for(column, text) == expected


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (DATE, "2020-01-01 12:00:00"),
        (DATE, "2020-1-1"),
        (DATE, "2021-02-29"),
        (DATE, "1 January 2020"),
        (MICROS, "2020-01-01 00:00:00.0000005"),
        (NANOS, "2020-01-01 00:00:00.0000000005"),
        (MICROS, "2020-01-01 25:00:00"),
        (ZONED, "2020-01-01 00:00:00+24:00"),
        (ZONED, "2020-01-01 00:00:00 Europe/Vienna"),
        (TIME, "10:00"),
        (TIME, "24:00:00"),
        (TIME, "10:00:00.0000001"),
        (t.StringType(), "2020-01-01"),
        (t.IntegerType(), "1"),
    ],
)
def test_other_texts_stay_texts(column: t.IcebergType, text: str) -> None:
    assert read_for(column, text) is text
