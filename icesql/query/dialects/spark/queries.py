"""Queries of Spark's text in DuckDB's meaning: SELECTs, set operations, what stands in FROM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.iceberg.schema import Schema
from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Columns, Item, Scope, below, names_of
from icesql.query.dialects.spark.calls import DIALECT, Typed
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.spark.generators import is_generator, selected
from icesql.query.dialects.spark.grouping import group_by
from icesql.query.dialects.spark.set_operations import set_operation
from icesql.query.dialects.spark.sources import read_from, read_values, renamed
from icesql.sql.positions import unsupported

_TABLE_PARTS: Final = frozenset({"this", "alias", "joins", "laterals"})
_JOIN_PARTS: Final = frozenset({"this", "on", "side", "kind", "using", "method"})
_FILE: Final = "__file_"
Ctes = Mapping[str, Columns | None]


class Queries:
    """Translates the queries of one tree, in place; ``schemas`` are those of its scans."""

    def __init__(self, schemas: Sequence[Schema], timezone: str) -> None:
        self.schemas, self.timezone = schemas, timezone
        self.ctes: dict[str, Columns | None] = {}

    def translate(self, node: exp.Expr, parent: Scope | None = None) -> Columns | None:
        """Translate a query; its columns, None where they are not known."""
        match node:
            case exp.Subquery():
                before = self._with(node, parent)
                found = self.translate(node.this, parent)
                self._order_of_result(node, found, parent)
                self.ctes = before
                return found
            case exp.Select():
                before = self._with(node, parent)
                found = self._select(node, parent)
                self.ctes = before
                return found
            case exp.SetOperation():
                before = self._with(node, parent)
                found = set_operation(self, node, parent)
                self._order_of_result(node, found, parent)
                self.ctes = before
                return found
            case exp.Values():
                return read_values(self, node, parent)
        raise unsupported(f"{node.key.upper()} as a query in {DIALECT}", node)

    def _with(self, node: exp.Expr, parent: Scope | None) -> dict[str, Columns | None]:
        """Translate the WITH of a query; the CTEs that were visible before it."""
        before = self.ctes
        clause = node.args.get("with_")
        if clause is None:
            return before
        self.ctes = dict(before)
        for cte in clause.expressions:
            names = [each.name for each in cte.args["alias"].args.get("columns") or ()]
            name = cte.alias.lower()
            if clause.args.get("recursive"):
                self.ctes.pop(name, None)
                first = cte.this.this if isinstance(cte.this, exp.SetOperation) else None
                if first is not None:
                    copied = Queries(self.schemas, self.timezone)
                    copied.ctes = dict(self.ctes)
                    self.ctes[name] = renamed(copied.translate(first.copy(), parent), names, cte)
            self.ctes[name] = renamed(self.translate(cte.this, parent), names, cte)
        return before

    # ------------------------------------------------------------------ SELECT

    def _select(self, node: exp.Select, parent: Scope | None) -> Columns | None:
        scope = Scope(parent)
        read_from(self, node, scope)
        expressions = Expressions(scope, self)
        scope.windows = frozenset(names_of(each.this for each in node.args.get("windows") or ()))
        columns: list[tuple[str, t.SqlType]] | None = []
        written = [each.copy() for each in node.expressions]
        made: list[exp.Expr] = []
        for each in list(node.expressions):
            found = self._projection(each, scope, expressions)
            if found is None:
                made.append(each)
                columns = None
                continue
            for name, typed in found:
                if typed.node is not STAR:
                    made.append(typed.node)
                if columns is not None:
                    columns.append((name, typed.type))
                scope.aliases.setdefault(name.lower(), typed.type)
        node.set("expressions", made)
        _check_having(node, scope)
        for part in ("where", "having", "qualify"):
            clause = node.args.get(part)
            if clause is not None:
                clause.set("this", expressions.truth(clause.this))
        group_by(node, written, expressions)
        for each in node.args.get("windows") or ():
            self._named_window(each, expressions)
        self._order(node, Scope(parent, scope.items, scope.aliases, aliases_first=True), columns)
        self._counts(node, expressions)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise unsupported(f"DISTINCT ON in {DIALECT}", node)
        return None if columns is None else tuple(columns)

    def _named_window(self, node: exp.Window, expressions: Expressions) -> None:
        from icesql.query.dialects.spark.windows import window

        made = window(expressions, node)
        for part in ("partition_by", "order", "spec"):
            node.set(part, made.args.get(part))

    def _order(self, node: exp.Expr, scope: Scope, columns: Sequence[object] | None) -> None:
        order = node.args.get("order")
        if order is not None:
            Expressions(scope, self).ordered(order.expressions)

    def _order_of_result(
        self, node: exp.Expr, columns: Columns | None, parent: Scope | None
    ) -> None:
        """ORDER BY and LIMIT of a set operation: they see the columns of its result."""
        scope = Scope(parent, [Item("", columns)])
        self._order(node, scope, columns)
        self._counts(node, Expressions(scope, self))

    def _counts(self, node: exp.Expr, expressions: Expressions) -> None:
        for part in ("limit", "offset"):
            clause = node.args.get(part)
            if clause is None:
                continue
            if not isinstance(clause, exp.Limit | exp.Offset):
                raise unsupported(f"FETCH in {DIALECT}", node, "use LIMIT")
            value = clause.args.get("expression")
            if value is not None and not isinstance(value, exp.Literal):
                clause.set("expression", expressions.of(value).node)

    def _projection(
        self, node: exp.Expr, scope: Scope, expressions: Expressions
    ) -> list[tuple[str, Typed]] | None:
        """One entry of the select list as columns; None where ``*`` stands for unknown ones."""
        if isinstance(node, exp.Star):
            self._check_star(node)
            found = scope.star()
            if found is None:
                return None
            scope.aliases.update((name.lower(), each) for name, each in found)
            return _as_star(node, found)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self._qualified_star(node, scope)
        if is_generator(node):
            return selected(node, expressions)
        name = _name(node)
        inner = node.this if isinstance(node, exp.Alias) else node
        typed = expressions.of(inner)
        if isinstance(node, exp.Alias):
            node.set("this", typed.node)
            return [(name, Typed(node, typed.type))]
        if isinstance(typed.node, exp.Column) and typed.node.name == name:
            return [(name, typed)]
        made = exp.alias_(typed.node, name, quoted=True, copy=False)
        return [(name, Typed(made, typed.type))]

    def _check_star(self, node: exp.Star) -> None:
        for part, value in node.args.items():
            if value and part not in ("except_", "except"):
                raise unsupported(f"* {part.upper()} in {DIALECT}", node)
            if value:
                raise unsupported(f"* EXCEPT in {DIALECT}", node, "name the columns")

    def _qualified_star(self, node: exp.Column, scope: Scope) -> list[tuple[str, Typed]] | None:
        parts = [part.name for part in node.parts[:-1]]
        self._check_star(node.this)
        if len(parts) == 1 and any(item.name == parts[0].lower() for item in scope.items):
            found = scope.star(parts[0])
            return None if found is None else _as_star(node, found)
        kind = scope.type_of(parts)
        if kind.kind != "struct":
            raise unsupported(
                f"{'.'.join(parts)}.* of what is no table or struct in {DIALECT}", node
            )
        made = []
        for name in kind.names:
            column = exp.Column(this=exp.to_identifier(name, quoted=True))
            for part, inner in zip(("table", "db"), reversed(node.parts[:-1]), strict=False):
                column.set(part, inner.copy())
            made.append((name, Typed(column, below(kind, [name]))))
        return made


def _check_having(node: exp.Select, scope: Scope) -> None:
    """Refuse a name in HAVING that is both a column and an alias: the engines differ in it."""
    having = node.args.get("having")
    if having is None:
        return
    own = {
        each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)
    }
    for column in having.find_all(exp.Column):
        value = own.get(column.name.lower())
        if value is None or column.table or value == column:
            continue
        if any(item.find(column.name) is not None for item in scope.items):
            raise unsupported(
                f"HAVING {column.name}, which is a column and an alias, in {DIALECT}", column,
                "give the alias another name",
            )  # fmt: skip


def _as_star(node: exp.Expr, columns: Columns) -> list[tuple[str, Typed]]:
    """One node that stands for several columns: their types matter, the node is written once."""
    if not columns:
        return [("", Typed(node, t.UNKNOWN))]
    first, *rest = columns
    return [(first[0], Typed(node, first[1])), *((name, Typed(STAR, kind)) for name, kind in rest)]


STAR: Final = exp.Star()


def _name(node: exp.Expr) -> str:
    """What a column of the result is called: its alias, its name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    if isinstance(node, exp.Literal):
        return node.name or "''"  # Spark's own name is empty, which no alias can be
    return str(
        node.sql(
            dialect="spark",
            normalize_functions=False,
            comments=False,
            unsupported_level=ErrorLevel.IGNORE,
        )
    )
