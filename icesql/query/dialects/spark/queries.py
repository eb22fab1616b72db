"""Translate Spark's queries to DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.iceberg.schema import Schema
from icesql.query.dialects import types as t
from icesql.query.dialects.queries import Queries
from icesql.query.dialects.scope import Columns, Scope
from icesql.query.dialects.spark.calls import DIALECT, check_parts, converted
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.spark.generators import (
    is_generator,
    laterals,
    selected,
    table_alias,
    table_function,
)
from icesql.query.dialects.spark.grouping import group_by
from icesql.query.dialects.spark.windows import window
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

_TABLE_PARTS: Final = frozenset({"this", "alias", "joins", "laterals"})
_JOIN_PARTS: Final = frozenset({"this", "on", "side", "kind", "using", "method"})


class SparkQueries(Queries):
    """Translates the queries of one tree, in place."""

    partly_named = False

    def __init__(self, schemas: Sequence[Schema], timezone: str) -> None:
        super().__init__(schemas, DIALECT)
        self.timezone = timezone

    def set_operation(self, node: exp.SetOperation, parent: Scope | None) -> Columns | None:
        """Translate a set operation in place, however long its chain; return its columns."""
        _check_set_operation(node)
        return super().set_operation(node, parent)

    def united(
        self, node: exp.SetOperation, left: Columns | None, right: Columns | None
    ) -> Columns | None:
        """The columns of a set operation; sides for which DuckDB's common type differs are cast."""
        if left is None or right is None:
            return left
        if len(left) != len(right):
            what = f"{node.key.upper()} of {len(left)} and {len(right)} columns"
            raise unsupported(what, node)
        found = []
        for at, ((name, one), (_, other)) in enumerate(zip(left, right, strict=True)):
            both = _common_type(node, [one, other])
            for side, kind in (("this", one), ("expression", other)):
                if kind != both and "null" not in (kind.kind, both.kind):
                    _cast_output(node, node.args[side], at, kind, both)
            found.append((name, both))
        return tuple(found)

    def result_clauses(self, node: exp.Query, scope: Scope) -> None:
        """Translate ORDER BY and LIMIT of a set operation, which see the columns of its result."""
        self._order(node, scope)
        self._counts(node, Expressions(scope, self))

    # ------------------------------------------------------------------ FROM

    def read_join(self, join: exp.Join, scope: Scope) -> None:
        """Read the table of a JOIN and translate its condition."""
        check_parts(join, _JOIN_PARTS, "JOIN with")
        super().read_join(join, scope)
        on = join.args.get("on")
        if on is not None:
            if join.kind == "CROSS":
                join.set("kind", None)
            join.set("on", Expressions(scope, self).truth(on))

    def read_item(self, node: exp.Expr, scope: Scope) -> None:
        """Read one item of FROM with the joins inside its parentheses."""
        for part in ("pivots", "sample"):
            if node.args.get(part):
                raise unsupported(f"{part.upper()} in {DIALECT}", node)
        if isinstance(node, exp.Table):
            check_parts(node, _TABLE_PARTS, "a table with")
        super().read_item(node, scope)

    def source(self, node: exp.Expr, scope: Scope) -> Columns | None:
        """Translate a table function."""
        if not isinstance(node, exp.Table | exp.Lateral):
            raise unsupported(f"{node.key.upper()} in FROM in {DIALECT}", node)
        return table_function(node, scope, self)

    def values(self, node: exp.Values, scope: Scope) -> Columns:
        """Translate VALUES, whose columns are col1, col2 … in Spark."""
        last = node.expressions[-1]
        named = node.args.get("alias") is not None
        if not named and isinstance(last, exp.Tuple) and len(last.expressions) == 1:
            only = last.expressions[0]
            if isinstance(only, exp.Alias):  # VALUES 1, 2 t
                node.set("alias", exp.TableAlias(this=only.args["alias"]))
                only.replace(only.this)
        rows = []
        expressions = Expressions(scope, self)
        for row in node.expressions:
            parts = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]
            rows.append(expressions.many(list(parts)))
        if len({len(row) for row in rows}) != 1:
            raise unsupported(f"VALUES of rows of different lengths in {DIALECT}", node)
        kinds = [_common_type(node, [row[at].type for row in rows]) for at in range(len(rows[0]))]
        made = [
            exp.Tuple(
                expressions=[
                    converted(value, kind, node) for value, kind in zip(row, kinds, strict=True)
                ]
            )
            for row in rows
        ]
        node.set("expressions", made)
        numbered = [f"col{at + 1}" for at in range(len(kinds))]
        table, names = table_alias(node, "inline_table", numbered)
        node.set("alias", table)
        return tuple(zip(names, kinds, strict=True))

    # ------------------------------------------------------------------ SELECT

    def select(self, node: exp.Select, scope: Scope) -> Columns | None:
        """Translate a SELECT in place; return its columns, None if they are not known."""
        self.read_from(node, scope)
        laterals(node, scope, self)
        expressions = Expressions(scope, self)
        columns: Columns | None = ()
        written = [each.copy() for each in node.expressions]
        made: list[exp.Expr] = []
        for each in list(node.expressions):
            nodes, found = self._projection(each, scope, expressions)
            made += nodes
            columns = None if columns is None or found is None else (*columns, *found)
            for name, kind in found or ():
                scope.aliases.setdefault(name.lower(), kind)
        node.set("expressions", made)
        _check_having(node, scope)
        for part in ("where", "having", "qualify"):
            clause = node.args.get(part)
            if clause is not None:
                clause.set("this", expressions.truth(clause.this))
        group_by(node, written, expressions)
        for each in node.args.get("windows") or ():
            window(expressions, each)
        self._order(node, Scope(scope.parent, scope.items, scope.aliases, aliases_first=True))
        self._counts(node, expressions)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise unsupported(f"DISTINCT ON in {DIALECT}", node)
        return columns

    def _order(self, node: exp.Expr, scope: Scope) -> None:
        order = node.args.get("order")
        if order is not None:
            Expressions(scope, self).ordered(order.expressions)

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
    ) -> tuple[Sequence[exp.Expr], Columns | None]:
        """An entry of the select list, and its columns; None if those of ``*`` are not known."""
        if isinstance(node, exp.Star):
            self._check_star(node)
            found = scope.star()
            scope.aliases.update((name.lower(), each) for name, each in found or ())
            return [node], found
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self._qualified_star(node, scope)
        if is_generator(node):
            return selected(node, expressions)
        name = _name(node)
        typed = expressions.of(node.unalias())
        if isinstance(node, exp.Alias):
            node.set("this", typed.node)
            made: exp.Expr = node
        elif isinstance(typed.node, exp.Column) and typed.node.name == name:
            made = typed.node
        else:
            made = exp.alias_(typed.node, name, quoted=True, copy=False)
        return [made], ((name, typed.type),)

    def _check_star(self, node: exp.Star) -> None:
        check_parts(node, ("except_", "except"), "*")
        if any(node.args.values()):
            raise unsupported(f"* EXCEPT in {DIALECT}", node, "name the columns")

    def _qualified_star(
        self, node: exp.Column, scope: Scope
    ) -> tuple[Sequence[exp.Expr], Columns | None]:
        parts = [part.name for part in node.parts[:-1]]
        self._check_star(node.this)
        if len(parts) == 1 and any(item.name == parts[0].lower() for item in scope.items):
            return [node], scope.star(parts[0])
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
            made.append(column)
        return made, tuple(zip(kind.names, kind.parts, strict=True))


def _check_set_operation(node: exp.SetOperation) -> None:
    """Refuse set operations that sqlglot parses differently from Spark."""
    if node.args.get("by_name") or node.args.get("side") or node.args.get("on"):
        raise unsupported(f"{node.key.upper()} BY NAME in {DIALECT}", node)
    first = node
    while type(first.this) is type(node) and not first.this.args.get("with_"):
        first = first.this
    if isinstance(node, exp.Intersect) and isinstance(first.this, exp.Union | exp.Except):
        beside = first.this.key.upper()
        raise unsupported(f"INTERSECT beside {beside} in {DIALECT}", node, "use parentheses")


def _cast_output(
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


def _common_type(node: exp.Expr, kinds: Sequence[SqlType]) -> SqlType:
    """The common type of the values of one column. Raises UnsupportedSqlError at ``node``."""
    found = t.NULL
    for kind in kinds:
        both = t.common(found, kind)
        if both is None:
            raise unsupported(f"{found} and {kind} in one column in {DIALECT}", node, "cast them")
        found = both
    return found


def _check_having(node: exp.Select, scope: Scope) -> None:
    """Refuse a name in HAVING that is both a column and an alias: Spark and DuckDB differ."""
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


def _name(node: exp.Expr) -> str:
    """The name of a result column: its alias, its column name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    if isinstance(node, exp.Literal):
        return node.name or "''"  # Spark's name for it is empty, but an alias cannot be
    return str(
        node.sql(
            dialect="spark",
            normalize_functions=False,
            comments=False,
            unsupported_level=ErrorLevel.IGNORE,
        )
    )
