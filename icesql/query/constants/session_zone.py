"""Conversion of clocks and instants in the session's time zone, to ranges where ambiguous."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.config import time_zone
from icesql.query.constants.constant import DAY, HOUR, Constant, Kind

if TYPE_CHECKING:
    from icesql.context import QueryContext

_EPOCH_CLOCK: Final = datetime(1970, 1, 1)
# Daylight saving rules are extrapolated after these years, reconstructed before them.
_SURE_FROM: Final = 0
_SURE_TO: Final = 68 * 365 * DAY


def _is_utc(query: QueryContext) -> bool:
    return query.settings.timezone in ("UTC", "Etc/UTC")


def zone_slack(query: QueryContext, slack: int) -> int:
    """``slack`` unless the session's zone is UTC, where clock and instant are equal."""
    return 0 if _is_utc(query) else slack


def _offset(clock: int, query: QueryContext, fold: int) -> int:
    moment = (_EPOCH_CLOCK + timedelta(microseconds=clock)).replace(fold=fold)
    return _micros(moment.replace(tzinfo=time_zone(query.settings.timezone)))


def to_instant(local: Constant, query: QueryContext) -> Constant:
    """The instants that a TIMESTAMP may be in the session's zone. Raises OverflowError."""
    if _is_utc(query):
        return replace(local, kind=Kind.TIMESTAMPTZ)
    low = min(local.value - _offset(local.value, query, fold) for fold in (0, 1))
    high = max(local.greatest - _offset(local.greatest, query, fold) for fold in (0, 1))
    if not (low > _SURE_FROM and high < _SURE_TO and local.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMPTZ, low, None if low == high else high)


def to_local(instant: Constant, query: QueryContext) -> Constant:
    """The wall clock of the session's zone at an instant. Raises OverflowError."""
    if _is_utc(query):
        return replace(instant, kind=Kind.TIMESTAMP)
    low, high = (each + _offset_at(each, query) for each in (instant.value, instant.greatest))
    sure = instant.value > _SURE_FROM and instant.greatest < _SURE_TO
    if not (sure and instant.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMP, min(low, high), None if low == high else max(low, high))


def _offset_at(instant: int, query: QueryContext) -> int:
    moment = (_EPOCH_CLOCK + timedelta(microseconds=instant)).replace(tzinfo=UTC)
    return _micros(moment.astimezone(time_zone(query.settings.timezone)))


def _micros(moment: datetime) -> int:
    """The offset of an aware time from UTC in µs."""
    offset = moment.utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def offset_is_steady(instant: Constant, query: QueryContext) -> bool:
    """True if the zone keeps one offset for two days around an instant."""
    if _is_utc(query):
        return True
    low, high = instant.value - 2 * DAY, instant.greatest + 2 * DAY
    if not (low > _SURE_FROM and high < _SURE_TO) or high - low > 5 * DAY:
        return False
    steps = range(low, high + 3 * HOUR, 3 * HOUR)
    return len({_offset_at(each, query) for each in steps}) == 1
