"""The instant of a time travel: a constant time expression, in the forms of all dialects.

The engine computes expressions of texts and intervals. A time without zone is read in the session's
zone by Java's rule, which Spark and Trino follow: a time that daylight saving skips moves forward
by the gap, one that happens twice is the earlier.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from icesql.config import time_zone
from icesql.errors import SqlSyntaxError
from icesql.query.constants.constant import Constant, Interval, Kind, NotConstant
from icesql.query.constants.evaluated import evaluated
from icesql.query.constants.times import (
    clock_of_digits,
    interval_of,
    interval_of_span,
    interval_of_text,
    micros_of,
    shift,
)
from icesql.query.constants.volatile import clock_time, time_literal
from icesql.query.pushdown.computed.expression import Expression, expression_of_text, replaced
from icesql.query.pushdown.computed.sql import NotWritable, write
from icesql.sql.grammar import SPARK
from icesql.sql.time_travel import written_value

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.sql.time_travel import AtTime


# ------------------------------------------------------------------ relative times


_DAY: Final = r"(?i)\s*(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?)?\s*"
# '2 days ago', and '-48h' as in CockroachDB.
_AGO: Final = r"(?i)(?:(?P<span>.*\S)\s+ago|-\s*+(?P<back>\d++\s*+[a-z]++))"
EPOCH: Final = datetime(1970, 1, 1)


def relative_time(text: str, now: datetime, zone: tzinfo) -> datetime | date | None:
    """A time relative to ``now`` (aware), on the clock of ``zone``; None for other texts.

    A date is its midnight. Raises NotConstant for an invalid interval or clock.
    """
    if text.strip().lower() == "now":
        return now
    local = now.astimezone(zone).replace(tzinfo=None)
    if found := re.fullmatch(_DAY, text):
        day = local.date() - timedelta(days=found[1].lower() == "yesterday")
        if found[2] is None:
            return day
        try:
            return datetime(
                day.year, day.month, day.day, int(found[2]), int(found[3]), int(found[4] or 0)
            )
        except ValueError as error:
            raise NotConstant(f"'{text}' is not a time: {error}") from None
    if found := re.fullmatch(_AGO, text.strip()):
        span = interval_of_text(found["span"] or found["back"])
        back = Interval(-span.months, -span.days, 0)
        # Hours and smaller units are elapsed time, whatever clocks did; days follow the calendar.
        earlier = (now - timedelta(microseconds=span.micros)).astimezone(zone).replace(tzinfo=None)
        if not (span.months or span.days):
            return now.astimezone(UTC) - timedelta(microseconds=span.micros)
        micros = shift((earlier - EPOCH) // timedelta(microseconds=1), back)
        return EPOCH + timedelta(microseconds=micros)
    return None


# ------------------------------------------------------------------ texts of times


_TIME: Final = (
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"\s*(Z|z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z0-9_+\-/]*)?)?"
)
TIME_SHAPE: Final = "write it like '2026-01-31 12:00:00', '… Europe/Vienna' or '… +02:00'"


def read_time(text: str) -> datetime | date:
    """Parse a time: aware if the text names a zone, a date if it has no clock.

    Raises NotConstant.
    """
    found = re.fullmatch(_TIME, text.strip())
    if not found:
        if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text):
            raise NotConstant(
                f"ambiguous timestamp '{text}'; use to_timestamp({text}) for seconds or "
                f"epoch_ms({text}) for milliseconds"
            )
        raise NotConstant(f"'{text}' is not a time; {TIME_SHAPE}")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        if hour is None:
            return date(int(year), int(month), int(day))
        # Digits below a microsecond cannot select another snapshot: commit times are milliseconds.
        us = int(((fraction or "") + "000000")[:6])
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0), us
        )
    except ValueError as error:
        raise NotConstant(f"'{text}' is not a time: {error}") from None
    return in_zone(moment, zone_named(zone)) if zone else moment


def zone_named(text: str) -> tzinfo:
    """Parse a zone: Z, +02:00, UTC or Europe/Vienna. Raises NotConstant."""
    if text in ("Z", "z"):
        return UTC
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?:?(\d{2})?", text)
    if found:
        shift = timedelta(
            hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0)
        )
        if shift >= timedelta(hours=24):
            raise NotConstant(f"'{text}' is not an offset from UTC")
        return timezone(-shift if found[1] == "-" else shift)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError):
        if text.upper() in ("UTC", "GMT"):
            return UTC
        raise NotConstant(f"'{text}' is not a time zone such as Europe/Vienna or +02:00") from None


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The instant of a wall clock in a zone."""
    # fold=0 is Java's rule for gaps and overlaps.
    return moment.replace(tzinfo=zone, fold=0).astimezone(UTC)


# ------------------------------------------------------------------ instants


# Oracle's names for the current time.
_CLOCKS: Final = ("systimestamp", "sysdate", "systimestamp()")
_GREATEST: Final = 10**30
_EPOCHS: Final = {"timestamp_seconds": 0, "timestamp_millis": 3, "timestamp_micros": 6}
# An aware datetime is an instant, a naive one a wall clock, a date its midnight.
Value = datetime | date | Interval | Decimal | str


def fold_instant(travel: AtTime, query: QueryContext) -> int:
    """Microseconds since the epoch in UTC of the constant time expression of a travel clause.

    Accepts literals, casts, now() and similar calls, intervals, arithmetic, AT TIME ZONE,
    date_trunc and to_timestamp. Raises SqlSyntaxError for everything that is not a constant time,
    and for a bare number unless the dialect defines that it counts seconds.
    """
    node, zone = travel.expression, time_zone(query.settings.timezone)
    if node.meta.get("dialect") == SPARK:
        from icesql.query.dialects.translate import translated_time

        node = translated_time(node, query.settings.timezone)
    try:
        value = _value(node, query)
        if isinstance(value, Decimal):
            if not travel.numbers_are_seconds:
                raise NotConstant(
                    f"ambiguous timestamp {node.sql()}; use to_timestamp({node.sql()}) for seconds "
                    f"or epoch_ms({node.sql()}) for milliseconds"
                )
            value = since_epoch(value, 0)
        if isinstance(value, str):
            value = (
                relative_time(value, query.now, zone) or clock_of_digits(value) or read_time(value)
            )
        if isinstance(value, Interval):
            raise NotConstant(f"{node.sql()} is an interval, not a point in time")
        if not isinstance(value, datetime):
            value = _midnight(value)
        return micros_of(in_zone(value, zone) if value.tzinfo is None else value)
    except NotConstant as reason:
        problem = str(reason)
        if node is not travel.expression:  # its text is translated, not the user's
            problem = f"{travel.text} is not a constant time that can be folded; {TIME_SHAPE}"
        raise SqlSyntaxError(problem, offset=travel.offset) from None
    except (OverflowError, ValueError, InvalidOperation) as error:
        problem = f"{node.sql()} lies outside the years 1 to 9999"
        raise SqlSyntaxError(problem, offset=travel.offset) from error


def _value(node: exp.Expr, query: QueryContext) -> Value:
    match node:
        case exp.Paren():
            return _value(node.this, query)
        case exp.Literal():
            return str(node.this) if node.is_string else Decimal(str(node.this))
        case _:
            found = read(node, query)
            if found is not None:
                return found

            return computed(node, query)


def read(node: exp.Expr, query: QueryContext) -> datetime | date | Interval | None:
    """The value of an expression that is evaluated here; None for all others."""
    now = clock_time(node, query)
    if now is not None:
        return now
    match node:
        case exp.Cast(this=exp.Literal(is_string=True) as text, to=to):
            if to.is_type(exp.DataType.Type.INTERVAL):
                return interval_of_text(text.name)
            if not to.is_type(*exp.DataType.TEMPORAL_TYPES):
                return None
            # The zone of the type does not decide: the zone in a text takes precedence, and
            # dialects read TIMESTAMP '…' as types with and without a zone.
            moment = read_time(text.name)
            is_day = to.is_type(exp.DataType.Type.DATE, exp.DataType.Type.DATE32)
            if not (is_day and isinstance(moment, datetime)):
                return moment
            if moment.tzinfo is not None:
                moment = moment.astimezone(time_zone(query.settings.timezone))
            return moment.date()
        case exp.Interval(this=amount, unit=unit) if amount is not None:
            if isinstance(unit, exp.IntervalSpan):
                return interval_of_span(amount.name, unit.this.name, unit.expression.name)
            if unit is None and amount.is_string:
                return interval_of_text(amount.name)
            return None if unit is None else interval_of(_number(amount, query), unit.name)
        case exp.UnixToTime():
            scale = node.args.get("scale")
            return since_epoch(
                _number(node.this, query), int(_number(scale, query)) if scale else 0
            )
        case exp.Anonymous(expressions=[number]) if node.name.lower() in _EPOCHS:
            return since_epoch(_number(number, query), _EPOCHS[node.name.lower()])
        case exp.Anonymous(expressions=[number]) if node.name.lower().startswith("to_"):
            return interval_of(_number(number, query), node.name[3:])
        case exp.ToDays():
            return interval_of(_number(node.this, query), "day")
        case (
            exp.CurrentDate()
            | exp.CurrentTimestamp()
            | exp.Localtimestamp()
            | exp.CurrentDatetime()
        ):
            zone = time_zone(query.settings.timezone)
            if isinstance(node.this, exp.Literal) and node.this.is_string:
                zone = zone_named(node.this.name)
            local = query.now.astimezone(zone).replace(tzinfo=None)
            return local.date() if isinstance(node, exp.CurrentDate) else local
        case exp.Systimestamp() | exp.Column() | exp.Anonymous():
            return query.now if node.sql().lower() in _CLOCKS else None
        case exp.Literal(is_string=True):
            try:
                day = read_time(node.name)
            except NotConstant:
                if isinstance(node.parent, exp.Add | exp.Sub):
                    raise
                return None
            return day if isinstance(day, datetime) else _midnight(day)
        case _:
            return None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _number(node: exp.Expr, query: QueryContext) -> Decimal:
    value = _value(node, query)
    try:
        if isinstance(value, str | Decimal):
            return _bounded(Decimal(value))
    except InvalidOperation:
        pass
    raise NotConstant(f"{written_value(node)} is not a number; {TIME_SHAPE}")


def _bounded(number: Decimal) -> Decimal:
    """The number, if it is not too large: 1e999999 as an integer takes minutes."""
    if number.copy_abs() > _GREATEST:
        raise OverflowError
    return number


def since_epoch(number: Decimal, digits: int) -> datetime:
    """The instant ``number`` parts of a second, of 10 ** -digits each, after 1970."""
    micros = (_bounded(number) * 10 ** (6 - digits)).to_integral_value(rounding="ROUND_FLOOR")
    return EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=int(micros))


# ------------------------------------------------------------------ computed times


# Nodes that the engine may evaluate.
_COMPUTED: Final = (
    exp.Paren, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.DataType,
    exp.AtTimeZone, exp.DateAdd, exp.TimestampAdd,
    exp.DatetimeAdd, exp.TsOrDsAdd, exp.DateSub, exp.TimestampSub, exp.DatetimeSub, exp.Date,
    exp.TsOrDsToDate, exp.Timestamp, exp.TsOrDsToTimestamp, exp.Interval, exp.Var,
)  # fmt: skip


def computed(node: exp.Expr, query: QueryContext) -> Value:
    """The engine's value of an expression of times and intervals. Raises NotConstant."""
    if node.find(exp.Query):
        raise NotConstant("a subquery cannot say which snapshot to read; write a constant")
    if isinstance(node, exp.Column | exp.Identifier):
        raise NotConstant(
            f"{node.sql()} is a name; a time to travel to is a constant such as "
            "TIMESTAMP '2026-01-31 12:00:00' or now() - INTERVAL 1 DAY"
        )

    def as_literal(part: exp.Expr) -> exp.Expr:
        if part.arg_key == "zone" and isinstance(part, exp.Literal):
            # The engine knows offsets only by these names.
            return exp.Literal.string(re.sub("^UTC(?=[+-])", "GMT", str(zone_named(part.name))))
        # The call that adds an interval writes the interval itself.
        in_call = isinstance(part, exp.Interval) and isinstance(part.parent, exp.TimeUnit)
        value = None if in_call else read(part, query)
        return part if value is None else time_literal(value)

    left = node.transform(as_literal)
    if all(map(_is_computed, left.walk())):
        with suppress(NotWritable):
            made = replaced(expression_of_text(left), _as_it_is)
            found = evaluated({"": write(made, lambda _: "NULL")}, query).get("")
            value = None if found is None else _given(found)
            # A number of days between two dates is not a time.
            has_date = any(each.value == "DATE" for each in made.walk())
            if value is not None and not (has_date and isinstance(value, Decimal)):
                return value
    raise NotConstant(
        f"{written_value(node)} is not a constant time that can be folded, or lies outside the "
        f"years 1 to 9999; {TIME_SHAPE}"
    )


def _is_computed(part: exp.Expr) -> bool:
    """Whether the engine may evaluate a part of an expression."""
    match part:
        case exp.DateTrunc(unit=unit) | exp.TimestampTrunc(unit=unit):
            return unit is None or unit.name.lower() not in ("decade", "century", "millennium")
        case exp.Add(this=exp.Literal(is_string=False), expression=exp.Cast(to=to)):
            return not to.is_type(exp.DataType.Type.DATE)
        case _:
            return isinstance(part, _COMPUTED)


def _given(found: Constant) -> Value | None:
    match found.kind:
        case Kind.STRING | Kind.INTERVAL:
            value: Value = found.value
            return value
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return Decimal(found.value)
        case Kind.DATE:
            return EPOCH + timedelta(days=found.value)
        case Kind.TIMESTAMP:
            return EPOCH + timedelta(microseconds=found.value)
        case Kind.TIMESTAMPTZ:
            return since_epoch(Decimal(found.value), 6)
        case _:
            return None


def _as_it_is(each: Expression) -> Expression | None:
    """Remove a cast to a time with or without a zone that changes neither."""
    if each.name not in ("cast", "try_cast") or not each.value.startswith("TIMESTAMP"):
        return None
    inner = replaced(each.arguments[0], _as_it_is)
    if inner.name == "literal":
        return each
    return Expression("cast", (inner,), "TIMESTAMP") if inner.value == "DATE" else inner
