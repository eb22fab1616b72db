"""Invert functions that keep the order of a column, so that bounds of the column can answer.

``date(ts) = d`` becomes a range on ``ts``. Every result is implied by the comparison; it may be
wider where clocks change, months clamp, or arithmetic is inexact. Arithmetic that overflows is an
error in the engine for the rows concerned, so no row passes that the result leaves out.

>>> implied("date(ts) = DATE '2024-02-29'")
ts >= 2024-02-29 00:00:00 AND ts < 2024-03-01 00:00:00
>>> implied("year(ts) < 2025")
ts < 2025-01-01 00:00:00
>>> implied("ts + INTERVAL 1 DAY < TIMESTAMP '2024-03-01'")
ts < 2024-02-29 00:00:00
>>> implied("i + 1 > 10")
i > 9
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final
from typing import cast as typing_cast

from msgspec import Struct
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term
from icesql.query.constants.casts import cast, to_date, to_timestamp, to_timestamptz
from icesql.query.constants.constant import DAY, HOUR, Constant, Interval, Kind, negative, total
from icesql.query.constants.folding import add, fold
from icesql.query.constants.session_zone import to_local, zone_slack
from icesql.query.constants.time_units import (
    FINER_THAN_DAY,
    bucket_start,
    next_bucket,
    unit_name,
    unit_of,
)
from icesql.query.dialects.instant_calls import FIRST_INSTANT, INSTANTS
from icesql.query.pushdown.comparison import FLIPPED, all_of, any_of
from icesql.query.pushdown.like import left_of

if TYPE_CHECKING:
    from icesql.query.pushdown.predicate import Translator

_INTEGERS: Final = (t.IntegerType, t.LongType)
_EXACT: Final = (t.IntegerType, t.LongType, t.DecimalType)
_ZONED: Final = (t.TimestamptzType, t.TimestamptzNanoType)
_CLOCKS: Final = (t.TimestampType, t.TimestampNanoType)
_LARGER: Final = (Operation.GT, Operation.GT_EQ)
_SMALLER: Final = (Operation.LT, Operation.LT_EQ)


def unwrap(
    to: Translator, operation: Operation, node: exp.Expr, constant: Constant
) -> Predicate | None:
    """What ``node operation constant`` implies for the column inside ``node``; None if nothing.

    ``to`` translates the comparison of the smaller expression. ``constant`` is not NULL.
    """
    try:
        return _Inversion(operation, constant, to).of(node)
    except (OverflowError, ValueError, ArithmeticError):
        return None


class _Inversion(Struct, frozen=True):
    operation: Operation
    constant: Constant
    to: Translator

    def of(self, node: exp.Expr) -> Predicate | None:
        match node:
            case exp.Paren():
                return self.to.compare(self.operation, node.this, self.constant)
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Neg():
                return self._numbers.negation(node)
            case exp.Mul():
                return self._numbers.product(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Date() | exp.TsOrDsToDate() if not node.expressions:
                return None if node.args.get("zone") else self._day(node.this)
            case exp.Year():
                return self._year(node.this)
            case exp.Extract() if unit_name(node.name) == "year":
                return self._year(node.expression)
            case exp.Anonymous() if node.name in INSTANTS:
                from icesql.query.dialects.spark.instants import plain

                return self.of(plain(node))
            case exp.Anonymous() if _is_year_part(node):
                return self._year(node.expressions[1])
            case exp.TimestampTrunc() | exp.DateTrunc() if not node.args.get("zone"):
                return self._truncation(node.this, unit_of(node))
            case exp.Substring():
                start, length = (fold(node.args.get(each), self.to.query) for each in _SUBSTRING)
                if start is None or start.kind is not Kind.INTEGER or start.value != 1:
                    return None
                return self._prefix(node.this, length)
            case exp.Left():
                return self._prefix(node.this, fold(node.expression, self.to.query))
            case _:
                return None

    # -------------------------------------------------------------- sums

    def _sum(self, node: exp.Binary) -> Predicate | None:
        left, right = node.this, node.expression
        minus = isinstance(node, exp.Sub)
        known, inner, on_left = fold(right, self.to.query), left, False
        if known is None:
            known, inner, on_left = fold(left, self.to.query), right, True
        if known is None:
            return None
        if known.kind is Kind.NULL:
            return ALWAYS_FALSE
        if known.kind is Kind.INTERVAL:
            if on_left and minus:
                return None
            return self._moved(inner, -known.value if minus else known.value)
        found = self.to.column(inner)
        if found is not None and isinstance(found.type, t.DateType):
            return self._days(inner, known, minus=minus, on_left=on_left)
        return self._numbers.sum(inner, known, minus=minus, on_left=on_left)

    @property
    def _numbers(self) -> _Numbers:
        return _Numbers(self.operation, self.constant, self.to)

    def _days(
        self, inner: exp.Expr, known: Constant, *, minus: bool, on_left: bool
    ) -> Predicate | None:
        """A date column and a number of days, or the days between it and a date."""
        target = self.constant
        if known.kind is Kind.INTEGER and not (minus and on_left):
            day = to_date(target, self.to.query) if target.kind is Kind.TEXT else target
            if day is None or day.kind is not Kind.DATE:
                return None
            step = Constant(Kind.INTEGER, known.value if minus else -known.value)
            moved = add(day, step, self.to.query)
            return None if moved is None else self.to.compare(self.operation, inner, moved)
        if known.kind is Kind.DATE and minus and target.kind is Kind.INTEGER and known.is_exact:
            if on_left:
                day = Constant(Kind.DATE, known.value - target.value)
                return self.to.compare(FLIPPED[self.operation], inner, day)
            day = Constant(Kind.DATE, known.value + target.value)
            return self.to.compare(self.operation, inner, day)
        return None

    # -------------------------------------------------------------- casts

    def _cast(self, node: exp.Cast) -> Predicate | None:
        found = self.to.column(node.this)
        if found is None:
            return None
        to, constant = node.to, self.constant
        Type = exp.DataType.Type
        if to.expressions and to.this != Type.DECIMAL:
            return None
        if to.this == Type.DATE:
            return self._day(node.this)
        if to.this in exp.DataType.INTEGER_TYPES and isinstance(found.type, _INTEGERS):
            exact = cast(constant, to, self.to.query) if constant.kind is Kind.TEXT else constant
            if exact is None or exact.kind not in (Kind.INTEGER, Kind.DECIMAL):
                return None
            return self.to.compare(self.operation, node.this, exact)
        if to.this == Type.DOUBLE and isinstance(found.type, (*_EXACT, t.FloatType)):
            number = cast(constant, to, self.to.query)
            return None if number is None else self.to.compare(self.operation, node.this, number)
        if to.this in (Type.TIMESTAMP, Type.TIMESTAMPNTZ) and isinstance(
            found.type, (t.DateType, *_ZONED)
        ):
            clock = (
                to_timestamp(constant, self.to.query) if constant.kind is Kind.TEXT else constant
            )
            if clock is None or clock.kind not in (Kind.DATE, Kind.TIMESTAMP):
                return None
            return self.to.compare(self.operation, node.this, clock)
        if to.this in (Type.TIMESTAMPTZ, Type.TIMESTAMPLTZ) and isinstance(
            found.type, (t.DateType, t.TimestampType)
        ):
            instant = to_timestamptz(constant, self.to.query)
            return None if instant is None else self.to.compare(self.operation, node.this, instant)
        if to.this in (Type.VARCHAR, Type.TEXT) and isinstance(found.type, t.StringType):
            return self.to.compare(self.operation, node.this, constant)
        return None

    # -------------------------------------------------------------- buckets of time

    def _buckets(
        self, node: exp.Expr, start: Constant, end: Constant, *, aligned: bool
    ) -> Predicate:
        """``bucket(node) op target`` where ``target`` lies in the bucket from start to end.

        ``aligned``: the target is the name of that bucket, so ``=`` can hold.
        """
        before_end = self.to.compare(Operation.LT, node, end)
        from_start = self.to.compare(Operation.GT_EQ, node, start)
        from_end = self.to.compare(Operation.GT_EQ, node, end)
        before_start = self.to.compare(Operation.LT, node, start)
        match self.operation:
            case Operation.EQ:
                return all_of([from_start, before_end]) if aligned else ALWAYS_FALSE
            case Operation.NOT_EQ:
                if aligned:
                    return any_of([before_start, from_end])
                return any_of([before_end, from_start])
            case Operation.LT:
                return before_start if aligned else before_end
            case Operation.LT_EQ:
                return before_end
            case Operation.GT:
                return from_end
            case _:
                return from_start if aligned else from_end

    def _is_time(self, node: exp.Expr) -> t.IcebergType | None:
        """The type of a date or timestamp column, of one cast or moved, None for the rest."""
        found = self.to.column(node)
        if found is not None and isinstance(found.type, (t.DateType, *_CLOCKS, *_ZONED)):
            return found.type
        return None

    def _day(self, node: exp.Expr) -> Predicate | None:
        """CAST(node AS DATE) compared with a date."""
        column_type = self._is_time(node)
        constant = self.constant
        if constant.kind is Kind.TEXT:
            day = to_date(constant, self.to.query)
            if day is None:
                return None
            constant = day
        if column_type is None:
            return None
        if isinstance(column_type, t.DateType):
            return self.to.compare(self.operation, node, constant)
        if constant.kind is Kind.TIMESTAMPTZ:
            constant = to_local(constant, self.to.query).widened(zone_slack(self.to.query, DAY))
        if constant.kind is Kind.TIMESTAMP:
            # The day is compared as its midnight.
            aligned = constant.is_exact and constant.value % DAY == 0
            low, high = constant.value // DAY, constant.greatest // DAY
        elif constant.kind is Kind.DATE:
            aligned = True
            low, high = constant.value, constant.greatest
        else:
            return None
        if low != high or not constant.is_exact:
            return self._wide_buckets(node, low * DAY, (high + 1) * DAY)
        start, end = (Constant(Kind.TIMESTAMP, each * DAY) for each in (low, low + 1))
        return self._buckets(node, start, end, aligned=aligned)

    def _wide_buckets(self, node: exp.Expr, start: int, end: int) -> Predicate | None:
        """The comparison when the target is only known to lie between two times on a clock."""
        parts = []
        if self.operation in (*_SMALLER, Operation.EQ):
            parts.append(self.to.compare(Operation.LT, node, Constant(Kind.TIMESTAMP, end)))
        if self.operation in (*_LARGER, Operation.EQ):
            parts.append(self.to.compare(Operation.GT_EQ, node, Constant(Kind.TIMESTAMP, start)))
        return all_of(parts) if parts else None

    def _year(self, node: exp.Expr) -> Predicate | None:
        if self._is_time(node) is None:
            return None
        constant = self.constant
        if constant.kind is Kind.DECIMAL and constant.value == int(constant.value):
            constant = Constant(Kind.INTEGER, int(constant.value))
        if constant.kind is not Kind.INTEGER or not 1 <= constant.value <= 9998:
            return None
        start, end = (
            to_timestamp(Constant(Kind.TEXT, f"{year:04d}-01-01"), self.to.query)
            for year in (constant.value, constant.value + 1)
        )
        if start is None or end is None:
            return None
        return self._buckets(node, start, end, aligned=True)

    def _truncation(self, node: exp.Expr, unit: str) -> Predicate | None:
        clock_time = _clock_of(node)
        zoned = clock_time is not None
        node = node if clock_time is None else clock_time
        column_type = self._is_time(node)
        if column_type is None:
            return None
        if isinstance(column_type, t.DateType) and unit in FINER_THAN_DAY:
            return None  # DuckDB compares the day alone
        if zoned or isinstance(column_type, _ZONED):
            instant = to_timestamptz(self.constant, self.to.query)
            if instant is None:
                return None
            clock = to_local(instant, self.to.query)
            slack = zone_slack(self.to.query, 3 * HOUR if clock.is_exact else DAY)
        else:
            moment = to_timestamp(self.constant, self.to.query)
            if moment is None or self.constant.kind is Kind.TIMESTAMPTZ:
                return None
            clock, slack = moment, 0
        start, last = (
            bucket_start(clock.value - slack, unit),
            bucket_start(clock.greatest + slack, unit),
        )
        if start is None or last is None:
            return None
        if slack:
            # Truncation works on the session's clock, the comparison on instants: where the
            # clock changes they disagree by the change, which the slack covers.
            return self._wide_buckets(node, start - slack, next_bucket(last, unit) + slack)
        low, high = (Constant(Kind.TIMESTAMP, each) for each in (start, next_bucket(start, unit)))
        return self._buckets(node, low, high, aligned=clock.value == start)

    def _moved(self, inner: exp.Expr, step: Interval) -> Predicate | None:
        """``inner + step`` compared with a date or timestamp."""
        column_type = self._is_time(inner)
        if column_type is None:
            return None
        zoned = isinstance(column_type, _ZONED)
        target = (to_timestamptz if zoned else to_timestamp)(self.constant, self.to.query)
        if target is None or (self.constant.kind is Kind.TIMESTAMPTZ and not zoned):
            return None
        slack = 0
        if step.months:
            # The last days of a month all move to the end of a shorter one.
            slack += 4 * DAY
        if zoned and (step.months or step.days):
            slack += zone_slack(self.to.query, DAY)
        back = Interval(0, 0, -step.micros)
        target = add(target, Constant(Kind.INTERVAL, back), self.to.query) or target
        calendar_back = Constant(Kind.INTERVAL, Interval(-step.months, -step.days))
        moved = add(target, calendar_back, self.to.query)
        return (
            None if moved is None else self.to.compare(self.operation, inner, moved.widened(slack))
        )

    # -------------------------------------------------------------- prefixes of strings

    def _prefix(self, node: exp.Expr, length: Constant | None) -> Predicate | None:
        """``left(node, length)`` compared with a text."""
        found, target = self.to.column(node), self.constant
        if found is None or not isinstance(found.type, t.StringType):
            return None
        if length is None or length.kind is not Kind.INTEGER or length.value < 1:
            return None
        if target.kind not in (Kind.TEXT, Kind.STRING):
            return None
        return left_of(self.operation, _term(found), length.value, target.value)


def _clock_of(node: exp.Expr) -> exp.Expr | None:
    """What is made an instant in the session's zone; None for all else."""
    zoned = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ)
    if isinstance(node, exp.Anonymous) and node.name == FIRST_INSTANT:
        return typing_cast("exp.Expr", node.expressions[0]) if len(node.expressions) == 1 else None
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and node.to.this in zoned:
        return typing_cast("exp.Expr", node.this)
    return None


class _Numbers(Struct, frozen=True):
    """Inverts exact arithmetic on a whole-number or decimal column."""

    operation: Operation
    constant: Constant
    to: Translator

    def _is_exact_number(self, node: exp.Expr) -> bool:
        """Whether ``node`` is an int or decimal column, or exact arithmetic on one."""
        match node:
            case exp.Paren() | exp.Neg():
                return self._is_exact_number(node.this)
            case exp.Add() | exp.Sub() | exp.Mul():
                return all(
                    self._is_exact_number(side) or self._exact_constant(side) is not None
                    for side in (node.this, node.expression)
                )
            case _:
                found = self.to.column(node)
                return found is not None and isinstance(found.type, _EXACT)

    def _exact_constant(self, node: exp.Expr) -> Constant | None:
        constant = fold(node, self.to.query)
        if constant is not None and constant.kind in (Kind.INTEGER, Kind.DECIMAL):
            return constant
        return None

    def negation(self, node: exp.Neg) -> Predicate | None:
        value = self.constant
        if value.kind not in (Kind.INTEGER, Kind.DECIMAL) or not self._is_exact_number(node.this):
            return None
        negated = Constant(value.kind, negative(value.value))
        return self.to.compare(FLIPPED[self.operation], node.this, negated)

    def sum(
        self, inner: exp.Expr, known: Constant, *, minus: bool, on_left: bool
    ) -> Predicate | None:
        """``inner + known`` or, with ``minus``, either less the other."""
        if not self._is_exact_number(inner) or known.kind not in (Kind.INTEGER, Kind.DECIMAL):
            return None
        if self.constant.kind not in (Kind.INTEGER, Kind.DECIMAL):
            return None
        operation, target = self.operation, self.constant
        if minus and on_left:  # c - x op k: x flipped(op) c - k
            operation, difference = FLIPPED[operation], _minus(known, target)
        elif minus:
            difference = _plus(target, known)
        else:
            difference = _minus(target, known)
        return self.to.compare(operation, inner, difference)

    def product(self, node: exp.Mul) -> Predicate | None:
        """A whole-number column times a whole number."""
        factor, inner = fold(node.expression, self.to.query), node.this
        if factor is None:
            factor, inner = fold(node.this, self.to.query), node.expression
        found = self.to.column(inner)
        if found is None or not isinstance(found.type, _INTEGERS):
            return None
        target = self.constant
        if factor is None or factor.kind is not Kind.INTEGER or target.kind is not Kind.INTEGER:
            return None
        if not factor.value:
            return None
        quotient = Fraction(target.value, factor.value)
        operation = FLIPPED[self.operation] if factor.value < 0 else self.operation
        if quotient.denominator == 1:
            return self.to.compare(operation, inner, Constant(Kind.INTEGER, quotient.numerator))
        floor = Constant(Kind.INTEGER, quotient.numerator // quotient.denominator)
        match operation:
            case Operation.EQ:
                return ALWAYS_FALSE
            case Operation.NOT_EQ:
                return Leaf(Operation.NOT_NULL, _term(found))
            case Operation.LT | Operation.LT_EQ:
                return self.to.compare(Operation.LT_EQ, inner, floor)
            case _:
                return self.to.compare(Operation.GT, inner, floor)


_SUBSTRING: Final = ("start", "length")


def _term(found: t.NestedField) -> Term:
    return Term(found.field_id, found.name)


def _is_year_part(node: exp.Anonymous) -> bool:
    if node.name.lower() not in ("date_part", "datepart") or len(node.expressions) != 2:
        return False
    part = node.expressions[0]
    return isinstance(part, exp.Literal) and part.is_string and unit_name(part.name) == "year"


def _plus(left: Constant, right: Constant) -> Constant:
    kind = Kind.INTEGER if left.kind is right.kind is Kind.INTEGER else Kind.DECIMAL
    return Constant(kind, total(left.value, right.value))


def _minus(left: Constant, right: Constant) -> Constant:
    return _plus(left, Constant(right.kind, negative(right.value)))
