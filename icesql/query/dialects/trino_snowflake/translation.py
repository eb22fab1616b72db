"""Translate a tree of Trino's or Snowflake's dialect to DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, TimeType
from icesql.query.dialects import types as t
from icesql.query.dialects.functions import (
    Match,
    Row,
    filled,
    functions,
    refused,
    resolve,
    takes_count,
)
from icesql.query.dialects.queries import Columns, Queries, Scope, names_of, with_aggregates
from icesql.query.dialects.trino_snowflake import operators
from icesql.query.dialects.trino_snowflake.builders import BUILDERS
from icesql.query.dialects.trino_snowflake.operators import (
    TIME,
    common,
    converted,
    type_of,
    word,
)
from icesql.query.dialects.types import SqlType
from icesql.sql.grammar import kinds_of_nodes
from icesql.sql.positions import unsupported
from icesql.sql.syntax_errors import meaning

_WRAPPERS: Final = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Window)
_PLAIN: Final = kinds_of_nodes("same in DuckDB")


def translate(
    tree: exp.Expr, schemas: Sequence[Schema], dialect: str, ctes: Mapping[str, Columns | None]
) -> None:
    """Rewrite ``tree`` in place; ``schemas`` are those of its scans, ``ctes`` are in scope.

    Raises UnsupportedSqlError at the offset of a construct that the dialect's table does not have.
    """
    translation = Translation(schemas, dialect)
    translation.ctes.update(ctes)
    translation.translate(tree)
    _check_written(tree, translation)


def _check_written(tree: exp.Expr, translation: Translation) -> None:
    """Refuse constructs that the generator of DuckDB's SQL would drop."""
    try:
        tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        for node in reversed(list(tree.dfs())):
            try:
                node.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
            except UnsupportedError as inner:
                raise translation.refuse(str(inner), node) from error
        raise translation.refuse(str(error), tree) from error


class Translation(Queries):
    """The translation of one statement; ``scope`` is that of the expression being translated."""

    def __init__(self, schemas: Sequence[Schema], dialect: str) -> None:
        super().__init__(schemas, f"{dialect.title()}'s SQL")
        self.dialect, self.scope = dialect, Scope()
        self._rows = functions(dialect)

    def type(self, node: exp.Expr) -> SqlType:
        """The type of a translated node."""
        return type_of(node, self.scope)

    # ------------------------------------------------------------------ queries

    def column_type(self, type: IcebergType) -> SqlType:
        """The dialect's type of a table column."""
        return TIME if isinstance(type, TimeType) else super().column_type(type)

    def select(self, node: exp.Select, scope: Scope) -> Columns | None:
        """Translate a SELECT in place; return its columns, None if they are not known."""
        self.read_from(node, scope)
        self._arguments(node, scope, "with_", "from_", "joins")
        columns: list[tuple[str, SqlType]] = []
        for each in node.expressions:
            if each.is_star:
                found = self._star(each, scope)
                if found is None:
                    return None
                columns += found
            else:
                columns.append((each.alias_or_name, type_of(each, scope)))
        return tuple(columns)

    def _star(self, node: exp.Expr, scope: Scope) -> Columns | None:
        """The columns of ``*`` or ``t.*``, None if they are not known."""
        star = node.this if isinstance(node, exp.Column) else node
        found = scope.star(node.table if isinstance(node, exp.Column) else "")
        if not found or star.args.get("rename") or star.args.get("replace"):
            return None
        without = set(names_of(star.args.get("except_") or ()))
        return tuple(each for each in found if each[0].lower() not in without)

    def united(
        self, node: exp.SetOperation, left: Columns | None, right: Columns | None
    ) -> Columns | None:
        """The columns of a set operation."""
        if left is None or right is None or len(left) != len(right):
            return None
        pairs = zip(left, right, strict=True)
        return tuple((name, common((one, other))) for (name, one), (_, other) in pairs)

    def result_clauses(self, node: exp.Query, scope: Scope) -> None:
        """Translate ORDER BY and LIMIT of a set operation or of a query in parentheses."""
        self._arguments(node, scope, "with_", "this", "expression", "joins")

    def values(self, node: exp.Values, scope: Scope) -> Columns:
        """Translate VALUES in place."""
        self._rest(node, scope)
        rows = [
            row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions
        ]
        width = min(map(len, rows))
        return tuple(("", common(type_of(row[at], scope) for row in rows)) for at in range(width))

    def read_join(self, join: exp.Join, scope: Scope) -> None:
        """Read the table of a JOIN and translate its condition."""
        super().read_join(join, scope)
        self._rest(join, scope, "this")

    def read_item(self, node: exp.Expr, scope: Scope) -> None:
        """Read one item of FROM with the joins inside its parentheses."""
        super().read_item(node, scope)
        is_query = isinstance(node.this, exp.Query)
        if isinstance(node, exp.Table | exp.Lateral | exp.Paren | exp.Subquery) and not is_query:
            self._rest(node, scope, "this", "joins")

    def source(self, node: exp.Expr, scope: Scope) -> Columns | None:
        """Translate UNNEST; refuse all other items."""
        self._rest(node, scope, "joins")
        return None

    def _rest(self, node: exp.Expr, scope: Scope, *read: str) -> None:
        """Translate a node and its arguments, except those named in ``read``."""
        self._arguments(node, scope, *read)
        self.scope = scope
        self.node(node)

    def _arguments(self, node: exp.Expr, scope: Scope, *read: str) -> None:
        """Translate the arguments of a node, except those named in ``read``."""
        for name, value in list(node.args.items()):
            if name not in read:
                for each in list(value) if isinstance(value, list) else [value]:
                    if isinstance(each, exp.Expression):
                        self._expression(each, scope)

    def _expression(self, root: exp.Expr, scope: Scope) -> None:
        """Translate an expression in place: subqueries first, then operands, then operators."""
        nodes = []
        # An explicit stack: an OR of 10,000 terms is a tree 10,000 levels deep.
        stack = [root]
        while stack:
            each = stack.pop()
            if not isinstance(each, exp.Query):
                stack.extend(each.iter_expressions(reverse=True))
                nodes.append(each)
                continue
            columns = self.translate(each, scope)
            if columns is not None and len(columns) == 1:
                each.meta["type"] = columns[0][1]
        self.scope = scope
        for each in reversed(nodes):
            self.node(each)

    # ------------------------------------------------------------------ expressions

    def node(self, node: exp.Expr) -> None:
        """Translate one node with translated operands."""
        if isinstance(node, exp.Extract):
            unit = exp.Literal.string(node.this.name)
            call = exp.Anonymous(this="extract", expressions=[unit, node.expression])
            _replace(node, call)
            node = call
        if isinstance(node, exp.Anonymous):
            self._call(node)
            return
        if node.key.startswith("jsonpath") or isinstance(node, exp.Kwarg):
            return  # its parent is refused
        if isinstance(node, exp.JSONExtract):
            raise self.refuse("a path into a value (v:a.b)", node)
        made = operators.rewritten(self, node)
        if made is node:
            if node.key not in _PLAIN:
                if isinstance(node, exp.Func):
                    raise self.refuse(f"the function {node.sql_name().lower()}()", node)
                raise self.refuse(node.key.upper(), node)
        elif made is not None:
            _replace(node, made)

    # ------------------------------------------------------------------ calls

    def _call(self, node: exp.Anonymous) -> None:
        name = node.name.lower()
        forms = self._rows.get(name, ())
        quoted = isinstance(node.this, exp.Identifier)
        if quoted or not forms or isinstance(node.parent, exp.Table):
            raise unsupported(
                f"the function {name}() in {self.dialect_name}",
                node,
                meaning(name, self.dialect)
                or "icesql translates the functions of its table for this dialect and no others",
            )
        match = self._match(node, name, forms)
        row = match.row
        wrappers = _wrappers(node)
        self._check_modifiers(node, row, wrappers)
        arguments = list(node.expressions)
        if row.built:
            made = BUILDERS[row.text](self, node, arguments)
        else:
            copies = [each.copy() for each in arguments]
            made = filled(row.tree(len(copies)), copies, once=False)
        made.meta.setdefault("type", t.UNKNOWN if match.gives.kind == "any" else match.gives)
        _put(node, made, wrappers)

    def _match(self, node: exp.Expr, name: str, forms: tuple[Row, ...]) -> Match:
        count = len(node.expressions)
        fitting = [row for row in forms if takes_count((row,), count)]
        if not fitting:
            raise self.refuse(f"{name}() with {count} argument{'s' * (count != 1)}", node)
        types = [self.type(each) for each in node.expressions]
        constants = [self._constant(each) for each in node.expressions]
        # If only one row fits, the engine checks the argument types.
        match = resolve(fitting, types, constants, converted, takes_unknown=True)
        if match is None:
            shown, hint = refused(fitting, [*map(word, types)], constants)
            if word(t.UNKNOWN) in shown:
                hint = "CAST what is unknown to its type"
            raise self.refuse(f"{name}({', '.join(shown)})", node, hint)
        return match

    def _constant(self, node: exp.Expr) -> str | None:
        """The text of a constant; in Snowflake a unit of time may be a bare word."""
        is_word = self.dialect == "snowflake" and isinstance(node, exp.Column | exp.Var)
        return node.name if is_word or isinstance(node, exp.Literal) else None

    def _check_modifiers(self, node: exp.Expr, row: Row, wrappers: list[exp.Expr]) -> None:
        kinds = {type(each) for each in wrappers}
        name = f"{row.name}()"
        if row.kind == "scalar" and kinds:
            raise self.refuse(f"OVER or FILTER after {name}", node)
        if row.kind == "window" and exp.Window not in kinds:
            raise self.refuse(f"{name} without OVER", node)
        if row.kind != "window" and exp.IgnoreNulls in kinds:
            raise self.refuse(f"IGNORE NULLS of {name}", node)
        if exp.WithinGroup in kinds and not row.built:
            raise self.refuse(f"WITHIN GROUP of {name}", node)
        for each in node.expressions:
            if isinstance(each, exp.Kwarg):
                raise self.refuse(f"a named argument of {name}", each)
            if isinstance(each, exp.Distinct | exp.Order) and row.kind != "aggregate":
                raise self.refuse(f"{each.key.upper()} inside of {name}", node)


def _wrappers(node: exp.Expr) -> list[exp.Expr]:
    """FILTER, IGNORE NULLS, WITHIN GROUP and OVER around a call, from the inside out."""
    found: list[exp.Expr] = []
    parent = node.parent
    while isinstance(parent, _WRAPPERS) and parent.this is node:
        found.append(parent)
        node, parent = parent, parent.parent
    return found


def _put(node: exp.Expr, made: exp.Expr, wrappers: list[exp.Expr]) -> None:
    """Replace a call by ``made``, with the wrappers around the aggregates of ``made`` only."""
    # A builder may have removed WITHIN GROUP.
    wrappers = [each for each in wrappers if not isinstance(each, exp.WithinGroup)]
    if not wrappers:
        _replace(node, made)
        return
    outer, start = wrappers[-1], node.meta.get("start")
    node.replace(exp.Placeholder())

    def around(call: exp.Expr) -> exp.Expr:
        copied = place = outer.copy()
        while not isinstance(place, exp.Placeholder):
            place = place.this
        place.replace(call)
        if start is not None:
            call.meta.setdefault("start", start)
        return copied

    _replace(outer, with_aggregates(made, around))


def _replace(node: exp.Expr, made: exp.Expr) -> None:
    start = node.meta.get("start")
    node.replace(made)
    if start is not None:
        made.meta.setdefault("start", start)
