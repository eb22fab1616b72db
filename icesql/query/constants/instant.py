"""A constant time expression becomes the instant to travel to, on the tree and without an engine.

A time without zone is read in the session's zone by Java's rule, which Spark and Trino follow: a
time that daylight saving skips moves forward by the gap, one that happens twice is the earlier.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.config import time_zone
from icesql.errors import SqlSyntaxError
from icesql.query.constants.constant import SECOND, Interval, NotConstant
from icesql.query.constants.current_time import clock_time
from icesql.query.constants.relative_time import relative_time
from icesql.query.constants.time_text import TIME_SHAPE, in_zone, read_time, zone_named
from icesql.query.constants.time_units import (
    bucket_start,
    interval_of,
    interval_of_span,
    interval_of_text,
    shift,
    unit_name,
)
from icesql.sql.parser.writing import TRANSLATED
from icesql.sql.time_travel import written_value

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.sql.time_travel import AtTime

# Oracle's names of the clock, which are no calls.
_CLOCKS: Final = ("systimestamp", "sysdate")
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
# An aware datetime is an instant, a naive one a wall clock, a date midnight of it.
_Value = datetime | date | Interval | Decimal | str


def fold_instant(travel: AtTime, query: QueryContext) -> int:
    """Microseconds since the epoch in UTC of the constant time expression of a travel clause.

    Understands literals, casts, now() and its kin, intervals, arithmetic, AT TIME ZONE,
    date_trunc and to_timestamp. Raises SqlSyntaxError for everything that is not a constant time,
    and for a bare number where the dialect does not say that it counts seconds.
    """
    node = travel.expression
    folder = _Folder(query)
    try:
        value = folder.fold(node)
        if isinstance(value, Decimal):
            if not travel.numbers_are_seconds:
                raise NotConstant(
                    f"ambiguous timestamp {node.sql()}; use to_timestamp({node.sql()}) for seconds "
                    f"or epoch_ms({node.sql()}) for milliseconds"
                )
            value = _from_microseconds(value * SECOND)
        if isinstance(value, str):
            value = relative_time(value, query.now, folder.zone) or _read_time(value)
        if isinstance(value, Interval):
            raise NotConstant(f"{node.sql()} is an interval, not a point in time")
        instant = folder.instant(value)
    except NotConstant as reason:
        problem = str(reason)
        if node.meta.get(TRANSLATED):  # whose own words are not the user's
            problem = f"{travel.text} is not a constant time that can be folded; {TIME_SHAPE}"
        raise SqlSyntaxError(problem, offset=travel.offset) from None
    except (OverflowError, ValueError, InvalidOperation) as error:
        problem = f"{node.sql()} lies outside the years 1 to 9999"
        raise SqlSyntaxError(problem, offset=travel.offset) from error
    return (instant.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def _read_time(text: str) -> datetime | date:
    if text.isdigit():
        from icesql.query.constants.digits import clock_of_digits

        clock = clock_of_digits(text)
        if clock is not None:
            return clock
    return read_time(text)


class _Folder:
    def __init__(self, query: QueryContext) -> None:
        self._query = query
        self.zone = time_zone(query.settings.timezone)

    def instant(self, value: datetime | date) -> datetime:
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return in_zone(value, self.zone) if value.tzinfo is None else value.astimezone(UTC)

    def fold(self, node: exp.Expr) -> _Value:
        now = clock_time(node, self._query)
        if now is not None:
            return now
        match node:
            case exp.Paren():
                return self.fold(node.this)
            case exp.Literal():
                return str(node.this) if node.is_string else Decimal(str(node.this))
            case exp.Neg():
                return self._scaled(self.fold(node.this), Decimal(-1), node)
            case exp.Add():
                return self._sum(self.fold(node.this), self.fold(node.expression), 1, node)
            case exp.Sub():
                return self._sum(self.fold(node.this), self.fold(node.expression), -1, node)
            case exp.Mul():
                left, right = self.fold(node.this), self.fold(node.expression)
                if isinstance(right, Decimal):
                    return self._scaled(left, right, node)
                if isinstance(left, Decimal):
                    return self._scaled(right, left, node)
                raise _no_constant(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Interval():
                return self._interval(node)
            case exp.AtTimeZone():
                return self._at_time_zone(node)
            case exp.Systimestamp():
                return self._query.now
            case exp.CurrentDate():
                return self._query.now.astimezone(self._zone_of(node)).date()
            case exp.CurrentTimestamp() | exp.Localtimestamp() | exp.CurrentDatetime():
                return self._query.now.astimezone(self._zone_of(node)).replace(tzinfo=None)
            case exp.UnixToTime():
                return self._unix_to_time(node)
            case exp.TimestampTrunc() | exp.DateTrunc():
                return self._truncated(node)
            case exp.DateAdd() | exp.TimestampAdd() | exp.DatetimeAdd() | exp.TsOrDsAdd():
                return self._sum(self.fold(node.this), self._step(node), 1, node)
            case exp.DateSub() | exp.TimestampSub() | exp.DatetimeSub():
                return self._sum(self.fold(node.this), self._step(node), -1, node)
            case exp.Date() | exp.TsOrDsToDate() if node.this is not None:
                return self._date(self.fold(node.this), node)
            case exp.Timestamp() | exp.TsOrDsToTimestamp() if node.this is not None:
                return self._time(self.fold(node.this), node)
            case exp.ToDays():
                return interval_of(self._number(node.this), "day")
            case exp.Anonymous():
                return self._function(node)
            case exp.Column() if node.sql().lower() in _CLOCKS:
                return self._query.now
            case exp.Column() | exp.Identifier():
                raise NotConstant(
                    f"{node.sql()} is a name; a time to travel to is a constant such as "
                    "TIMESTAMP '2026-01-31 12:00:00' or now() - INTERVAL 1 DAY"
                )
            case _:
                raise _no_constant(node)

    # -------------------------------------------------------------- parts

    def _function(self, node: exp.Anonymous) -> _Value:
        name = node.name.lower()
        if name == "systimestamp" and not node.expressions:
            return self._query.now
        if len(node.expressions) == 1:
            number = node.expressions[0]
            unit = {"timestamp_seconds": 0, "timestamp_millis": 3, "timestamp_micros": 6}.get(name)
            if unit is not None:
                return _from_microseconds(self._number(number) * 10 ** (6 - unit))
            if name.startswith("to_"):
                return interval_of(self._number(number), name[3:])
        raise _no_constant(node)

    def _number(self, node: exp.Expr) -> Decimal:
        value = self.fold(node)
        if isinstance(value, str):
            try:
                return Decimal(value)
            except InvalidOperation:
                raise _no_constant(node) from None
        if isinstance(value, Decimal):
            return value
        raise _no_constant(node)

    def _zone_of(self, node: exp.Expr) -> tzinfo:
        named = node.args.get("this")
        if isinstance(named, exp.Literal) and named.is_string:
            return zone_named(str(named.this))
        return self.zone

    def _cast(self, node: exp.Cast) -> _Value:
        value, to = self.fold(node.this), node.to
        if to.is_type(exp.DataType.Type.DATE, exp.DataType.Type.DATE32):
            return self._date(value, node)
        if to.is_type(*exp.DataType.TEMPORAL_TYPES):
            # The zone of the type does not decide: a text that names a zone means that zone, and
            # dialects read TIMESTAMP '…' as types with and without one.
            return self._time(value, node)
        if isinstance(value, (str, Decimal)):
            if to.is_type(*exp.DataType.TEXT_TYPES):
                return str(value)
            if to.is_type(*exp.DataType.NUMERIC_TYPES):
                return self._number(node.this)
            if to.is_type(exp.DataType.Type.INTERVAL) and isinstance(value, str):
                return interval_of_text(value)
        raise _no_constant(node)

    def _time(self, value: _Value, node: exp.Expr) -> datetime:
        if isinstance(value, str):
            value = read_time(value)
        if isinstance(value, datetime):
            return value
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
        raise _no_constant(node)

    def _date(self, value: _Value, node: exp.Expr) -> date:
        moment = self._time(value, node)
        return (moment if moment.tzinfo is None else moment.astimezone(self.zone)).date()

    def _at_time_zone(self, node: exp.AtTimeZone) -> datetime:
        zone = self.fold(node.args["zone"])
        if not isinstance(zone, str):
            raise _no_constant(node)
        moment = self._time(self.fold(node.this), node)
        if moment.tzinfo is None:
            return in_zone(moment, zone_named(zone))
        return moment.astimezone(zone_named(zone)).replace(tzinfo=None)

    def _unix_to_time(self, node: exp.UnixToTime) -> datetime:
        scale = node.args.get("scale")
        power = int(self._number(scale)) if scale is not None else 0
        return _from_microseconds(self._number(node.this) * Decimal(10) ** (6 - power))

    def _truncated(self, node: exp.Expr) -> datetime:
        zone = node.args.get("zone")
        moment = self._time(self.fold(node.this), node)
        aware = moment.tzinfo is not None
        if aware:
            named = zone_named(str(zone.this)) if isinstance(zone, exp.Literal) else self.zone
            moment = moment.astimezone(named).replace(tzinfo=None)
        start = bucket_start(_clock_micros(moment), unit_name(str(node.args["unit"].name)))
        if start is None:
            raise _no_constant(node)
        cut = _EPOCH + timedelta(microseconds=start)
        return in_zone(cut, named) if aware else cut

    def _step(self, node: exp.Expr) -> Interval:
        amount = node.args["expression"]
        if isinstance(amount, exp.Interval):
            return self._interval(amount)
        unit = node.args.get("unit")
        return interval_of(self._number(amount), unit.name if unit else "day")

    def _interval(self, node: exp.Interval) -> Interval:
        unit, amount = node.args.get("unit"), node.this
        if amount is None:
            raise _no_constant(node)
        if isinstance(unit, exp.IntervalSpan):
            return interval_of_span(str(amount.name), unit.this.name, unit.expression.name)
        if unit is None:
            value = self.fold(amount)
            if isinstance(value, str):
                return interval_of_text(value)
            raise _no_constant(node)
        return interval_of(self._number(amount), unit.name)

    def _scaled(self, value: _Value, factor: Decimal, node: exp.Expr) -> _Value:
        if isinstance(value, Decimal):
            return value * factor
        if isinstance(value, Interval) and factor == int(factor):
            return value * int(factor)
        raise _no_constant(node)

    def _sum(self, left: _Value, right: _Value, sign: int, node: exp.Expr) -> _Value:
        if isinstance(left, Interval) and isinstance(right, (datetime, date)) and sign == 1:
            left, right = right, left
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            return left + sign * right
        if isinstance(right, Decimal) and isinstance(left, date) and not isinstance(left, datetime):
            if right == int(right):
                return left + timedelta(days=sign * int(right))
            raise _no_constant(node)
        if not isinstance(right, Interval):
            raise _no_constant(node)
        if isinstance(left, Interval):
            return left + right * sign
        if isinstance(left, str):
            left = read_time(left)
        if isinstance(left, (datetime, date)):
            return self._moved(left, right * sign)
        raise _no_constant(node)

    def _moved(self, value: datetime | date, step: Interval) -> datetime | date:
        if not isinstance(value, datetime):
            moved = _shifted(datetime(value.year, value.month, value.day), step)
            return moved if step.micros else moved.date()
        if value.tzinfo is None:
            return _shifted(value, step)
        if step.months or step.days:
            # Months and days are steps of the calendar on the session's clock, not of 24 hours.
            local = value.astimezone(self.zone).replace(tzinfo=None)
            value = in_zone(_shifted(local, Interval(step.months, step.days)), self.zone)
        return value + timedelta(microseconds=step.micros)


def _shifted(moment: datetime, step: Interval) -> datetime:
    return _EPOCH + timedelta(microseconds=shift(_clock_micros(moment), step))


def _clock_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _no_constant(node: exp.Expr) -> NotConstant:
    if node.find(exp.Query):
        return NotConstant("a subquery cannot say which snapshot to read; write a constant")
    return NotConstant(
        f"{written_value(node)} is not a constant time that can be folded; {TIME_SHAPE}"
    )


def _from_microseconds(us: Decimal) -> datetime:
    whole = int(us.to_integral_value(rounding="ROUND_FLOOR"))
    return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=whole)
