"""Translate Spark's queries to DuckDB, with their grouping and the functions that return rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.iceberg.schema import Schema
from icesql.query.dialects import types as t
from icesql.query.dialects.functions import call, duckdb
from icesql.query.dialects.queries import Columns, Item, Queries, Scope
from icesql.query.dialects.spark.calls import (
    DIALECT,
    Typed,
    cast,
    check_parts,
    converted,
    unified,
    window,
)
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions


# ------------------------------------------------------------------ GROUP BY


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


# ------------------------------------------------------------------ functions that return rows


_GENERATORS: Final = frozenset({"explode", "posexplode", "inline", "stack"})


class Made(Struct):
    """An output column of a generator: its name, the list of its values, its type."""

    name: str
    values: exp.Expr
    type: SqlType


def _base(name: str) -> tuple[str, bool]:
    return name.removesuffix("_outer"), name.endswith("_outer")


def is_generator(node: exp.Expr) -> bool:
    """True if an entry of the select list is a generator."""
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    return isinstance(inner, exp.Anonymous) and _base(inner.name.lower())[0] in _GENERATORS


def _lists(call: exp.Expr, expressions: Expressions) -> tuple[list[Made], bool]:
    """The columns of a generator; True if it returns a row of NULLs instead of no rows."""
    if not is_generator(call):
        raise unsupported(f"{call.key.upper()} as a generator in {DIALECT}", call)
    name, outer = _base(call.name.lower())
    given = expressions.many(call.expressions)
    if name == "stack":
        return _stack(call, given), outer
    if len(given) != 1:
        raise unsupported(f"{name}() with {len(given)} arguments in {DIALECT}", call)
    return _unnested(name, given[0], call), outer


def _unnested(name: str, value: Typed, call: exp.Expr) -> list[Made]:
    kind = value.type
    if name in ("explode", "posexplode") and kind.kind == "array":
        found = [Made("col", value.node, kind.element)]
    elif name in ("explode", "posexplode") and kind.kind == "map":
        found = [
            Made("key", duckdb("map_keys($1)", value.node.copy()), kind.parts[0]),
            Made("value", duckdb("map_values($1)", value.node), kind.parts[1]),
        ]
    elif name == "inline" and kind.kind == "array" and kind.element.kind == "struct":
        return [
            Made(
                field,
                duckdb(
                    "list_transform($1, lambda each: struct_extract(each, $2))",
                    value.node.copy(),
                    field,
                ),
                part,
            )
            for field, part in zip(kind.element.names, kind.element.parts, strict=True)
        ]
    else:
        raise unsupported(f"{name}({kind}) in {DIALECT}", call)
    if name == "explode":
        return found
    places = "list_transform($1, lambda x, i: CAST(i - 1 AS INT))"
    return [Made("pos", duckdb(places, found[0].values.copy()), t.INT), *found]


def _stack(call: exp.Expr, given: list[Typed]) -> list[Made]:
    count = given[0].node if given else None
    if not isinstance(count, exp.Literal) or count.is_string or int(count.name) < 1:
        raise unsupported(f"stack() without a constant number of rows in {DIALECT}", call)
    rows, values = int(count.name), given[1:]
    width = -(-len(values) // rows)
    if not width:
        raise unsupported(f"stack() without values in {DIALECT}", call)
    values += [Typed(exp.Null(), t.NULL)] * (rows * width - len(values))
    found = []
    for at in range(width):
        nodes, kind = unified(values[at::width], call, "a column")
        found.append(Made(f"col{at}", exp.Array(expressions=nodes), kind))
    return found


def _column(name: str, values: exp.Expr, outer: bool) -> exp.Expr:
    if outer:
        values = duckdb("CASE WHEN len($1) > 0 THEN $1 ELSE [NULL] END", values)
    return exp.alias_(call("unnest", values), name, quoted=True, copy=False)


def selected(node: exp.Expr, expressions: Expressions) -> tuple[list[exp.Expr], Columns]:
    """The entries of a generator in the select list, and their columns."""
    call = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    made, outer = _lists(call, expressions)
    names = [each.name for each in made]
    if isinstance(node, exp.Alias):
        names = [node.alias]
    elif isinstance(node, exp.Aliases):
        names = [each.name for each in node.expressions]
    if len(names) != len(made):
        raise unsupported(f"{len(names)} names for {len(made)} columns in {DIALECT}", node)
    pairs = list(zip(names, made, strict=True))
    nodes = [_column(name, each.values, outer) for name, each in pairs]
    return nodes, tuple((name, each.type) for name, each in pairs)


def laterals(select: exp.Select, scope: Scope, queries: SparkQueries) -> None:
    """Replace each LATERAL VIEW of a SELECT by a join with a query over the row."""
    views = select.args.get("laterals") or []
    joins = list(select.args.get("joins") or [])
    for view in views:
        outer = bool(view.args.get("outer"))
        columns, query = _query(view.this, scope, queries, outer)
        table, names = table_alias(view, "view", [each.name for each in columns])
        types = (each.type for each in columns)
        scope.items.append(Item(table.name.lower(), tuple(zip(names, types, strict=True))))
        joins.append(exp.Join(this=exp.Subquery(this=query, alias=table), kind="CROSS"))
    if views:
        select.set("laterals", None)
        select.set("joins", joins)


def _query(
    call: exp.Expr, scope: Scope, queries: SparkQueries, outer: bool
) -> tuple[list[Made], exp.Select]:
    from icesql.query.dialects.spark.expressions import Expressions

    made, with_row = _lists(call, Expressions(scope, queries))
    values = [_column(each.name, each.values, with_row or outer) for each in made]
    return made, exp.Select(expressions=values)


def table_alias(
    node: exp.Expr, default: str, names: Sequence[str]
) -> tuple[exp.TableAlias, Sequence[str]]:
    """The alias of an item of FROM, and the names of its columns: ``names`` if it gives none."""
    alias = node.args.get("alias")
    given = node.alias_column_names
    if given and len(given) != len(names):
        raise unsupported(f"{len(given)} names for {len(names)} columns in {DIALECT}", node)
    names = given or names
    own = alias.this if alias is not None and alias.this is not None else exp.to_identifier(default)
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    return exp.TableAlias(this=own.copy(), columns=columns), names


def table_function(node: exp.Expr, scope: Scope, queries: SparkQueries) -> Columns:
    """Translate a function in FROM in place: ``range`` or a generator."""
    from icesql.query.dialects.spark.expressions import Expressions

    call = node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else call.key
    if name == "range":
        given = Expressions(Scope(), queries).many(call.expressions)
        if not 1 <= len(given) <= 3 or any(each.type.kind not in t.INTEGRAL for each in given):
            raise unsupported(f"range() with these arguments in {DIALECT}", node)
        bounds = ", ".join(f"CAST(${at + 1} AS BIGINT)" for at in range(len(given)))
        function = duckdb(f"range({bounds})", *(each.node for each in given))
        node.set("alias", table_alias(node, "range", ["id"])[0])
        node.set("this", function)
        return (("id", t.BIGINT),)
    if not is_generator(call):
        raise unsupported(f"the table function {name}() in {DIALECT}", node)
    made, query = _query(call, scope, queries, False)
    table, names = table_alias(node, name, [each.name for each in made])
    node.replace(exp.Subquery(this=query, alias=table))
    return tuple((each, part.type) for each, part in zip(names, made, strict=True))


# ------------------------------------------------------------------ queries


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
