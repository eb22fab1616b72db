"""Bind names in ORDER BY and DISTINCT ON to select items or columns as DuckDB does.

DuckDB binds a bare key to an explicit alias, else to a column of FROM; for a column inside an
expression the order is reversed. Spark and sqlglot name items without an alias, and look for all
names of items first: ``SELECT CAST(id AS VARCHAR) FROM t ORDER BY id`` would sort strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import traverse_scope, walk_in_scope
from sqlglot.schema import MappingSchema

from icesql.engine.spark.sql.kinds import identifier, refuse

# In the meta of a node: marks an alias or a key of ORDER BY that the user wrote; the name of the
# item that a key refers to.
_WRITTEN: Final = "written"
_MEANT: Final = "meant"


def name_outputs(tree: exp.Expr, schema: Mapping[str, Mapping[str, Any]]) -> None:
    """Name every select item without a name, in place; no column has the new names.

    A column and a field of a struct keep their names, which outer queries use. ``schema`` has
    the columns of each table. Prepares ``bind_order``, which has to be called after ``qualify``.
    """
    known = {each.name.lower() for each in tree.find_all(exp.Identifier)}
    known |= {name.lower() for columns in schema.values() for name in columns}
    prefix = "__item_"
    while any(name.startswith(prefix) for name in known):
        prefix += "_"
    natural = any(join.method == "NATURAL" for join in tree.find_all(exp.Join))
    for alias in tree.find_all(exp.Alias):
        alias.meta[_WRITTEN] = True
    for select in tree.find_all(exp.Select):
        for at, item in enumerate(select.expressions):
            if _has_name(item):
                continue
            if natural and select is not tree:
                raise refuse("NATURAL JOIN beside columns without a name", "give them an alias")
            name = identifier(f"{prefix}{at}")
            if isinstance(item, exp.Subquery):
                item.set("alias", exp.TableAlias(this=name))
            else:
                item.replace(exp.Alias(this=item.copy(), alias=name))
        changed = _changed_by_star(select)
        for key in _keys(select):
            for column in _columns(key):
                if column is key and column.name.lower() in changed:
                    # The star hides the item from ``qualify``, which would choose the old column.
                    column.meta[_MEANT] = column.name.lower()
                    column.set("this", identifier(prefix))
                else:
                    column.meta[_WRITTEN] = True


def bind_order(tree: exp.Expr, schema: Mapping[str, Mapping[str, Any]]) -> None:
    """Bind the keys of ORDER BY and DISTINCT ON in a qualified tree as DuckDB does, in place.

    Raises UnsupportedSqlError if the column is not found.
    """
    resolvable = MappingSchema(dict(schema), dialect="duckdb")
    for scope in traverse_scope(tree):
        select = scope.expression
        if not isinstance(select, exp.Select):
            continue
        resolver = Resolver(scope, resolvable)
        for key in _keys(select):
            for column in _columns(key):
                meant = column.meta.pop(_MEANT, None)
                if meant is not None:
                    column.set("this", identifier(meant))
                if meant is not None or column.meta.pop(_WRITTEN, False):
                    _bind(column, select, resolver, is_key=column is key)


def _bind(column: exp.Column, select: exp.Select, resolver: Resolver, *, is_key: bool) -> None:
    items = [each for each in select.expressions if each.alias_or_name == column.name]
    # An item from a star has no such mark, and a name that differs from its column's.
    written = [
        each for each in items if each.meta.get(_WRITTEN) or each.unalias().name != column.name
    ]
    if is_key and written and len(items) > 1:
        # The last of several, by position: for Spark the name is ambiguous, or a column of FROM.
        (place,) = (at for at, each in enumerate(select.expressions, 1) if each is written[-1])
        ordered = column.find_ancestor(exp.Ordered, exp.Distinct)
        if isinstance(ordered, exp.Ordered):
            ordered.set("this", exp.Literal.number(place))
        else:
            column.replace(written[-1].unalias().copy())
    if not items or (is_key and written):
        return
    try:
        table = resolver.get_table(column)
    except OptimizeError:
        table = None
    if table is not None:
        column.set("table", table)
    elif any(isinstance(each.unalias().unnest(), exp.Dot) for each in items) and not written:
        raise refuse(f"ORDER BY {column.name} beside a field of that name", "qualify the column")


def _has_name(item: exp.Expr) -> bool:
    if isinstance(item, exp.Subquery):
        return bool(item.alias)
    return item.is_star or isinstance(
        item, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.QueryTransform
    )


def _changed_by_star(select: exp.Select) -> set[str]:
    """The names that ``* REPLACE`` and ``* RENAME`` of a select list assign."""
    return {
        each.alias.lower()
        for item in select.expressions
        if item.is_star
        for star in item.find_all(exp.Star)
        for part in ("replace", "rename")
        for each in star.args.get(part) or ()
    }


def _keys(select: exp.Select) -> Iterator[exp.Expr]:
    order, distinct = select.args.get("order"), select.args.get("distinct")
    if order is not None:
        for each in order.expressions:
            yield each.this.unnest() if isinstance(each, exp.Ordered) else each
    on = distinct.args.get("on") if distinct is not None else None
    if on is not None:
        yield from on.expressions if isinstance(on, exp.Tuple) else [on]


def _columns(key: exp.Expr) -> list[exp.Column]:
    """The columns of a key without a table name, except those of queries inside it."""
    return [each for each in walk_in_scope(key) if isinstance(each, exp.Column) and not each.table]
