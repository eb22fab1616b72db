"""A constant time expression becomes the instant to travel to.

Texts and spans of time are read here, in the spellings of all dialects; the engine computes what
is made of them. A time without zone is read in the session's zone by Java's rule, which Spark and
Trino follow: a time that daylight saving skips moves forward by the gap, one that happens twice is
the earlier.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.config import time_zone
from icesql.errors import SqlSyntaxError
from icesql.query.constants.asked import asked
from icesql.query.constants.constant import Constant, Interval, Kind, NotConstant
from icesql.query.constants.current_time import clock_time, time_literal
from icesql.query.constants.digits import clock_of_digits, micros_of
from icesql.query.constants.relative_time import relative_time
from icesql.query.constants.time_text import TIME_SHAPE, in_zone, read_time, zone_named
from icesql.query.constants.time_units import interval_of, interval_of_span, interval_of_text
from icesql.query.pushdown.computed.expression import Expression, replaced
from icesql.query.pushdown.computed.reading import expression_of_text
from icesql.query.pushdown.computed.sql import NotWritable, write
from icesql.sql.parser.writing import TRANSLATED
from icesql.sql.time_travel import written_value

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.sql.time_travel import AtTime

# Oracle's names of the clock.
_CLOCKS: Final = ("systimestamp", "sysdate", "systimestamp()")
_EPOCH: Final = datetime(1970, 1, 1)
# What the engine is asked for.
_COMPUTED: Final = (
    exp.Paren, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.DataType,
    exp.AtTimeZone, exp.TimestampTrunc, exp.DateTrunc, exp.DateAdd, exp.TimestampAdd,
    exp.DatetimeAdd, exp.TsOrDsAdd, exp.DateSub, exp.TimestampSub, exp.DatetimeSub, exp.Date,
    exp.TsOrDsToDate, exp.Timestamp, exp.TsOrDsToTimestamp, exp.Interval, exp.Var,
)  # fmt: skip
_EPOCHS: Final = {"timestamp_seconds": 0, "timestamp_millis": 3, "timestamp_micros": 6}
# An aware datetime is an instant, a naive one a wall clock, a date midnight of it.
_Value = datetime | date | Interval | Decimal | str


def fold_instant(travel: AtTime, query: QueryContext) -> int:
    """Microseconds since the epoch in UTC of the constant time expression of a travel clause.

    Understands literals, casts, now() and its kin, intervals, arithmetic, AT TIME ZONE,
    date_trunc and to_timestamp. Raises SqlSyntaxError for everything that is not a constant time,
    and for a bare number where the dialect does not say that it counts seconds.
    """
    node, zone = travel.expression, time_zone(query.settings.timezone)
    try:
        value = _value(node, query)
        if isinstance(value, Decimal):
            if not travel.numbers_are_seconds:
                raise NotConstant(
                    f"ambiguous timestamp {node.sql()}; use to_timestamp({node.sql()}) for seconds "
                    f"or epoch_ms({node.sql()}) for milliseconds"
                )
            value = _since_epoch(value, 0)
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
        if node.meta.get(TRANSLATED):  # whose own words are not the user's
            problem = f"{travel.text} is not a constant time that can be folded; {TIME_SHAPE}"
        raise SqlSyntaxError(problem, offset=travel.offset) from None
    except (OverflowError, ValueError, InvalidOperation) as error:
        problem = f"{node.sql()} lies outside the years 1 to 9999"
        raise SqlSyntaxError(problem, offset=travel.offset) from error


def _value(node: exp.Expr, query: QueryContext) -> _Value:
    match node:
        case exp.Paren():
            return _value(node.this, query)
        case exp.Literal():
            return str(node.this) if node.is_string else Decimal(str(node.this))
        case _:
            found = _read(node, query)
            return _computed(node, query) if found is None else found


def _read(node: exp.Expr, query: QueryContext) -> datetime | date | Interval | None:
    """The value of what is not left to the engine; None for all others."""
    now = clock_time(node, query)
    if now is not None:
        return now
    match node:
        case exp.Cast(this=exp.Literal(is_string=True) as text, to=to):
            if to.is_type(exp.DataType.Type.INTERVAL):
                return interval_of_text(text.name)
            if not to.is_type(*exp.DataType.TEMPORAL_TYPES):
                return None
            # The zone of the type does not decide: a text that names a zone means that zone, and
            # dialects read TIMESTAMP '…' as types with and without one.
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
            return _since_epoch(
                _number(node.this, query), int(_number(scale, query)) if scale else 0
            )
        case exp.Anonymous(expressions=[number]) if node.name.lower() in _EPOCHS:
            return _since_epoch(_number(number, query), _EPOCHS[node.name.lower()])
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


def _computed(node: exp.Expr, query: QueryContext) -> _Value:
    """What the engine computes of the times and spans in an expression."""
    if node.find(exp.Query):
        raise NotConstant("a subquery cannot say which snapshot to read; write a constant")
    if isinstance(node, exp.Column | exp.Identifier):
        raise NotConstant(
            f"{node.sql()} is a name; a time to travel to is a constant such as "
            "TIMESTAMP '2026-01-31 12:00:00' or now() - INTERVAL 1 DAY"
        )

    def read(part: exp.Expr) -> exp.Expr:
        if part.arg_key == "zone" and isinstance(part, exp.Literal):
            # The engine has no names for offsets but these.
            return exp.Literal.string(re.sub("^UTC(?=[+-])", "GMT", str(zone_named(part.name))))
        # The call that a span is added by writes it itself.
        in_call = isinstance(part, exp.Interval) and isinstance(part.parent, exp.TimeUnit)
        value = None if in_call else _read(part, query)
        return part if value is None else time_literal(value)

    left = node.transform(read)
    if all(isinstance(each, _COMPUTED) for each in left.walk()):
        with suppress(NotWritable):
            made = replaced(expression_of_text(left), _as_it_is)
            found = asked({"": write(made, lambda _: "NULL")}, query, query.ask).get("")
            value = None if found is None else _given(found)
            # The days between two dates are no time.
            has_date = any(each.value == "DATE" for each in made.walk())
            if value is not None and not (has_date and isinstance(value, Decimal)):
                return value
    raise NotConstant(
        f"{written_value(node)} is not a constant time that can be folded, or lies outside the "
        f"years 1 to 9999; {TIME_SHAPE}"
    )


def _given(found: Constant) -> _Value | None:
    match found.kind:
        case Kind.STRING | Kind.INTERVAL:
            return found.value  # type: ignore[no-any-return]
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return Decimal(found.value)
        case Kind.DATE:
            return _EPOCH + timedelta(days=found.value)
        case Kind.TIMESTAMP:
            return _EPOCH + timedelta(microseconds=found.value)
        case Kind.TIMESTAMPTZ:
            return _since_epoch(Decimal(found.value), 6)
        case _:
            return None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _as_it_is(each: Expression) -> Expression | None:
    """What a cast to a time with or without a zone is of, which neither moves."""
    if each.name not in ("cast", "try_cast") or not each.value.startswith("TIMESTAMP"):
        return None
    inner = replaced(each.arguments[0], _as_it_is)
    if inner.name == "literal":
        return each
    return Expression("cast", (inner,), "TIMESTAMP") if inner.value == "DATE" else inner


def _number(node: exp.Expr, query: QueryContext) -> Decimal:
    value = _value(node, query)
    try:
        if isinstance(value, str | Decimal):
            return Decimal(value)
    except InvalidOperation:
        pass
    raise NotConstant(f"{written_value(node)} is not a number; {TIME_SHAPE}")


def _since_epoch(number: Decimal, digits: int) -> datetime:
    """The instant so many parts of a second, of 10 ** -digits, since 1970."""
    micros = (number * 10 ** (6 - digits)).to_integral_value(rounding="ROUND_FLOOR")
    return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=int(micros))
