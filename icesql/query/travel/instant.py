"""Fold a constant time expression to the instant of a time travel.

Texts and intervals are read here, in the forms of all dialects; the engine computes expressions
of them. A time without zone is read in the session's zone by Java's rule, which Spark and
Trino follow: a time that daylight saving skips moves forward by the gap, one that happens twice is
the earlier.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.config import time_zone
from icesql.errors import SqlSyntaxError
from icesql.query.constants.constant import Interval, NotConstant
from icesql.query.constants.current_time import clock_time
from icesql.query.constants.relative_time import EPOCH, relative_time
from icesql.query.constants.time_text import TIME_SHAPE, in_zone, read_time, zone_named
from icesql.query.constants.time_units import (
    clock_of_digits,
    interval_of,
    interval_of_span,
    interval_of_text,
    micros_of,
)
from icesql.sql.function_table import SPARK
from icesql.sql.time_travel import written_value

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.sql.time_travel import AtTime

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
            from icesql.query.travel.computed import computed

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
