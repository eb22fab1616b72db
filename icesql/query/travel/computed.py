"""The value of a constant time expression, computed by the engine like constants for pruning."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.constants.constant import Constant, Kind, NotConstant
from icesql.query.constants.current_time import time_literal
from icesql.query.constants.evaluated import evaluated
from icesql.query.constants.relative_time import EPOCH
from icesql.query.constants.time_text import TIME_SHAPE, zone_named
from icesql.query.pushdown.computed.expression import Expression, replaced
from icesql.query.pushdown.computed.reading import expression_of_text
from icesql.query.pushdown.computed.sql import NotWritable, write
from icesql.query.travel.instant import Value, read, since_epoch
from icesql.sql.time_travel import written_value

if TYPE_CHECKING:
    from icesql.context import QueryContext

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
