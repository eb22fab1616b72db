"""Clauses around a call of an aggregate: FILTER, IGNORE NULLS, WITHIN GROUP, OVER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.query.dialects.aggregates import Around
from icesql.query.dialects.spark.calls import DIALECT, check_parts
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions

_WINDOW_PARTS = frozenset({"this", "partition_by", "order", "spec", "alias", "over"})
_SPEC_PARTS = frozenset({"kind", "start", "start_side", "end", "end_side"})


def around_call(self: Expressions, node: exp.Expr) -> tuple[exp.Anonymous, Around]:
    """The innermost call and the clauses around it, translated to DuckDB."""
    around, whole = Around(), node
    while True:
        match node:
            case exp.Window():
                around.window = window(self, node)
            case exp.Filter():
                around.filter = self.truth(node.expression.this)
            case exp.IgnoreNulls():
                around.ignore_nulls = True
            case exp.RespectNulls():
                pass
            case exp.WithinGroup():
                order = node.expression
                if not isinstance(order, exp.Order) or len(order.expressions) != 1:
                    raise unsupported(f"WITHIN GROUP of several keys in {DIALECT}", whole)
                around.order = order
            case exp.Anonymous():
                return node, around
            case _:
                raise unsupported(f"OVER or FILTER after {node.key.upper()} in {DIALECT}", whole)
        node = node.this


def window(self: Expressions, node: exp.Window) -> exp.Window:
    """Translate the parts of a window in place, except its function; return the window."""
    check_parts(node, _WINDOW_PARTS, "a window with")
    order = node.args.get("order")
    keys = [each.node for each in self.many(node.args.get("partition_by") or ())]
    node.set("partition_by", keys)
    if order is not None:
        self.ordered(order.expressions)
    spec = node.args.get("spec")
    if spec is not None:
        check_parts(spec, _SPEC_PARTS, "a window frame with", node)
        for side in ("start", "end"):
            edge = spec.args.get(side)
            if edge is not None and not isinstance(edge, str):
                spec.set(side, self.of(edge).node)
    return node
