"""UNION, EXCEPT and INTERSECT of Spark, with both sides cast to Spark's common types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported


def check_set_operation(node: exp.SetOperation) -> None:
    """Refuse set operations that sqlglot parses differently from Spark."""
    if node.args.get("by_name") or node.args.get("side") or node.args.get("on"):
        raise unsupported(f"{node.key.upper()} BY NAME in {DIALECT}", node)
    first = node
    while type(first.this) is type(node) and not first.this.args.get("with_"):
        first = first.this
    if isinstance(node, exp.Intersect) and isinstance(first.this, exp.Union | exp.Except):
        beside = first.this.key.upper()
        raise unsupported(f"INTERSECT beside {beside} in {DIALECT}", node, "use parentheses")


def cast_output(
    node: exp.SetOperation, query: exp.Expr, at: int, kind: SqlType, to: SqlType
) -> None:
    """Cast a column of one side of a set operation, unless DuckDB's common type is Spark's."""
    numbers = {*t.INTEGRAL, "decimal", "double"}
    if {kind.kind, to.kind} <= numbers:
        return
    query = query.unnest()
    made: exp.Expr | None = None
    if isinstance(query, exp.Select) and not any(each.is_star for each in query.expressions):
        column = query.expressions[at]
        made = cast(column.unalias().copy(), kind, to)
    if made is None:
        raise unsupported(f"{kind} beside {to} in {node.key.upper()} in {DIALECT}", node, "cast it")
    column.replace(exp.alias_(made, column.alias_or_name, quoted=True, copy=False))


def common_type(node: exp.Expr, kinds: Sequence[SqlType]) -> SqlType:
    """The common type of the values of one column. Raises UnsupportedSqlError at ``node``."""
    found = t.NULL
    for kind in kinds:
        both = t.common(found, kind)
        if both is None:
            raise unsupported(f"{found} and {kind} in one column in {DIALECT}", node, "cast them")
        found = both
    return found
