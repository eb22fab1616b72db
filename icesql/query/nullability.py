"""Decide from schemas and joins which columns of a result can be NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from icesql.iceberg.schema import Schema
from icesql.query.bound import BoundQuery
from icesql.query.names import FromItem, SelectScope, find_column, select_scopes, top_level
from icesql.query.pushdown.select_keys import OuterJoins


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
