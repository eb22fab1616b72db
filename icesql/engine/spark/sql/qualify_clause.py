"""QUALIFY and DISTINCT ON as a filter over a subquery, which every release of Spark supports.

    SELECT a, b FROM t QUALIFY rank() OVER (ORDER BY c) = 1 ORDER BY d LIMIT 2

becomes  SELECT c0 AS a, c1 AS b FROM (SELECT a AS c0, b AS c1, rank() OVER (…) AS w, d AS o FROM t)
WHERE w = 1 ORDER BY o LIMIT 2. (sqlglot's own rewriting applies LIMIT before the filter, and takes
a column for the alias of the same name.)
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql.kinds import named, quoted_column, refuse

_OUTSIDE: Final = ("with_", "distinct", "order", "limit", "offset")


def filter_windows(tree: exp.Expr) -> None:
    """Rewrite every SELECT of a qualified tree that has QUALIFY or DISTINCT ON, in place."""
    for select in list(tree.find_all(exp.Select)):
        distinct = select.args.get("distinct")
        if any(isinstance(each, exp.Star) for each in select.expressions):
            continue
        if select.args.get("qualify") is not None:
            _qualify(select)
        if distinct is not None and distinct.args.get("on") is None and _has_other_keys(select):
            # Spark orders distinct rows only by their own columns. DuckDB uses the key of one row.
            items = [each.unalias().copy() for each in select.expressions]
            distinct.set("on", exp.Tuple(expressions=items))
        if distinct is not None and distinct.args.get("on") is not None:
            _distinct_on(select, distinct.args["on"])


def _has_other_keys(select: exp.Select) -> bool:
    """True if ORDER BY of a SELECT DISTINCT uses a column of FROM that is not selected."""
    order = select.args.get("order")
    return order is not None and any(
        column.table for each in order.expressions for column in each.find_all(exp.Column)
    )


class _Inner:
    """Builds the subquery of a SELECT: its columns, and their names outside."""

    def __init__(self, select: exp.Select) -> None:
        self.select = select
        self.name = "__qualified"
        self.columns: list[exp.Expr] = []
        self._aliases = {
            each.alias_or_name.lower(): at
            for at, each in enumerate(select.expressions)
            if each.alias_or_name
        }
        self.outputs = [self.column(each.unalias(), f"c{at}") for at, each in
                        enumerate(select.expressions)]  # fmt: skip

    def column(self, node: exp.Expr, name: str) -> exp.Column:
        """Add ``node`` to the subquery; returns the outer column with its value."""
        self.columns.append(named(node.copy(), name))
        made = quoted_column(name, self.name)
        made.type = node.type
        return made

    def place(self, node: exp.Expr, name: str) -> exp.Expr:
        """The outer column for ``node``, which may be a position or alias in the select list."""
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            at: int | None = int(node.name) - 1
        else:
            bare = isinstance(node, exp.Column) and not node.table
            at = self._aliases.get(node.name.lower()) if bare else None
        if at is not None and at < len(self.outputs):
            return self.outputs[at].copy()
        return self.column(node, name)

    def wrap(self) -> exp.Subquery:
        """The subquery; moves the inner clauses of the SELECT into it."""
        inner = exp.Select(expressions=self.columns)
        for part, value in list(self.select.args.items()):
            if part not in (*_OUTSIDE, "expressions", "qualify"):
                inner.set(part, value)
                self.select.set(part, None)
        return inner.subquery(self.name, copy=False)


def _outside(select: exp.Select, inner: _Inner, source: exp.Subquery) -> None:
    names = [each.alias_or_name for each in select.expressions]
    select.set("expressions", [
        named(column, name) if name else column
        for column, name in zip(inner.outputs, names, strict=True)
    ])  # fmt: skip
    select.set("from_", exp.From(this=source))


def _move_order(select: exp.Select, inner: _Inner) -> list[exp.Ordered]:
    order = select.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    for at, each in enumerate(ordered):
        if each.this.name.upper() != "ALL":
            each.set("this", inner.place(each.this, f"o{at}"))
    return ordered


def _qualify(select: exp.Select) -> None:
    condition = select.args["qualify"].this
    inner = _Inner(select)
    if select.args.get("distinct") is None:
        _move_order(select, inner)
    holder = exp.Paren(this=condition)
    _move_condition(holder, inner)
    select.set("qualify", None)
    _outside(select, inner, inner.wrap())
    select.set("where", exp.Where(this=holder.this))


def _move_condition(node: exp.Expr, inner: _Inner) -> None:
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Window | exp.AggFunc | exp.Filter | exp.Column):
            child.replace(inner.place(child, f"w{len(inner.columns)}"))
        elif not isinstance(child, exp.Query):
            _move_condition(child, inner)


def _distinct_on(select: exp.Select, on: exp.Expr) -> None:
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on]
    inner = _Inner(select)
    places = [inner.place(each, f"k{at}") for at, each in enumerate(keys)]
    ordered = _move_order(select, inner)
    if any(each.this.name.upper() == "ALL" for each in ordered):
        raise refuse("DISTINCT ON with ORDER BY ALL", "write the columns of ORDER BY")
    source = inner.wrap()
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=places,
        order=exp.Order(expressions=[each.copy() for each in ordered]) if ordered else None,
    )
    numbered = exp.Select(expressions=[exp.Star(), named(number, "w")], from_=exp.From(this=source))
    select.set("distinct", None)
    _outside(select, inner, numbered.subquery(inner.name, copy=False))
    first = exp.EQ(this=quoted_column("w", inner.name), expression=exp.Literal.number(1))
    select.set("where", exp.Where(this=first))
