"""Decide from schemas and joins which columns of a result can be NULL."""

from __future__ import annotations

from collections.abc import Sequence

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
        if isinstance(node, exp.Star):
            found.extend(_all_columns(node, scope, schemas, filled))
        else:
            found.append(_column(node.unalias(), scope, schemas, filled))
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


def _all_columns(
    star: exp.Star, scope: SelectScope, schemas: Sequence[Schema], filled: dict[int, bool]
) -> list[bool | None]:
    merges = any(join.args.get("using") or join.method == "NATURAL" for join in scope.joins)
    if any(star.args.values()) or merges:
        return []
    found: list[bool | None] = []
    for item in scope.items:
        if item.is_filter_only:
            continue
        if item.scan is None:
            return []
        found.extend(
            _field_nullable(item, column.required, filled) for column in schemas[item.scan].fields
        )
    return found


def _column(
    node: exp.Expr, scope: SelectScope, schemas: Sequence[Schema], filled: dict[int, bool]
) -> bool | None:
    meant = top_level(node, scope)
    if meant is None:
        return None
    item, name = meant
    if item.scan is None:
        return None
    column = find_column(schemas[item.scan], name, node)
    return None if column is None else _field_nullable(item, column.required, filled)


def _field_nullable(item: FromItem, required: bool, filled: dict[int, bool]) -> bool | None:
    may_be_null = filled.get(id(item))
    return None if may_be_null is None else not required or may_be_null
