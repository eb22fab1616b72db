"""Fold constant SQL expressions to typed values, as DuckDB would compute them.

Anything whose value is not certain is not folded: a condition on it is then not pushed, and the
engine evaluates it alone.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.query.constants.casts import cast, to_date, to_timestamp
from icesql.query.constants.constant import Constant, Interval, Kind, NotConstant, negative, total
from icesql.query.constants.session_zone import offset_is_steady, to_instant, to_local
from icesql.query.constants.time_units import (
    FINER_THAN_DAY,
    bucket_start,
    epoch_days,
    interval_of,
    interval_of_text,
    shift,
    unit_of,
)

if TYPE_CHECKING:
    from icesql.context import QueryContext


def fold(node: exp.Expr | None, query: QueryContext) -> Constant | None:
    """The value of a constant expression, None when it has none or it is not certain.

    >>> folded("1.10 + 2")
    DECIMAL 3.10
    >>> folded("DATE '2024-02-28' + 1")
    DATE 19782
    >>> folded("random()")
    None
    """
    if node is None:
        return None
    try:
        return _fold(node, query)
    except (ValueError, OverflowError, ArithmeticError, NotConstant, RecursionError):
        return None


def _fold(node: exp.Expr, query: QueryContext) -> Constant | None:
    match node:
        case exp.Paren():
            return _fold(node.this, query)
        case exp.Null():
            known: Constant | None = node.meta.get("constant")  # what the engine was asked for
            return known or Constant(Kind.NULL, None)
        case exp.Boolean():
            return Constant(Kind.BOOLEAN, bool(node.this))
        case exp.Literal():
            return Constant(Kind.TEXT, node.this) if node.is_string else _number(str(node.this))
        case exp.Neg():
            return _negated(_fold(node.this, query))
        case exp.Cast():  # TryCast is one: a constant that fails to convert is not folded
            inner = _fold(node.this, query)
            return None if inner is None else cast(inner, node.to, query)
        case exp.Date() | exp.TsOrDsToDate() if not node.expressions and not node.args.get("zone"):
            inner = _fold(node.this, query)
            return None if inner is None else to_date(inner, query)
        case exp.Interval():
            return _interval(node, query)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node, query)
        case exp.TimestampTrunc() | exp.DateTrunc():
            inner = _fold(node.this, query)
            return None if inner is None else _truncated(inner, unit_of(node), query)
        case exp.DateFromParts() if node.args.get("month") and node.args.get("day"):
            parts = [_fold(node.args[part], query) for part in ("year", "month", "day")]
            if any(part is None or part.kind is not Kind.INTEGER for part in parts):
                return None
            return Constant(Kind.DATE, epoch_days(date(*(part.value for part in parts if part))))
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
        return Constant(inner.kind, negative(inner.value))
    return None


def _arithmetic(node: exp.Binary, query: QueryContext) -> Constant | None:
    # A sum of 900 terms is as deep on its left.
    spine: list[exp.Expr] = [node]
    while isinstance(spine[-1].this, exp.Add | exp.Sub | exp.Mul):
        spine.append(spine[-1].this)
    result = _fold(spine[-1].this, query)
    for each in reversed(spine):
        right = None if result is None else _fold(each.expression, query)
        if result is None or right is None:
            return None
        result = _combined(each, result, right, query)
    return result


def _combined(
    node: exp.Expr, left: Constant, right: Constant, query: QueryContext
) -> Constant | None:
    if Kind.NULL in (left.kind, right.kind):
        return Constant(Kind.NULL, None)
    match node:
        case exp.Mul():
            return _product(left, right)
        case exp.Sub():
            if left.kind is right.kind is Kind.DATE and left.is_exact and right.is_exact:
                return Constant(Kind.INTEGER, left.value - right.value)
            minus = _negated(right)
            return None if minus is None else add(left, minus, query)
        case _:
            return add(left, right, query)


def _product(left: Constant, right: Constant) -> Constant | None:
    if left.kind is Kind.INTERVAL:
        left, right = right, left
    if left.kind is Kind.INTEGER and right.kind is Kind.INTERVAL:
        return Constant(Kind.INTERVAL, right.value * left.value)
    if left.kind is right.kind is Kind.INTEGER:
        return Constant(Kind.INTEGER, left.value * right.value)
    return None


def add(left: Constant, right: Constant, query: QueryContext) -> Constant | None:
    """``left + right`` where DuckDB's sum is exact; None for the rest."""
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        value = total(left.value, right.value)
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
        return _moved(left, right.value, query)
    return None


def _moved(moment: Constant, step: Interval, query: QueryContext) -> Constant | None:
    match moment.kind:
        case Kind.DATE | Kind.TIMESTAMP:
            start = to_timestamp(moment, query)
            assert start is not None
            high = None if start.high is None else shift(start.high, step)
            return Constant(Kind.TIMESTAMP, shift(start.value, step), high)
        case Kind.TIMESTAMPTZ if not step.months and not step.days:
            high = None if moment.high is None else moment.high + step.micros
            return Constant(Kind.TIMESTAMPTZ, moment.value + step.micros, high)
        case Kind.TIMESTAMPTZ:
            # Months and days are steps on the calendar of the session's zone.
            local = to_local(moment, query)
            calendar_step = Interval(step.months, step.days)
            low = shift(local.value, calendar_step)
            high = shift(local.greatest, calendar_step)
            instant = to_instant(Constant(Kind.TIMESTAMP, low, high), query)
            return _moved(instant, Interval(0, 0, step.micros), query)
        case _:
            return None


def _interval(node: exp.Interval, query: QueryContext) -> Constant | None:
    unit = node.args.get("unit")
    if node.this is None:
        return None
    inner = _fold(node.this, query)
    if inner is None:
        return None
    if inner.kind is Kind.TEXT and unit is None:
        return Constant(Kind.INTERVAL, interval_of_text(inner.value))
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
    return Constant(Kind.INTERVAL, interval_of(amount, unit.name))


def _truncated(moment: Constant, unit: str, query: QueryContext) -> Constant | None:
    if not moment.is_exact or moment.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return None
    fine = moment.kind is Kind.TIMESTAMPTZ and unit in FINER_THAN_DAY
    if fine and not offset_is_steady(moment, query):
        return None
    local = to_timestamp(moment, query)
    if local is None or not local.is_exact:
        return None
    start = bucket_start(local.value, unit)
    if start is None:
        return None
    truncated = Constant(Kind.TIMESTAMP, start)
    if moment.kind is Kind.TIMESTAMPTZ:
        return to_instant(truncated, query)
    return truncated
