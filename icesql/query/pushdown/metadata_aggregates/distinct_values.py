"""Queries for distinct values, and for the number of their rows.

``SELECT DISTINCT region``, ``count(DISTINCT day)``, ``GROUP BY region`` with min and max: one of
several equal rows is enough. For ``GROUP BY region`` with count(*) one of them and their
number are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.query.names import SelectScope
from icesql.query.plain_calls import is_plain_call
from icesql.query.pushdown.select_keys import COMPARED, OF_ONE_ROW, SELECT_PARTS, has_only
from icesql.scan.table_scan import TableScan

_PARTS: Final = SELECT_PARTS | {"where", "group", "order", "limit", "offset", "distinct"}
_GROUPED: Final = _PARTS | {"having", "qualify", "windows"}
_CONDITION: Final = (
    *OF_ONE_ROW, *COMPARED, exp.Where, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between,
    exp.Like, exp.Neg,
)  # fmt: skip


def lists_values(tree: exp.Expr) -> bool:
    """Whether the query may be one of these."""
    if not isinstance(tree, exp.Select):
        return False
    if tree.args.get("distinct") is not None or tree.args.get("group") is not None:
        return True
    return any(_is_distinct_count(each.unalias()) for each in tree.expressions)


def with_values_only(
    scopes: Sequence[SelectScope], scans: tuple[TableScan, ...]
) -> tuple[TableScan, ...]:
    """The scan, marked if the query needs only distinct values of its columns, or their counts."""
    if len(scopes) != 1 or len(scans) != 1 or len(scopes[0].items) != 1:
        return scans
    (scope,), (scan,) = scopes, scans
    (item,) = scope.items
    if item.scan != 0 or not item.plain or scan.metadata_table or scan.changes or scan.rows:
        return scans
    if _is_plain(scope.select):
        return (replace(scan, values_only=True),)
    # For any other GROUP BY, equal rows may still be read as one row and their number.
    groups = scope.select.args.get("group") is not None and has_only(scope.select, _GROUPED)
    return (replace(scan, rows_alike=True),) if groups else scans


def _is_plain(select: exp.Select) -> bool:
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if not has_only(select, _PARTS) or (distinct is not None and any(distinct.args.values())):
        return False
    outputs = [each.unalias() for each in select.expressions]
    plain = [each for each in outputs if not _is_distinct_count(each)]
    if not all(_is_of_values(node) for each in plain for node in each.walk()):
        return False
    if not distinct and not group and any(each.find(exp.Min, exp.Max) is None for each in plain):
        return False
    where = select.args.get("where")
    order = select.args.get("order")
    ordered = [each.this for each in order.expressions] if order is not None else []
    bare = (*ordered, *(_keys(group) if group is not None else ()))
    return all(isinstance(each, exp.Column | exp.Literal) for each in bare) and (
        where is None or all(isinstance(node, _CONDITION) for node in where.walk())
    )


def _keys(group: exp.Expr) -> Sequence[exp.Expr]:
    """The keys of a plain GROUP BY; one star for any other GROUP BY."""
    if any(value for name, value in group.args.items() if name != "expressions"):
        return [exp.Star()]
    return list(group.expressions)


def _is_of_values(node: exp.Expr) -> bool:
    # A second equal row does not change these two aggregates.
    return isinstance(node, OF_ONE_ROW) or is_plain_call(node, exp.Max, exp.Min)


def _is_distinct_count(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Count) or node.expressions:
        return False
    inner = node.this
    return (
        isinstance(inner, exp.Distinct)
        and inner.args.get("on") is None
        and len(inner.expressions) == 1
        and isinstance(inner.expressions[0], exp.Column)
    )
