"""A constant time expression becomes an instant, on the tree and without an engine.

A time without zone is read in the session's zone by Java's rule, which Spark and Trino follow: a
time that daylight saving skips moves forward by the gap, one that happens twice is the earlier.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo

from sqlglot import exp

from icesql.context import QueryContext
from icesql.sql.time_text import (
    SECOND,
    TIME_SHAPE,
    Interval,
    NotConstant,
    in_zone,
    interval_of,
    read_interval,
    read_span,
    read_time,
    unit_named,
    zone_named,
)

if TYPE_CHECKING:
    from icesql.sql.source import Source

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# An aware datetime is an instant, a naive one a wall clock, a date midnight of it.
_Value = datetime | date | Interval | Decimal | str


def fold_instant(
    node: exp.Expr,
    source: Source,
    context: QueryContext,
    offset: int | None = None,
    *,
    seconds: bool = False,
) -> int:
    """Microseconds since the epoch in UTC of a constant time expression.

    Understands literals, casts, now() and its kin, intervals, arithmetic, AT TIME ZONE,
    date_trunc and to_timestamp. ``seconds``: a bare number is epoch seconds; otherwise it is
    refused. Raises SqlSyntaxError at ``offset`` for everything that is not a constant time.
    """
    folder = _Folder(context)
    try:
        value = folder.fold(node)
        if isinstance(value, Decimal):
            if not seconds:
                raise NotConstant(
                    f"is {node.sql()} seconds or milliseconds? Write to_timestamp({node.sql()}) "
                    f"for seconds, epoch_ms({node.sql()}) for milliseconds, or TIMESTAMP '…'"
                )
            value = _from_microseconds(value * SECOND)
        if isinstance(value, str):
            value = read_time(value)
        if isinstance(value, Interval):
            raise NotConstant(f"{node.sql()} is an interval, not a point in time")
        instant = folder.instant(value)
    except NotConstant as reason:
        raise source.syntax_error(str(reason), offset) from None
    except (OverflowError, ValueError, InvalidOperation) as error:
        problem = f"{node.sql()} lies outside the years 1 to 9999"
        raise source.syntax_error(problem, offset) from error
    return (instant - _EPOCH) // timedelta(microseconds=1)


class _Folder:
    def __init__(self, context: QueryContext, zone: tzinfo | None = None) -> None:
        self._now = context.now.astimezone(UTC)
        self._name = context.settings.timezone
        self._zone = zone

    @property
    def zone(self) -> tzinfo:
        """The session's zone."""
        if self._zone is None:
            if not self._name:
                raise NotConstant(
                    "a time without zone after RESET of the time zone in the same text; "
                    "name its zone, as in '2026-01-31 12:00:00 UTC'"
                )
            self._zone = ZoneInfo(self._name)
        return self._zone

    def instant(self, value: datetime | date) -> datetime:
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return in_zone(value, self.zone) if value.tzinfo is None else value.astimezone(UTC)

    def fold(self, node: exp.Expr) -> _Value:
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
            case exp.CurrentTimestamp() | exp.Systimestamp():
                return self._now
            case exp.CurrentDate():
                return self._now.astimezone(self._zone_of(node)).date()
            case exp.Localtimestamp() | exp.CurrentDatetime():
                return self._now.astimezone(self._zone_of(node)).replace(tzinfo=None)
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
                return interval_of(self._number(node.this), "DAY", node.sql())
            case exp.Anonymous():
                return self._function(node)
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
        if name in ("now", "transaction_timestamp", "get_current_timestamp", "systimestamp"):
            if node.expressions:
                raise _no_constant(node)
            return self._now
        if name in ("today", "current_date") and not node.expressions:
            return self._now.astimezone(self.zone).date()
        if len(node.expressions) == 1:
            number = node.expressions[0]
            unit = {"timestamp_seconds": 0, "timestamp_millis": 3, "timestamp_micros": 6}.get(name)
            if unit is not None:
                return _from_microseconds(self._number(number) * 10 ** (6 - unit))
            if name.startswith("to_") and unit_named(name[3:]):
                return interval_of(self._number(number), name[3:], node.sql())
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
                return read_interval(value)
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
        unit = unit_named(str(node.args["unit"].name))
        match unit:
            case "YEAR":
                cut = moment.replace(month=1, day=1)
            case "QUARTER":
                cut = moment.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1)
            case "MONTH":
                cut = moment.replace(day=1)
            case "WEEK":
                cut = moment - timedelta(days=moment.weekday())
            case "DAY" | "HOUR" | "MINUTE" | "SECOND":
                cut = moment
            case _:
                raise _no_constant(node)
        kept = {"HOUR": 1, "MINUTE": 2, "SECOND": 3}.get(unit, 0)
        fields = ("hour", "minute", "second", "microsecond")
        cut = cut.replace(**dict.fromkeys(fields[kept:], 0))  # type: ignore[arg-type]
        return in_zone(cut, named) if aware else cut

    def _step(self, node: exp.Expr) -> Interval:
        amount = node.args["expression"]
        if isinstance(amount, exp.Interval):
            return self._interval(amount)
        unit = node.args.get("unit")
        return interval_of(self._number(amount), unit.name if unit else "DAY", node.sql())

    def _interval(self, node: exp.Interval) -> Interval:
        unit, amount = node.args.get("unit"), node.this
        if amount is None:
            raise _no_constant(node)
        if isinstance(unit, exp.IntervalSpan):
            return read_span(str(amount.name), unit.this.name, unit.expression.name)
        if unit is None:
            value = self.fold(amount)
            if isinstance(value, str):
                return read_interval(value)
            raise _no_constant(node)
        return interval_of(self._number(amount), unit.name, node.sql())

    def _scaled(self, value: _Value, factor: Decimal, node: exp.Expr) -> _Value:
        if isinstance(value, Decimal):
            return value * factor
        if isinstance(value, Interval) and factor == int(factor):
            return value.times(int(factor))
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
            return left.plus(right.times(sign))
        if isinstance(left, str):
            left = read_time(left)
        if isinstance(left, (datetime, date)):
            return self._moved(left, right.times(sign))
        raise _no_constant(node)

    def _moved(self, value: datetime | date, step: Interval) -> datetime | date:
        if not isinstance(value, datetime):
            if not step.us:
                return _add_months(value, step.months) + timedelta(days=step.days)
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            moved = _add_months(value, step.months) + timedelta(days=step.days)
            return moved + timedelta(microseconds=step.us)
        if step.months or step.days:
            # Months and days are steps of the calendar on the session's clock, not of 24 hours.
            local = value.astimezone(self.zone).replace(tzinfo=None)
            local = _add_months(local, step.months) + timedelta(days=step.days)
            value = in_zone(local, self.zone)
        return value + timedelta(microseconds=step.us)


def _no_constant(node: exp.Expr) -> NotConstant:
    if node.find(exp.Query):
        return NotConstant("a subquery cannot say which snapshot to read; write a constant")
    return NotConstant(
        f"{node.sql(dialect='duckdb')} is not a constant time that can be folded; {TIME_SHAPE}"
    )


def _from_microseconds(us: Decimal) -> datetime:
    return _EPOCH + timedelta(microseconds=int(us.to_integral_value(rounding="ROUND_FLOOR")))


_Day = TypeVar("_Day", datetime, date)


def _add_months(day: _Day, months: int) -> _Day:
    if not months:
        return day
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return day.replace(year=year, month=month + 1, day=min(day.day, last))
