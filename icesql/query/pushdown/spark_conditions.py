"""Conditions that mean in Spark what icesql prunes by: the ones whose every node is listed here.

A text in Spark's spelling is run by Spark as it is. Its tree is pruned by DuckDB's rules, so a
condition is pushed only if both give the same answer for every row; what is not known to, is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.config import time_zone
from icesql.iceberg import types as t
from icesql.sql.parser.literal_list import held

if TYPE_CHECKING:
    from icesql.context import QueryContext

_Type: Final = exp.DataType.Type
Resolve = Callable[[exp.Column], t.NestedField | None]

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
                       exp.NullSafeNEQ)  # fmt: skip
_EXACT: Final = (t.IntegerType, t.LongType, t.DecimalType, t.DoubleType)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_ZONED: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")
_NUMBER: Final = re.compile(r"\d{1,18}(\.\d{1,18})?")


class SparkConditions:
    """Says why a condition is not known to mean the same in Spark."""

    def __init__(self, query: QueryContext) -> None:
        self._zone = time_zone(query.settings.timezone)
        self._utc = query.settings.timezone.upper() == "UTC"

    def reason(self, condition: exp.Expr, resolve: Resolve) -> str | None:
        """The reason, None for a condition that may be pushed."""
        return None if self._same(condition, resolve) else "Spark may read it in another way"

    def _same(self, root: exp.Expr, resolve: Resolve) -> bool:
        # With a stack of its own: an OR of 10,000 terms is a tree 10,000 deep.
        stack = [root]
        while stack:
            node = stack.pop()
            match node:
                case exp.And() | exp.Or():
                    stack += [node.this, node.expression]
                case exp.Not() | exp.Paren():
                    stack.append(node.this)
                case exp.Is() if isinstance(node.expression, exp.Null | exp.Boolean):
                    if _column(node.this, resolve) is None:
                        return False
                case exp.Column():
                    if not isinstance(_type(node, resolve), t.BooleanType):
                        return False
                case exp.In() if not node.args.get("query") and not node.args.get("unnest"):
                    if node.args.get("field") is not None or not self._in(node, resolve):
                        return False
                case exp.Between() if not node.args.get("symmetric"):
                    if not self._fits(node.this, [node.args["low"], node.args["high"]], resolve):
                        return False
                case exp.Like() if not node.args.get("escape"):
                    if not _like(node, resolve):
                        return False
                case _ if isinstance(node, _COMPARISONS):
                    sides = node.this, node.expression
                    if not any(self._fits(a, [b], resolve) for a, b in (sides, sides[::-1])):
                        return False
                case _:
                    return False
        return True

    def _in(self, node: exp.In, resolve: Resolve) -> bool:
        values = held(node)
        if values is None:
            return bool(node.expressions) and self._fits(node.this, node.expressions, resolve)
        found = _type(node.this, resolve)
        match values.kind:
            case "text":
                return isinstance(found, t.StringType)
            case "integer":
                return isinstance(found, t.IntegerType | t.LongType)
            case "date":
                return isinstance(found, t.DateType)
            case _:
                return False

    def _fits(self, side: exp.Expr, values: list[exp.Expr], resolve: Resolve) -> bool:
        found = self._side(side, resolve)
        return found is not None and all(self._value(each, found) for each in values)

    def _side(self, node: exp.Expr, resolve: Resolve) -> t.IcebergType | None:
        """The type of a column, or of a date or year taken from one."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            return _type(node, resolve)
        inner = node.this if isinstance(node.this, exp.Expression) else None
        made: t.IcebergType
        if isinstance(node, exp.TsOrDsToDate | exp.Date) and len(_given(node)) == 1:
            found, made = _type(inner, resolve), t.DATE
        elif isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            found, made = _type(inner, resolve), t.DATE
            if node.to.this is not _Type.DATE or node.args.get("format"):
                return None
        elif isinstance(node, exp.Year):
            if isinstance(inner, exp.TsOrDsToDate):
                inner = inner.this
            found, made = _type(inner, resolve), t.INTEGER
        else:
            return None
        times = t.DateType | t.TimestampType | t.TimestamptzType
        return made if isinstance(found, times) else None

    def _value(self, node: exp.Expr, column: t.IcebergType) -> bool:
        node = node.unnest()
        if isinstance(node, exp.Null):
            return True
        if isinstance(node, exp.Neg):
            node = node.this
            return (
                isinstance(node, exp.Literal) and not node.is_string and self._number(node, column)
            )
        if isinstance(node, exp.Boolean):
            return isinstance(column, t.BooleanType)
        if (
            isinstance(node, exp.Cast)
            and isinstance(node.this, exp.Literal)
            and node.this.is_string
        ):
            return self._time(node.this.name, node.to.this, column)
        if not isinstance(node, exp.Literal):
            return False
        if not node.is_string:
            return self._number(node, column)
        match column:
            case t.StringType():
                return "\\" not in node.name
            case t.DateType():
                return self._time(node.name, _Type.DATE, column)
            case t.TimestampType():
                return self._time(node.name, _Type.TIMESTAMPNTZ, column)
            case t.TimestamptzType():
                return self._time(node.name, _Type.TIMESTAMPTZ, column)
            case _:
                return False

    def _number(self, node: exp.Literal, column: t.IcebergType) -> bool:
        return isinstance(column, _EXACT) and bool(_NUMBER.fullmatch(node.name))

    def _time(self, text: str, kind: object, column: t.IcebergType) -> bool:
        """A literal of a time beside a column: written in full, and the same instant to both."""
        local = bool(_DATE.fullmatch(text) or _TIME.fullmatch(text))
        match kind, column:
            case _Type.DATE, t.DateType():
                return bool(_DATE.fullmatch(text)) and _moment(text) is not None
            case _Type.DATE, t.TimestampType():
                return bool(_DATE.fullmatch(text)) and _moment(text) is not None
            case _Type.DATE, t.TimestamptzType():
                return bool(_DATE.fullmatch(text)) and self._is_one_instant(text)
            case (
                (_Type.TIMESTAMPNTZ | _Type.TIMESTAMP),
                t.TimestampType(),
            ):
                return local and _moment(text) is not None
            case (
                (_Type.TIMESTAMPTZ | _Type.TIMESTAMPLTZ),
                t.TimestamptzType(),
            ):
                return bool(_ZONED.fullmatch(text)) or (local and self._is_one_instant(text))
            case (
                (_Type.TIMESTAMPTZ | _Type.TIMESTAMPLTZ),
                t.TimestampType(),
            ):
                # Spark takes the column for local times of the session.
                return self._utc and (bool(_ZONED.fullmatch(text)) or local)
            case _:
                return False

    def _is_one_instant(self, text: str) -> bool:
        """Whether a local time is neither left out nor repeated where clocks are changed."""
        moment = _moment(text)
        if moment is None:
            return False
        offsets = {moment.replace(tzinfo=self._zone, fold=fold).utcoffset() for fold in (0, 1)}
        return len(offsets) == 1 and moment.year >= 1970


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _given(node: exp.Expr) -> list[object]:
    return [value for value in node.args.values() if value]


def _column(node: exp.Expr, resolve: Resolve) -> t.NestedField | None:
    node = node.unnest()
    return resolve(node) if isinstance(node, exp.Column) else None


def _type(node: exp.Expr | None, resolve: Resolve) -> t.IcebergType | None:
    found = None if node is None else _column(node, resolve)
    return None if found is None else found.type


def _like(node: exp.Like, resolve: Resolve) -> bool:
    pattern = node.expression
    is_text = isinstance(pattern, exp.Literal) and pattern.is_string
    return (
        is_text
        and "\\" not in pattern.name
        and isinstance(_type(node.this, resolve), t.StringType)
        and not isinstance(node.parent, exp.Escape)
    )
