"""Timestamp: a datetime that keeps nanoseconds in all operations of datetime."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from icesql.engine.values import Timestamp

VIENNA = ZoneInfo("Europe/Vienna")
EPOCH_NS = 1_577_836_800_123_456_789


def stamp(zone=UTC):
    return Timestamp.from_nanoseconds(EPOCH_NS, zone)


def test_another_zone_is_the_same_instant_to_the_nanosecond():
    for zone in (VIENNA, timezone(timedelta(hours=-5)), UTC, ZoneInfo("UTC")):
        moved = stamp().astimezone(zone)
        assert type(moved) is Timestamp
        assert moved.nanosecond == 789
        assert moved.tzinfo is zone
        assert moved == stamp()
        assert hash(moved) == hash(stamp())
    assert str(stamp().astimezone(VIENNA)) == "2020-01-01 01:00:00.123456789+01:00"
    assert stamp().astimezone().nanosecond == 789


def test_replace_keeps_what_it_is_not_asked_to_change():
    changed = stamp().replace(hour=1, tzinfo=None)
    assert str(changed) == "2020-01-01 01:00:00.123456789"
    assert type(changed) is Timestamp
    assert stamp().replace(nanosecond=5).nanosecond == 5
    assert stamp().replace(2021, 2).isoformat() == "2021-02-01T00:00:00.123456789+00:00"
    assert stamp().replace(fold=1).fold == 1
    with pytest.raises(ValueError, match="nanosecond"):
        stamp().replace(nanosecond=1000)


def test_sums_keep_nanoseconds_and_differences_round_down():
    day = timedelta(days=1)
    for moved in (stamp() + day, day + stamp(), stamp() - -day):
        assert str(moved) == "2020-01-02 00:00:00.123456789+00:00"
    assert stamp() - (stamp() - day) == day
    whole = stamp().replace(nanosecond=0)
    assert stamp() - whole == timedelta(0)
    assert whole - stamp() == timedelta(microseconds=-1)
    plain = datetime(2020, 1, 1, tzinfo=UTC)
    assert stamp() - plain == timedelta(microseconds=123_456)
    assert plain - stamp() == timedelta(microseconds=-123_457)
    with pytest.raises(TypeError):
        stamp() + 1
    with pytest.raises(TypeError):
        1 - stamp()


def test_copies_and_pickles_are_equal():
    for zone in (UTC, VIENNA, None):
        for made in (copy.copy(stamp(zone)), copy.deepcopy(stamp(zone))):
            assert (made, made.nanosecond, made.tzinfo) == (stamp(zone), 789, zone)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            made = pickle.loads(pickle.dumps(stamp(zone), protocol))
            assert (made, made.nanosecond, type(made)) == (stamp(zone), 789, Timestamp)


def test_iso_text_comes_back():
    for zone in (UTC, VIENNA, None):
        assert Timestamp.fromisoformat(stamp(zone).isoformat()) == stamp(zone)
        assert Timestamp.fromisoformat(str(stamp(zone))).nanosecond == 789
    assert Timestamp.fromisoformat("2020-01-01T00:00:00.1234567Z").nanosecond == 700
    assert Timestamp.fromisoformat("2020-01-01").nanosecond == 0
    assert stamp().isoformat(timespec="milliseconds") == "2020-01-01T00:00:00.123+00:00"
    assert f"{stamp():%Y %f}" == "2020 123456"


def test_parts_are_those_of_a_datetime():
    made = Timestamp.combine(date(2020, 1, 1), time(1, 2, 3, 4))
    assert (made.nanosecond, made.microsecond) == (0, 4)
    assert made == datetime(2020, 1, 1, 1, 2, 3, 4)
    assert stamp().time() == time(0, 0, 0, 123_456)


def test_order_is_by_nanoseconds():
    same_microsecond = datetime(2020, 1, 1, 0, 0, 0, 123_456, UTC)
    assert stamp() != same_microsecond
    assert same_microsecond != stamp()
    assert same_microsecond < stamp()
    assert stamp() > same_microsecond
    assert stamp() >= stamp().replace(nanosecond=788)
    assert stamp().astimezone(VIENNA) <= stamp()
    assert len({stamp(), stamp().astimezone(VIENNA), same_microsecond}) == 2
