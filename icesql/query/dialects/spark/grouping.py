"""GROUP BY with ROLLUP, CUBE and GROUPING SETS in each of Spark's forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.query.dialects.spark.calls import DIALECT, check_parts
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions

_PARTS = frozenset({"expressions", "grouping_sets", "rollup", "cube", "all"})


def group_by(select: exp.Select, written: Sequence[exp.Expr], expressions: Expressions) -> None:
    """Translate the GROUP BY of a SELECT in place; ``written`` is its untranslated select list."""
    group = select.args.get("group")
    if group is None:
        return
    check_parts(group, _PARTS, "GROUP BY …", select)
    if group.args.get("all") and not any(each.find(exp.Column, exp.Star) for each in written):
        # DuckDB returns one row for each row of the table here, Spark one row.
        raise unsupported(f"GROUP BY ALL of constants in {DIALECT}", select)
    _spell(group)
    keys = [_key(each, written, expressions) for each in group.expressions]
    group.set("expressions", keys)
    for part in ("grouping_sets", "rollup", "cube"):
        for each in group.args.get(part) or ():
            _key(each, written, expressions)


def _spell(group: exp.Group) -> None:
    """Rewrite ``a, b WITH ROLLUP`` as ROLLUP (a, b); drop the list before GROUPING SETS."""
    for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        given = group.args.get(part) or []
        if len(given) == 1 and not given[0].expressions:
            group.set(part, None)
            group.set("expressions", [kind(expressions=group.expressions)])
    if group.args.get("grouping_sets") and group.expressions:
        group.set("expressions", [])


def _key(
    node: exp.Expr, written: Sequence[exp.Expr], expressions: Expressions, *, in_set: bool = False
) -> exp.Expr:
    """Translate a key or a set of keys; a number in a set is a column position."""
    sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
    if isinstance(node, (*sets, exp.Tuple) if in_set else sets):
        made = [_key(each, written, expressions, in_set=True) for each in node.expressions]
        node.set("expressions", made)
        return node
    if in_set and isinstance(node, exp.Paren):
        node.set("this", _key(node.this, written, expressions, in_set=True))
        return node
    if isinstance(node, exp.Literal) and not node.is_string:
        if not in_set:
            return node
        at = int(node.name)
        if not 0 < at <= len(written):
            raise unsupported(f"GROUP BY {at} in {DIALECT}", node)
        node = written[at - 1].unalias().copy()
    return expressions.of(node).node
