"""Fold constant SQL expressions to typed values, as DuckDB would compute them.

Anything whose value is not certain is not folded: a condition on it is then not pushed, and the
engine evaluates it alone. Times without zone meet instants through the session's zone; where that
is ambiguous (daylight saving) or where time zone data differ between programs (before 1970, after
2037) the value is a range, so that predicates made from it stay implied.
"""

from __future__ import annotations

import calendar
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlglot import exp

if TYPE_CHECKING:
    from icesql.context import QueryContext

SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DATE: Final = date(1970, 1, 1)
# Rules of summer time beyond these years are extrapolated, earlier ones reconstructed.
_SURE_FROM: Final = 0
_SURE_TO: Final = 68 * 365 * DAY
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?"
    r"\s*(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_FLOATING = re.compile(r"(?ai)[+-]?(\d{1,15}(\.\d{1,15})?|nan|inf|infinity)")
_INTERVAL_PART = re.compile(r"\s*([+-]?\d+)\s*([A-Za-z]+)\s*", re.ASCII)
_NOW: Final = frozenset(
    {"now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"}
)
_TODAY: Final = frozenset({"current_date", "today"})


class Kind(Enum):
    """The SQL type of a constant. TEXT is a quoted literal that adapts to what it meets."""

    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    DECIMAL = auto()
    FLOAT = auto()
    DOUBLE = auto()
    TEXT = auto()
    STRING = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    TIMESTAMPTZ = auto()
    INTERVAL = auto()
    BLOB = auto()
    UUID = auto()


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time in the three parts that do not convert into each other."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros)

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            self.months + other.months, self.days + other.days, self.micros + other.micros
        )


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of ``kind``: DATE int days, TIMESTAMP and TIMESTAMPTZ int µs since 1970.

    For the three of them the true value may lie anywhere from ``value`` to ``high``, when
    ``high`` is not None.
    """

    kind: Kind
    value: Any
    high: int | None = None

    @property
    def greatest(self) -> Any:
        """The greatest value that this may be."""
        return self.value if self.high is None else self.high

    @property
    def is_exact(self) -> bool:
        """Whether the value is one value and no range."""
        return self.high is None or self.high == self.value

    def widened(self, slack: int) -> Constant:
        """The same constant, known only to ``slack`` on both sides."""
        if not slack:
            return self
        return replace(self, value=self.value - slack, high=self.greatest + slack)


def fold(node: exp.Expr | None, context: QueryContext) -> Constant | None:
    """The value of a constant expression, None when it has none or it is not certain."""
    if node is None:
        return None
    try:
        return _fold(node, context)
    except (ValueError, OverflowError, ArithmeticError):
        return None


def _fold(node: exp.Expr, context: QueryContext) -> Constant | None:
    match node:
        case exp.Paren():
            return _fold(node.this, context)
        case exp.Null():
            return Constant(Kind.NULL, None)
        case exp.Boolean():
            return Constant(Kind.BOOLEAN, bool(node.this))
        case exp.Literal():
            return Constant(Kind.TEXT, node.this) if node.is_string else _number(str(node.this))
        case exp.Neg():
            return _negated(_fold(node.this, context))
        case exp.Cast():  # TryCast is one: a constant that fails to convert is not folded
            inner = _fold(node.this, context)
            return None if inner is None else cast(inner, node.to, context)
        case exp.Date() | exp.TsOrDsToDate() if not node.expressions and not node.args.get("zone"):
            inner = _fold(node.this, context)
            return None if inner is None else to_date(inner, context)
        case exp.Interval():
            return _interval(node, context)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node, context)
        case exp.CurrentTimestamp() if node.this is None:
            return Constant(Kind.TIMESTAMPTZ, _now(context))
        case exp.CurrentDate() if node.this is None:
            return to_date(Constant(Kind.TIMESTAMPTZ, _now(context)), context)
        case exp.Anonymous() if not node.expressions and node.name.lower() in _NOW:
            return Constant(Kind.TIMESTAMPTZ, _now(context))
        case exp.Anonymous() if not node.expressions and node.name.lower() in _TODAY:
            return to_date(Constant(Kind.TIMESTAMPTZ, _now(context)), context)
        case exp.TimestampTrunc() | exp.DateTrunc():
            inner = _fold(node.this, context)
            return None if inner is None else _truncated(inner, unit_of(node), context)
        case exp.DateFromParts():
            parts = [_fold(node.args[part], context) for part in ("year", "month", "day")]
            if any(part is None or part.kind is not Kind.INTEGER for part in parts):
                return None
            return Constant(Kind.DATE, _days(date(*(part.value for part in parts if part))))
        case _:
            return None


def _number(text: str) -> Constant | None:
    text = text.replace("_", "")
    if text.isascii() and text.isdigit():
        value = int(text)
        return Constant(Kind.INTEGER, value) if value < 1 << 127 else None
    if "e" in text.lower():
        return Constant(Kind.DOUBLE, float(text))
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    digits = max(len(number.as_tuple().digits), -exponent if isinstance(exponent, int) else 0)
    return Constant(Kind.DECIMAL, number) if digits <= 38 else None


def _negated(inner: Constant | None) -> Constant | None:
    if inner is None or inner.kind is Kind.NULL:
        return inner
    if inner.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.FLOAT, Kind.INTERVAL):
        return Constant(inner.kind, -inner.value)
    return None


# ------------------------------------------------------------------ casts


def cast(constant: Constant, to: exp.DataType, context: QueryContext) -> Constant | None:
    """The constant as a value of another SQL type, None where the outcome is not certain."""
    Type = exp.DataType.Type
    if constant.kind is Kind.NULL:
        return constant
    kind = to.this
    if kind == Type.DATE:
        return to_date(constant, context)
    if kind in (Type.TIMESTAMP, Type.TIMESTAMPNTZ, Type.DATETIME):
        return to_timestamp(constant, context) if not to.expressions else None
    if kind in (Type.TIMESTAMPTZ, Type.TIMESTAMPLTZ):
        return to_timestamptz(constant, context) if not to.expressions else None
    if kind == Type.TIME and constant.kind in (Kind.TEXT, Kind.STRING):
        found = _TIME.fullmatch(constant.value)
        if not found:
            return None
        micros = int((found[4] or "").ljust(6, "0"))
        return Constant(Kind.TIME, time(int(found[1]), int(found[2]), int(found[3]), micros))
    if kind in exp.DataType.INTEGER_TYPES:
        return _to_integer(constant)
    if kind == Type.DECIMAL:
        return _to_decimal(constant, to)
    if kind in (Type.FLOAT, Type.DOUBLE):
        return _to_floating(constant, Kind.FLOAT if kind == Type.FLOAT else Kind.DOUBLE)
    if kind in (Type.VARCHAR, Type.TEXT) and constant.kind in (Kind.TEXT, Kind.STRING):
        return Constant(Kind.STRING, constant.value)
    if kind == Type.UUID and constant.kind in (Kind.TEXT, Kind.STRING, Kind.UUID):
        text = str(constant.value)
        return Constant(Kind.UUID, UUID(text)) if len(text) == 36 else None
    if kind in (Type.VARBINARY, Type.BINARY) and constant.kind in (Kind.TEXT, Kind.STRING):
        return _to_blob(constant.value)
    if kind == Type.BOOLEAN and constant.kind is Kind.BOOLEAN:
        return constant
    return None


def _to_integer(constant: Constant) -> Constant | None:
    # Out of range is the engine's error to raise; a value that needs rounding is not folded.
    match constant.kind:
        case Kind.INTEGER:
            return constant
        case Kind.DECIMAL if constant.value == int(constant.value):
            return Constant(Kind.INTEGER, int(constant.value))
        case Kind.TEXT | Kind.STRING if re.fullmatch(r"[+-]?[0-9]{1,38}", constant.value):
            return Constant(Kind.INTEGER, int(constant.value))
        case _:
            return None


def _to_decimal(constant: Constant, to: exp.DataType) -> Constant | None:
    arguments = [int(each.name) for each in to.expressions]
    precision, scale = (*arguments, 0)[:2] if arguments else (18, 3)
    match constant.kind:
        case Kind.INTEGER | Kind.DECIMAL:
            value = Decimal(constant.value)
        case Kind.TEXT | Kind.STRING if re.fullmatch(r"[+-]?\d+(\.\d+)?", constant.value, re.A):
            value = Decimal(constant.value)
        case _:
            return None
    scaled = value.scaleb(scale)
    if scaled != int(scaled) or abs(scaled) >= 10**precision:
        return None
    return Constant(Kind.DECIMAL, value)


def _to_floating(constant: Constant, kind: Kind) -> Constant | None:
    match constant.kind:
        case Kind.INTEGER if abs(constant.value) <= 2**53:
            value = float(constant.value)
        case Kind.FLOAT | Kind.DOUBLE:
            value = constant.value
        case Kind.DECIMAL if len(constant.value.as_tuple().digits) <= 15:
            if constant.value and constant.value.adjusted() < -20:
                return None
            value = float(constant.value)
        case Kind.TEXT | Kind.STRING:
            if not _FLOATING.fullmatch(constant.value):
                return None
            value = float(constant.value)
        case _:
            return None
    if kind is Kind.FLOAT:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return Constant(kind, value)


def _to_blob(text: str) -> Constant | None:
    pieces = re.findall(r"\\x([0-9a-fA-F]{2})|([\x20-\x5b\x5d-\x7e])|(.)", text, re.DOTALL)
    if any(other for _, _, other in pieces):
        return None
    return Constant(
        Kind.BLOB, b"".join(bytes.fromhex(code) or plain.encode() for code, plain, _ in pieces)
    )


def unify(constants: Sequence[Constant], context: QueryContext) -> list[Constant] | None:
    """Constants of one IN list or BETWEEN, which DuckDB converts to one type first.

    None where the common type is not known. NULLs stay as they are.
    """
    kinds = {each.kind for each in constants} - {Kind.NULL}
    if len(kinds) <= 1 or kinds in ({Kind.INTEGER, Kind.DECIMAL}, {Kind.TEXT, Kind.STRING}):
        return list(constants)
    if Kind.TIMESTAMPTZ in kinds:
        found = [to_timestamptz(each, context) for each in constants]
    elif kinds <= {Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}:
        return list(constants)
    elif kinds <= {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}:
        found = [
            each if each.kind is Kind.NULL else _to_floating(each, Kind.DOUBLE)
            for each in constants
        ]
    else:
        return None
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def to_date(constant: Constant, context: QueryContext) -> Constant | None:
    """CAST(… AS DATE); an instant by its day in the session's zone."""
    match constant.kind:
        case Kind.DATE | Kind.NULL:
            return constant
        case Kind.TEXT | Kind.STRING:
            found = _DATE.fullmatch(constant.value.strip(" "))
            if not found:
                return None
            return Constant(Kind.DATE, _days(date(int(found[1]), int(found[2]), int(found[3]))))
        case Kind.TIMESTAMP:
            high = None if constant.high is None else constant.high // DAY
            return Constant(Kind.DATE, constant.value // DAY, high)
        case Kind.TIMESTAMPTZ:
            local = to_local(constant, context)
            return to_date(local, context)
        case _:
            return None


def to_timestamp(constant: Constant, context: QueryContext) -> Constant | None:
    """CAST(… AS TIMESTAMP); an instant by the clock of the session's zone."""
    match constant.kind:
        case Kind.TIMESTAMP | Kind.NULL:
            return constant
        case Kind.DATE:
            high = None if constant.high is None else constant.high * DAY
            return Constant(Kind.TIMESTAMP, constant.value * DAY, high)
        case Kind.TIMESTAMPTZ:
            return to_local(constant, context)
        case Kind.TEXT | Kind.STRING:
            read = _read_timestamp(constant.value)
            return Constant(Kind.TIMESTAMP, read[0]) if read and read[1] is None else None
        case _:
            return None


def to_timestamptz(constant: Constant, context: QueryContext) -> Constant | None:
    """CAST(… AS TIMESTAMPTZ); a time without zone is read in the session's zone."""
    match constant.kind:
        case Kind.TIMESTAMPTZ | Kind.NULL:
            return constant
        case Kind.DATE | Kind.TIMESTAMP:
            local = to_timestamp(constant, context)
            return None if local is None else to_instant(local, context)
        case Kind.TEXT | Kind.STRING:
            read = _read_timestamp(constant.value)
            if read is None:
                return None
            if read[1] is not None:
                return Constant(Kind.TIMESTAMPTZ, read[0] - read[1])
            return to_instant(Constant(Kind.TIMESTAMP, read[0]), context)
        case _:
            return None


def _read_timestamp(text: str) -> tuple[int, int | None] | None:
    """µs on the clock of the text and its offset from UTC in µs, None without one."""
    found = _TIMESTAMP.fullmatch(text.strip(" "))
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = _days(date(int(year), int(month), int(day)))
    clock = time(int(hour or 0), int(minute or 0), int(second or 0))
    micros = ((clock.hour * 60 + clock.minute) * 60 + clock.second) * SECOND
    micros += days * DAY + int((fraction or "").ljust(6, "0"))
    if zone is None:
        return micros, None
    if zone == "Z":
        return micros, 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60 * SECOND
    return micros, -offset if zone[0] == "-" else offset


# ------------------------------------------------------------------ the session's zone


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _is_utc(context: QueryContext) -> bool:
    return context.settings.timezone in ("UTC", "Etc/UTC")


def zone_slack(context: QueryContext, slack: int) -> int:
    """``slack`` unless the session's zone is UTC, where clock and instant are one."""
    return 0 if _is_utc(context) else slack


def _offset(clock: int, context: QueryContext, fold: int) -> int:
    moment = (_EPOCH + timedelta(microseconds=clock)).replace(fold=fold)
    offset = _zone(context.settings.timezone).utcoffset(moment)
    assert offset is not None
    return offset // timedelta(microseconds=1)


def to_instant(local: Constant, context: QueryContext) -> Constant:
    """The instants that a TIMESTAMP may be in the session's zone. Raises OverflowError."""
    if _is_utc(context):
        return replace(local, kind=Kind.TIMESTAMPTZ)
    low = min(local.value - _offset(local.value, context, fold) for fold in (0, 1))
    high = max(local.greatest - _offset(local.greatest, context, fold) for fold in (0, 1))
    if not (low > _SURE_FROM and high < _SURE_TO and local.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMPTZ, low, None if low == high else high)


def to_local(instant: Constant, context: QueryContext) -> Constant:
    """The clock of the session's zone at an instant. Raises OverflowError."""
    if _is_utc(context):
        return replace(instant, kind=Kind.TIMESTAMP)
    low, high = (each + _offset_at(each, context) for each in (instant.value, instant.greatest))
    sure = instant.value > _SURE_FROM and instant.greatest < _SURE_TO
    if not (sure and instant.is_exact):
        low, high = low - DAY, high + DAY
    return Constant(Kind.TIMESTAMP, min(low, high), None if low == high else max(low, high))


def _offset_at(instant: int, context: QueryContext) -> int:
    moment = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC)
    offset = moment.astimezone(_zone(context.settings.timezone)).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def offset_is_steady(instant: Constant, context: QueryContext) -> bool:
    """Whether the zone keeps one offset for two days around an instant."""
    if _is_utc(context):
        return True
    low, high = instant.value - 2 * DAY, instant.greatest + 2 * DAY
    if not (low > _SURE_FROM and high < _SURE_TO) or high - low > 5 * DAY:
        return False
    steps = range(low, high + 3 * HOUR, 3 * HOUR)
    return len({_offset_at(each, context) for each in steps}) == 1


# ------------------------------------------------------------------ arithmetic


def _arithmetic(node: exp.Binary, context: QueryContext) -> Constant | None:
    left, right = _fold(node.this, context), _fold(node.expression, context)
    if left is None or right is None:
        return None
    if Kind.NULL in (left.kind, right.kind):
        return Constant(Kind.NULL, None)
    match node:
        case exp.Mul():
            return _product(left, right)
        case exp.Sub():
            if left.kind is right.kind is Kind.DATE and left.is_exact and right.is_exact:
                return Constant(Kind.INTEGER, left.value - right.value)
            minus = _negated(right)
            return None if minus is None else add(left, minus, context)
        case _:
            return add(left, right, context)


def _product(left: Constant, right: Constant) -> Constant | None:
    if left.kind is Kind.INTERVAL:
        left, right = right, left
    if left.kind is Kind.INTEGER and right.kind is Kind.INTERVAL:
        each = right.value
        factor = left.value
        return Constant(
            Kind.INTERVAL, Interval(each.months * factor, each.days * factor, each.micros * factor)
        )
    if left.kind is right.kind is Kind.INTEGER:
        return Constant(Kind.INTEGER, left.value * right.value)
    return None


def add(left: Constant, right: Constant, context: QueryContext) -> Constant | None:
    """``left + right`` where DuckDB's sum is exact; None for the rest."""
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        value = left.value + right.value
        return Constant(Kind.INTEGER if kinds == {Kind.INTEGER} else Kind.DECIMAL, value)
    if kinds == {Kind.DOUBLE}:
        return Constant(Kind.DOUBLE, left.value + right.value)
    if kinds == {Kind.INTERVAL}:
        return Constant(Kind.INTERVAL, left.value + right.value)
    if right.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        left, right = right, left
    if left.kind is Kind.DATE and right.kind is Kind.INTEGER:
        high = None if left.high is None else left.high + right.value
        return Constant(Kind.DATE, left.value + right.value, high)
    if right.kind is Kind.INTERVAL:
        return _moved(left, right.value, context)
    return None


def _moved(moment: Constant, step: Interval, context: QueryContext) -> Constant | None:
    match moment.kind:
        case Kind.DATE | Kind.TIMESTAMP:
            start = to_timestamp(moment, context)
            assert start is not None
            high = None if start.high is None else _shift(start.high, step)
            return Constant(Kind.TIMESTAMP, _shift(start.value, step), high)
        case Kind.TIMESTAMPTZ if not step.months and not step.days:
            high = None if moment.high is None else moment.high + step.micros
            return Constant(Kind.TIMESTAMPTZ, moment.value + step.micros, high)
        case Kind.TIMESTAMPTZ:
            # Months and days are steps on the calendar of the session's zone.
            local = to_local(moment, context)
            calendar_step = Interval(step.months, step.days)
            low = _shift(local.value, calendar_step)
            high = _shift(local.greatest, calendar_step)
            instant = to_instant(Constant(Kind.TIMESTAMP, low, high), context)
            return _moved(instant, Interval(0, 0, step.micros), context)
        case _:
            return None


def _shift(micros: int, step: Interval) -> int:
    days, clock = divmod(micros, DAY)
    if step.months:
        day = _EPOCH_DATE + timedelta(days=days)
        year, month = divmod(day.year * 12 + day.month - 1 + step.months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        days = _days(date(year, month + 1, min(day.day, last)))
    return (days + step.days) * DAY + clock + step.micros


def _days(day: date) -> int:
    return (day - _EPOCH_DATE).days


def _now(context: QueryContext) -> int:
    now = context.now if context.now.tzinfo else context.now.replace(tzinfo=UTC)
    return (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# ------------------------------------------------------------------ intervals and truncation

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_DAYS: Final = {"day": 1, "week": 7}
_MICROS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": HOUR,
}


def unit_name(text: str) -> str:
    """ "DAYS" → "day"; the text itself in lower case for what is no unit of time."""
    lower = text.lower()
    for name in (lower, lower.removesuffix("s")):
        if name in _MONTHS or name in _DAYS or name in _MICROS:
            return name
    return lower


def unit_of(node: exp.Expr) -> str:
    """The unit of a truncation or extraction, "" when it is not a plain word."""
    unit = node.args.get("unit")
    return unit_name(unit.name) if isinstance(unit, exp.Var | exp.Literal) else ""


def _interval(node: exp.Interval, context: QueryContext) -> Constant | None:
    unit = node.args.get("unit")
    if node.this is None:
        return None
    inner = _fold(node.this, context)
    if inner is None:
        return None
    if inner.kind is Kind.TEXT and unit is None:
        return _interval_text(inner.value)
    if not isinstance(unit, exp.Var):
        return None
    if inner.kind is Kind.TEXT:
        if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", inner.value):
            return None
        amount = int(inner.value)
    elif inner.kind is Kind.INTEGER:
        amount = inner.value
    else:
        return None
    step = _step(amount, unit.name)
    return None if step is None else Constant(Kind.INTERVAL, step)


def _interval_text(text: str) -> Constant | None:
    total, position = Interval(), 0
    while position < len(text):
        part = _INTERVAL_PART.match(text, position)
        step = _step(int(part[1]), part[2]) if part else None
        if part is None or step is None:
            return None
        total, position = total + step, part.end()
    return Constant(Kind.INTERVAL, total) if position else None


def _step(amount: int, unit: str) -> Interval | None:
    name = unit_name(unit)
    if name in _MONTHS:
        return Interval(months=amount * _MONTHS[name])
    if name in _DAYS:
        return Interval(days=amount * _DAYS[name])
    if name in _MICROS:
        return Interval(micros=amount * _MICROS[name])
    return None


def bucket_start(micros: int, unit: str) -> int | None:
    """The start of the ``unit`` that holds a time on a clock, in µs; None for other units.

    Raises OverflowError outside the years 1 to 9999.
    """
    if unit in ("hour", "minute", "second", "millisecond", "microsecond"):
        return micros - micros % _MICROS[unit]
    days = micros // DAY
    day = _EPOCH_DATE + timedelta(days=days)
    match unit:
        case "day":
            start = day
        case "week":
            start = day - timedelta(days=day.weekday())
        case "month":
            start = day.replace(day=1)
        case "quarter":
            start = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            start = day.replace(month=1, day=1)
        case _:
            return None
    return _days(start) * DAY


def next_bucket(start: int, unit: str) -> int:
    """The start of the ``unit`` after the one that starts at ``start``."""
    step = _step(1, unit)
    assert step is not None
    return _shift(start, step)


def _truncated(moment: Constant, unit: str, context: QueryContext) -> Constant | None:
    if not moment.is_exact or moment.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return None
    fine = moment.kind is Kind.TIMESTAMPTZ and unit in _MICROS
    if fine and not offset_is_steady(moment, context):
        return None
    local = to_timestamp(moment, context)
    if local is None or not local.is_exact:
        return None
    start = bucket_start(local.value, unit)
    if start is None:
        return None
    truncated = Constant(Kind.TIMESTAMP, start)
    if moment.kind is Kind.TIMESTAMPTZ:
        return to_instant(truncated, context)
    return truncated
