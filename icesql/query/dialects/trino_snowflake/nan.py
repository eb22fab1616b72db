"""Comparisons with NaN in Trino, by IEEE 754: NaN is not equal to, less or greater than anything.

In DuckDB, Spark and Snowflake NaN is equal to itself and greater than all other numbers; in Trino
only in ORDER BY, GROUP BY, DISTINCT and IS DISTINCT FROM. A comparison of NaN and NULL is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.templates import expanded
from icesql.query.dialects.trino_snowflake.types import typed

if TYPE_CHECKING:
    from icesql.query.dialects.trino_snowflake.translation import Translation

SIGNS: Final = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


def compared(self: Translation, node: exp.Expr) -> exp.Expr:
    """A comparison or BETWEEN that is false for NaN; ``node`` itself if NaN makes no difference."""
    if isinstance(node, exp.Between):
        parts = (node.this, node.args["low"], node.args["high"])
        if not _may_be_nan(self, parts[2]):
            return node
        text = "$1 BETWEEN $2 AND $3 AND (NOT isnan($3) OR $1 IS NULL)"
        return typed(expanded(text, *parts, exact=False), t.BOOLEAN)
    left, right = node.this, node.expression
    sign = SIGNS[node.key]
    if sign in ("=", "<>"):
        if not (_may_be_nan(self, left) and _may_be_nan(self, right)):
            return node
        more = "AND (NOT isnan($1) OR $2 IS NULL)" if sign == "=" else "OR isnan($1) AND isnan($2)"
    else:
        sides = {"$1": left, "$2": right}
        greater, other = sorted(sides, reverse=sign[0] == "<")
        if not _may_be_nan(self, sides[greater]):
            return node
        more = f"AND NOT isnan({greater})"
        if not _is_number(sides[other]):
            more = f"AND (NOT isnan({greater}) OR {other} IS NULL)"
    return typed(expanded(f"$1 {sign} $2 {more}", left, right, exact=False), t.BOOLEAN)


def _may_be_nan(self: Translation, node: exp.Expr) -> bool:
    return self.type(node).kind in t.FRACTIONAL and not _is_number(node)


def _is_number(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node.is_number
