"""A constant time expression becomes an instant, on the tree and without an engine.

A time without zone is read in the session's zone by Java's rule, which Spark and Trino follow: a
time that daylight saving skips moves forward by the gap, one that happens twice is the earlier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from icesql.context import QueryContext
from icesql.errors import SqlSyntaxError

if TYPE_CHECKING:
    from icesql.sql.dialect import Source

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND

# unit → (months, days, microseconds)
_UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "MICROSECOND": (0, 0, 1),
    "MILLISECOND": (0, 0, 1000),
    "SECOND": (0, 0, _SECOND),
    "MINUTE": (0, 0, 60 * _SECOND),
    "HOUR": (0, 0, 3600 * _SECOND),
    "DAY": (0, 1, 0),
    "WEEK": (0, 7, 0),
    "MONTH": (1, 0, 0),
    "QUARTER": (3, 0, 0),
    "YEAR": (12, 0, 0),
    "DECADE": (120, 0, 0),
    "CENTURY": (1200, 0, 0),
}
_SHORT_UNITS: Final = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "M": "MINUTE",
    "MIN": "MINUTE",
    "H": "HOUR",
    "HR": "HOUR",
    "D": "DAY",
    "W": "WEEK",
    "MON": "MONTH",
    "Q": "QUARTER",
    "Y": "YEAR",
    "YR": "YEAR",
    "CENTURIE": "CENTURY",
}


@dataclass(frozen=True, slots=True)
class _Interval:
    months: int = 0
    days: int = 0
    us: int = 0

    def times(self, factor: int) -> _Interval:
        return _Interval(self.months * factor, self.days * factor, self.us * factor)

    def plus(self, other: _Interval) -> _Interval:
        return _Interval(self.months + other.months, self.days + other.days, self.us + other.us)


# An aware datetime is an instant, a naive one a wall clock, a date midnight of it.
_Value = datetime | date | _Interval | Decimal | str


class _NotConstant(Exception):
    """Why an expression cannot be folded; never leaves this file."""


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
                raise _NotConstant(
                    f"is {node.sql()} seconds or milliseconds? Write to_timestamp({node.sql()}) "
                    f"for seconds, epoch_ms({node.sql()}) for milliseconds, or TIMESTAMP '…'"
                )
            value = _from_microseconds(value * _SECOND)
        if isinstance(value, str):
            value = folder.read(value)
        if isinstance(value, _Interval):
            raise _NotConstant(f"{node.sql()} is an interval, not a point in time")
        instant = folder.instant(value)
    except _NotConstant as reason:
        raise source.syntax_error(str(reason), offset) from None
    except (OverflowError, ValueError, InvalidOperation) as error:
        problem = f"{node.sql()} lies outside the years 1 to 9999"
        raise source.syntax_error(problem, offset) from error
    return (instant - _EPOCH) // timedelta(microseconds=1)


def read_time(text: str, zone: str) -> datetime:
    """The instant of a text like '2026-01-31 12:00:00 Europe/Vienna'; ``zone`` where none is named.

    Raises SqlSyntaxError for a text that is no time.
    """
    context = QueryContext()
    folder = _Folder(context, ZoneInfo(zone))
    try:
        return folder.instant(folder.read(text))
    except _NotConstant as reason:
        raise SqlSyntaxError(str(reason)) from None


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
                raise _NotConstant(
                    "a time without zone after RESET of the time zone in the same text; "
                    "name its zone, as in '2026-01-31 12:00:00 UTC'"
                )
            self._zone = ZoneInfo(self._name)
        return self._zone

    def instant(self, value: datetime | date) -> datetime:
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return _in_zone(value, self.zone) if value.tzinfo is None else value.astimezone(UTC)

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
                return self._unit_interval(self._number(node.this), "DAY", node)
            case exp.Anonymous():
                return self._function(node)
            case exp.Column() | exp.Identifier():
                raise _NotConstant(
                    f"{node.sql()} is a name; a time to travel to is a constant such as "
                    "TIMESTAMP '2026-01-31 12:00:00' or now() - INTERVAL 1 DAY"
                )
            case _:
                raise _no_constant(node)

    # -------------------------------------------------------------- parts

    def _function(self, node: exp.Anonymous) -> _Value:
        name = str(node.this).lower()
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
            if name.startswith("to_") and _unit(name[3:]):
                return self._unit_interval(self._number(number), name[3:], node)
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
            return _zone_named(str(named.this))
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
                return self._interval_text(value)
        raise _no_constant(node)

    def _time(self, value: _Value, node: exp.Expr) -> datetime:
        if isinstance(value, str):
            value = self.read(value)
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
            return _in_zone(moment, _zone_named(zone))
        return moment.astimezone(_zone_named(zone)).replace(tzinfo=None)

    def _unix_to_time(self, node: exp.UnixToTime) -> datetime:
        scale = node.args.get("scale")
        power = int(self._number(scale)) if scale is not None else 0
        return _from_microseconds(self._number(node.this) * Decimal(10) ** (6 - power))

    def _truncated(self, node: exp.Expr) -> datetime:
        zone = node.args.get("zone")
        moment = self._time(self.fold(node.this), node)
        aware = moment.tzinfo is not None
        if aware:
            named = _zone_named(str(zone.this)) if isinstance(zone, exp.Literal) else self.zone
            moment = moment.astimezone(named).replace(tzinfo=None)
        unit = _unit(str(node.args["unit"].name))
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
        return _in_zone(cut, named) if aware else cut

    def _step(self, node: exp.Expr) -> _Interval:
        amount = node.args["expression"]
        if isinstance(amount, exp.Interval):
            return self._interval(amount)
        unit = node.args.get("unit")
        return self._unit_interval(self._number(amount), unit.name if unit else "DAY", node)

    def _interval(self, node: exp.Interval) -> _Interval:
        unit, amount = node.args.get("unit"), node.this
        if amount is None:
            raise _no_constant(node)
        if isinstance(unit, exp.IntervalSpan):
            return self._span(str(amount.name), unit.this.name, unit.expression.name)
        if unit is None:
            value = self.fold(amount)
            if isinstance(value, str):
                return self._interval_text(value)
            raise _no_constant(node)
        return self._unit_interval(self._number(amount), unit.name, node)

    def _unit_interval(self, amount: Decimal, unit: str, node: exp.Expr) -> _Interval:
        name = _unit(unit)
        if not name:
            raise _NotConstant(f"{unit} is not a unit of time in {node.sql()}")
        months, days, us = (amount * part for part in _UNITS[name])
        if months != int(months):
            raise _NotConstant(f"{node.sql()} is not a whole number of months")
        whole = int(days)
        return _Interval(int(months), whole, int((days - whole) * _DAY + us))

    def _interval_text(self, text: str) -> _Interval:
        total, position, found = _Interval(), 0, False
        pattern = re.compile(
            r"\s*(?:([+-]?\d+(?:\.\d+)?)\s*([A-Za-zµ]+)|([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?)\s*,?"
        )
        while position < len(text.rstrip()):
            part = pattern.match(text, position)
            if not part:
                raise _NotConstant(f"'{text}' is not an interval such as '1 day 2 hours'")
            if part[1]:
                step = self._unit_interval(Decimal(part[1]), part[2], exp.Literal.string(text))
            else:
                minutes = int(part[4]) * 60 + int(part[5])
                us = int((Decimal(minutes) * 60 + Decimal(part[6] or 0)) * _SECOND)
                step = _Interval(us=-us if part[3] == "-" else us)
            total, position, found = total.plus(step), part.end(), True
        if not found:
            raise _NotConstant("an empty text is not an interval")
        return total

    def _span(self, text: str, first: str, last: str) -> _Interval:
        found = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text)
        if found and (_unit(first), _unit(last)) == ("YEAR", "MONTH"):
            return _Interval(int(found[2]) * 12 + int(found[3])).times(-1 if found[1] == "-" else 1)
        found = re.fullmatch(r"\s*([+-]?)(\d+)\s+(\d+):(\d+)(?::(\d+(?:\.\d+)?))?\s*", text)
        if found and _unit(first) == "DAY":
            minutes = int(found[3]) * 60 + int(found[4])
            us = int((Decimal(minutes) * 60 + Decimal(found[5] or 0)) * _SECOND)
            return _Interval(0, int(found[2]), us).times(-1 if found[1] == "-" else 1)
        raise _NotConstant(f"'{text}' is not an interval of {first} TO {last}")

    def _scaled(self, value: _Value, factor: Decimal, node: exp.Expr) -> _Value:
        if isinstance(value, Decimal):
            return value * factor
        if isinstance(value, _Interval) and factor == int(factor):
            return value.times(int(factor))
        raise _no_constant(node)

    def _sum(self, left: _Value, right: _Value, sign: int, node: exp.Expr) -> _Value:
        if isinstance(left, _Interval) and isinstance(right, (datetime, date)) and sign == 1:
            left, right = right, left
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            return left + sign * right
        if isinstance(right, Decimal) and isinstance(left, date) and not isinstance(left, datetime):
            if right == int(right):
                return left + timedelta(days=sign * int(right))
            raise _no_constant(node)
        if not isinstance(right, _Interval):
            raise _no_constant(node)
        if isinstance(left, _Interval):
            return left.plus(right.times(sign))
        if isinstance(left, str):
            left = self.read(left)
        if isinstance(left, (datetime, date)):
            return self._moved(left, right.times(sign))
        raise _no_constant(node)

    def _moved(self, value: datetime | date, step: _Interval) -> datetime | date:
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
            value = _in_zone(local, self.zone)
        return value + timedelta(microseconds=step.us)

    def read(self, text: str) -> datetime | date:
        """The time a text writes down. Raises _NotConstant."""
        found = _TIME.fullmatch(text.strip())
        if not found:
            if re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text):
                raise _NotConstant(
                    f"is '{text}' seconds or milliseconds? Write to_timestamp({text}) for seconds, "
                    f"epoch_ms({text}) for milliseconds, or TIMESTAMP '…'"
                )
            raise _NotConstant(f"'{text}' is not a time; {_TIME_SHAPE}")
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        try:
            if hour is None:
                return date(int(year), int(month), int(day))
            # Digits below a microsecond cannot choose another snapshot: commits are milliseconds.
            us = int(((fraction or "") + "000000")[:6])
            moment = datetime(
                int(year), int(month), int(day), int(hour), int(minute), int(second or 0), us
            )
        except ValueError as error:
            raise _NotConstant(f"'{text}' is not a time: {error}") from None
        return _in_zone(moment, _zone_named(zone)) if zone else moment


_TIME: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"\s*(Z|z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z0-9_+\-/]*)?)?"
)
_TIME_SHAPE: Final = "write it like '2026-01-31 12:00:00', '… Europe/Vienna' or '… +02:00'"


def _no_constant(node: exp.Expr) -> _NotConstant:
    if node.find(exp.Query):
        return _NotConstant("a subquery cannot say which snapshot to read; write a constant")
    return _NotConstant(
        f"{node.sql(dialect='duckdb')} is not a constant time that can be folded; {_TIME_SHAPE}"
    )


def _unit(text: str) -> str:
    name = text.upper().replace("Μ", "U")
    for candidate in (name, name.removesuffix("S")):
        candidate = _SHORT_UNITS.get(candidate, candidate)
        if candidate in _UNITS:
            return candidate
    return ""


def _zone_named(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return UTC
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?:?(\d{2})?", text)
    if found:
        shift = timedelta(
            hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0)
        )
        if shift >= timedelta(hours=24):
            raise _NotConstant(f"'{text}' is not an offset from UTC")
        return timezone(-shift if found[1] == "-" else shift)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError):
        if text.upper() in ("UTC", "GMT"):
            return UTC
        raise _NotConstant(f"'{text}' is not a time zone such as Europe/Vienna or +02:00") from None


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    # fold=0 is Java's rule for gaps and overlaps.
    return moment.replace(tzinfo=zone, fold=0).astimezone(UTC)


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
