"""UNION, EXCEPT and INTERSECT of Spark's text, whose sides get the types that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Columns, Scope
from icesql.query.dialects.spark.calls import DIALECT
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.spark.sources import common_type
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.queries import Queries


def set_operation(self: Queries, node: exp.SetOperation, parent: Scope | None) -> Columns | None:
    """A set operation in place, however long its chain; its columns."""
    if node.args.get("by_name") or node.args.get("side") or node.args.get("on"):
        raise unsupported(f"{node.key.upper()} BY NAME in {DIALECT}", node)
    spine = [node]
    while type(spine[-1].this) is type(node) and not spine[-1].this.args.get("with_"):
        spine.append(spine[-1].this)
    if isinstance(node, exp.Intersect) and isinstance(spine[-1].this, exp.Union | exp.Except):
        beside = spine[-1].this.key.upper()
        raise unsupported(f"INTERSECT beside {beside} in {DIALECT}", node, "use parentheses")
    found = self.translate(spine[-1].this, parent)
    for each in reversed(spine):
        other = self.translate(each.expression, parent)
        found = _united(each, found, other)
    return found


def _united(node: exp.SetOperation, left: Columns | None, right: Columns | None) -> Columns | None:
    """The columns of a set operation, whose sides are cast where DuckDB would unite otherwise."""
    if left is None or right is None:
        return left
    if len(left) != len(right):
        raise unsupported(f"{node.key.upper()} of {len(left)} and {len(right)} columns", node)
    found = []
    for at, ((name, one), (_, other)) in enumerate(zip(left, right, strict=True)):
        both = common_type(node, [one, other])
        for side, kind in (("this", one), ("expression", other)):
            if kind != both and "null" not in (kind.kind, both.kind):
                _cast_output(node, node.args[side], at, kind, both)
        found.append((name, both))
    return tuple(found)


def _cast_output(
    node: exp.SetOperation, query: exp.Expr, at: int, kind: t.SqlType, to: t.SqlType
) -> None:
    numbers = {*t.INTEGRAL, "decimal", "double"}
    if {kind.kind, to.kind} <= numbers:
        return
    query = query.unnest()
    if not isinstance(query, exp.Select) or any(each.is_star for each in query.expressions):
        raise unsupported(f"{kind} beside {to} in {node.key.upper()} in {DIALECT}", node, "cast it")
    column = query.expressions[at]
    inner = column.this if isinstance(column, exp.Alias) else column
    name = column.alias_or_name
    made = cast(inner.copy(), kind, to)
    if made is None:
        raise unsupported(f"{kind} beside {to} in {node.key.upper()} in {DIALECT}", node, "cast it")
    column.replace(exp.alias_(made, name, quoted=True, copy=False))
