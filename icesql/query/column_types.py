"""Types of columns before a query runs: the Iceberg type of an expression, and what can be NULL.

Types are known as far as columns, casts and type-keeping calls decide them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.bound import BoundQuery
from icesql.query.names import (
    FromItem,
    SelectScope,
    child_of,
    column_of,
    find_column,
    find_field,
    meaning_of,
    select_scopes,
    top_level,
)
from icesql.query.pushdown.select_forms import OuterJoins

_Type = exp.DataType.Type
_CASTS: Final[dict[Any, t.IcebergType]] = {
    _Type.DATE: t.DATE,
    _Type.TIMESTAMP: t.TIMESTAMP,
    _Type.TIMESTAMPNTZ: t.TIMESTAMP,
    _Type.DATETIME: t.TIMESTAMP,
    _Type.TIMESTAMPTZ: t.TIMESTAMPTZ,
    _Type.TIMESTAMPLTZ: t.TIMESTAMPTZ,
    _Type.TIMESTAMP_NS: t.TIMESTAMP_NS,
    _Type.TEXT: t.STRING,
    _Type.VARCHAR: t.STRING,
    _Type.UUID: t.UUID,
}
# The result of date_trunc has no nanoseconds.
_TRUNCATED: Final[dict[t.IcebergType | None, t.IcebergType]] = {
    t.TIMESTAMP: t.TIMESTAMP,
    t.TIMESTAMP_NS: t.TIMESTAMP,
    t.TIMESTAMPTZ: t.TIMESTAMPTZ,
    t.TIMESTAMPTZ_NS: t.TIMESTAMPTZ,
}
# Expressions that return one of their arguments, or its value in one of many rows.
_KEEPING: Final = (
    exp.Paren, exp.Alias, exp.Min, exp.Max, exp.AnyValue, exp.First, exp.Last, exp.FirstValue,
    exp.LastValue, exp.Lag, exp.Lead, exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.Nullif,
    exp.Filter, exp.ArgMax, exp.ArgMin, exp.Distinct,
)  # fmt: skip
_INSTANTS: Final = frozenset({"to_timestamp", "make_timestamptz", "now"})
_DEEPEST: Final = 100


class ColumnTypes:
    """The types of expressions in the SELECTs of one tree; ``schemas`` are those of its scans."""

    def __init__(self, scopes: Sequence[SelectScope], schemas: Sequence[Schema]) -> None:
        self._schemas = schemas
        self._scope_of = {id(each.select): each for each in scopes}

    def of(self, node: exp.Expr | None, scope: SelectScope, depth: int = 0) -> t.IcebergType | None:
        """The type of ``node`` inside ``scope``; None if unknown."""
        if node is None or depth > _DEEPEST:
            return None
        match node:
            case exp.Column() | exp.Dot() | exp.Bracket():
                found = column_of(node, lambda column: self._column(column, scope, depth))
                return None if found is None else found.type
            case exp.Cast():
                return cast_type(node.to)
            case exp.Subquery():
                return self._first_output(node.this, depth)
            case exp.Add() | exp.Sub():
                return self._shifted(node, scope, depth)
            case exp.TimestampTrunc() | exp.DateTrunc():
                inner = self.of(node.this, scope, depth + 1)
                return _TRUNCATED.get(inner)
            case exp.UnixToTime() if node.sql_name().lower() in _INSTANTS:
                return t.TIMESTAMPTZ
            case exp.Anonymous() if node.name.lower() in _INSTANTS:
                return t.TIMESTAMPTZ
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return self._any((node.this, *node.expressions), scope, depth)
            case exp.Case():
                branches = [each.args.get("true") for each in node.args.get("ifs") or ()]
                return self._any((*branches, node.args.get("default")), scope, depth)
            case exp.If():
                return self._any((node.args.get("true"), node.args.get("false")), scope, depth)
            # With a count these aggregates return a list of values.
            case _ if isinstance(node, _KEEPING) and not node.args.get("count"):
                return self.of(node.this, scope, depth + 1)
        return None

    def _any(
        self, nodes: Sequence[exp.Expr | None], scope: SelectScope, depth: int
    ) -> t.IcebergType | None:
        found = [self.of(each, scope, depth + 1) for each in nodes]
        if t.TIMESTAMPTZ_NS in found:
            return t.TIMESTAMPTZ_NS
        return next((each for each in found if each is not None), None)

    def _shifted(self, node: exp.Binary, scope: SelectScope, depth: int) -> t.IcebergType | None:
        left = self.of(node.this, scope, depth + 1)
        right = self.of(node.expression, scope, depth + 1)
        if left is not None and right is not None:
            return None  # a length of time
        moment = left or right
        if moment == t.DATE and not node.find(exp.Interval):
            return t.DATE
        return t.TIMESTAMP if moment == t.DATE else moment

    def _column(self, column: exp.Column, scope: SelectScope, depth: int) -> t.NestedField | None:
        meaning = meaning_of(column, scope)
        if not meaning.items or (len(meaning.items) > 1 and len(column.parts) > 1):
            return None
        found = self._output(meaning.items[0], meaning.path[0], depth)
        for name in meaning.path[1:]:
            found = child_of(found, name)
        return found

    def _output(self, item: FromItem, name: str, depth: int) -> t.NestedField | None:
        if item.scan is not None:
            return find_field(self._schemas[item.scan].fields, name)
        scope = self._scope(item.query)
        if scope is None or depth > _DEEPEST:
            return None
        for node in scope.select.expressions:
            if isinstance(node, exp.Star):
                inner = [each for each in scope.items if each.has(name)]
                if len(inner) == 1:
                    return self._output(inner[0], name, depth + 1)
            elif node.alias_or_name.lower() == name.lower():
                type = self.of(node, scope, depth + 1)
                return None if type is None else t.NestedField(0, name, type)
        return None

    def _scope(self, query: exp.Expr | None) -> SelectScope | None:
        """The SELECT whose outputs name the columns of a query."""
        while isinstance(query, exp.SetOperation):
            query = query.this.unnest()
        return self._scope_of.get(id(query))

    def _first_output(self, query: exp.Expr, depth: int) -> t.IcebergType | None:
        scope = self._scope(query)
        if scope is None or len(scope.select.expressions) != 1:
            return None
        return self.of(scope.select.expressions[0], scope, depth + 1)


def cast_type(to: exp.DataType) -> t.IcebergType | None:
    """The Iceberg type of a cast's target, None if there is none or it does not matter here."""
    if to.this == _Type.USERDEFINED and str(to.args.get("kind")).upper() == "TIMESTAMPTZ_NS":
        return t.TIMESTAMPTZ_NS
    if to.expressions:
        return None
    return _CASTS.get(to.this)


# ------------------------------------------------------------------ nullability


def nullable_columns(bound: BoundQuery, count: int) -> list[bool | None]:
    """For each of the ``count`` columns whether it can be NULL; None if that is not known.

    Known only for bare columns of tables in a SELECT; other expressions are not analysed.
    """
    unknown: list[bool | None] = [None] * count
    select = bound.tree
    if not isinstance(select, exp.Select) or _may_add_null(select):
        return unknown
    schemas = [scan.schema for scan in bound.scans]
    scope = next(each for each in select_scopes(select, schemas) if each.select is select)
    joins = OuterJoins(scope)
    if joins.opaque:
        return unknown
    filled = {id(item): may_be_null for item, may_be_null in joins.seen_by_where()}
    found: list[bool | None] = []
    for node in select.expressions:
        for item, required in _outputs(node, scope, schemas):
            may_be_null = filled.get(id(item))
            found.append(None if may_be_null is None else not required or may_be_null)
    # The counts differ if an expression expands to several columns.
    return found if len(found) == count else unknown


def _may_add_null(select: exp.Select) -> bool:
    """True for grouping sets, which add NULLs, and for ``SELECT * EXCLUDE``."""
    group = select.args.get("group")
    if select.args.get("exclude"):
        return True
    if group is None:
        return False
    others = any(value for name, value in group.args.items() if name not in ("expressions", "all"))
    return others or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def _outputs(
    node: exp.Expr, scope: SelectScope, schemas: Sequence[Schema]
) -> Iterator[tuple[FromItem | None, bool]]:
    """The item of FROM of each column of an output, and whether the column is required.

    None for an expression other than a column of a table; nothing for a star with other columns.
    """
    if isinstance(node, exp.Star):
        merges = any(join.args.get("using") or join.method == "NATURAL" for join in scope.joins)
        for item in scope.items if not merges and not any(node.args.values()) else ():
            if item.scan is not None and not item.is_filter_only:
                yield from ((item, column.required) for column in schemas[item.scan].fields)
        return
    meant, column = top_level(node.unalias(), scope), None
    if meant is not None and meant[0].scan is not None:
        column = find_column(schemas[meant[0].scan], meant[1], node)
    yield (None, False) if meant is None or column is None else (meant[0], column.required)
