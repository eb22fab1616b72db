"""What stands in FROM of Spark's text: tables, joins, derived tables, VALUES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.iceberg.metadata_columns import METADATA_COLUMNS
from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Columns, Item, Scope, names_of, table_name
from icesql.query.dialects.spark.calls import DIALECT, converted
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.spark.generators import laterals, table_function
from icesql.query.names import scan_index
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.queries import Queries

_TABLE_PARTS: Final = frozenset({"this", "alias", "joins", "laterals"})
_JOIN_PARTS: Final = frozenset({"this", "on", "side", "kind", "using", "method"})
_FILE: Final = "__file_"


def read_from(self: Queries, node: exp.Select, scope: Scope) -> None:
    """FROM, joins and LATERAL VIEWs of a SELECT, in place; ``scope`` gets their items."""
    start = node.args.get("from_")
    if start is not None:
        read_item(self, start.this, scope)
    for join in node.args.get("joins") or ():
        read_join(self, join, scope)
    laterals(node, scope, self)


def read_join(self: Queries, join: exp.Join, scope: Scope) -> None:
    """A JOIN, whose condition sees what stands before it."""
    for part, value in join.args.items():
        if value and part not in _JOIN_PARTS:
            raise unsupported(f"JOIN with {part.upper()} in {DIALECT}", join)
    known = {name.lower() for item in scope.items for name, _ in item.columns or ()}
    before = len(scope.items)
    read_item(self, join.this, scope)
    kind = str(join.args.get("kind") or "").upper()
    if kind == "CROSS" and join.args.get("on") is not None:
        join.set("kind", None)
    joined = scope.items[before:]
    using = frozenset(names_of(join.args.get("using") or ()))
    for item in joined:
        own = {name.lower() for name, _ in item.columns or ()}
        item.merged = using | (known & own if join.method == "NATURAL" else frozenset())
        item.filter_only = kind in ("SEMI", "ANTI")
    if join.args.get("on") is not None:
        join.set("on", Expressions(scope, self).truth(join.args["on"]))


def read_item(self: Queries, node: exp.Expr, scope: Scope) -> None:
    """One thing in FROM with the joins inside its parentheses."""
    for part in ("pivots", "sample"):
        if node.args.get(part):
            raise unsupported(f"{part.upper()} in {DIALECT}", node)
    match node:
        case exp.Table():
            read_table(self, node, scope)
        case exp.Subquery() if isinstance(node.this, exp.Query):
            columns = self.translate(node, scope.parent)
            scope.items.append(aliased(self, node, columns))
        case exp.Subquery() | exp.Paren():
            read_item(self, node.this, scope)
        case exp.Values():
            scope.items.append(aliased(self, node, read_values(self, node, scope)))
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            columns = self.translate(node.this, scope)
            scope.items.append(aliased(self, node, columns))
        case exp.Lateral():
            scope.items.append(aliased(self, node, table_function(node, scope, self)))
        case _:
            raise unsupported(f"{node.key.upper()} in FROM in {DIALECT}", node)
    for join in node.args.get("joins") or ():
        read_join(self, join, scope)


def read_table(self: Queries, node: exp.Table, scope: Scope) -> None:
    """A table: a scan, a CTE, files, or a function that makes rows."""
    for part, value in node.args.items():
        if value and part not in _TABLE_PARTS:
            raise unsupported(f"a table with {part.upper()} in {DIALECT}", node)
    index = scan_index(node)
    if index is not None:
        fields = self.schemas[index].fields
        columns = tuple((each.name, t.of_iceberg(each.type)) for each in fields)
        item = aliased(self, node, columns)
        item.hidden = {name: t.of_iceberg(each.type) for name, each in METADATA_COLUMNS.items()} | {
            "_partition": t.UNKNOWN
        }
        scope.items.append(item)
    elif isinstance(node.this, exp.Func):
        scope.items.append(aliased(self, node, table_function(node, scope, self)))
    elif node.name.startswith(_FILE):
        scope.items.append(aliased(self, node, None))
    else:
        scope.items.append(aliased(self, node, self.ctes.get(node.name.lower())))


def aliased(self: Queries, node: exp.Expr, columns: Columns | None) -> Item:
    """The item of a node, under its alias and the names that this gives."""
    alias = node.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or ()] if alias else []
    return Item(table_name(node), renamed(columns, names, node))


def read_values(self: Queries, node: exp.Values, scope: Scope | None) -> Columns:
    """VALUES, whose columns are col1, col2 … to Spark."""
    alias = node.args.get("alias")
    last = node.expressions[-1]
    if alias is None and isinstance(last, exp.Tuple) and len(last.expressions) == 1:
        only = last.expressions[0]
        if isinstance(only, exp.Alias):  # VALUES 1, 2 t
            alias = exp.TableAlias(this=only.args["alias"])
            only.replace(only.this)
    rows = []
    expressions = Expressions(Scope(scope), self)
    for row in node.expressions:
        parts = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]
        rows.append(expressions.many(list(parts)))
    if len({len(row) for row in rows}) != 1:
        raise unsupported(f"VALUES of rows of different lengths in {DIALECT}", node)
    kinds = [common_type(node, [row[at].type for row in rows]) for at in range(len(rows[0]))]
    made = [
        exp.Tuple(
            expressions=[
                converted(value, kind, node) for value, kind in zip(row, kinds, strict=True)
            ]
        )
        for row in rows
    ]
    node.set("expressions", made)
    given = alias.args.get("columns") if alias is not None else None
    names = [each.name for each in given or ()] or [f"col{at + 1}" for at in range(len(kinds))]
    if len(names) != len(kinds):
        raise unsupported(f"{len(names)} names for {len(kinds)} columns in {DIALECT}", node)
    own = alias.this if alias is not None and alias.this is not None else "inline_table"
    identifiers = [exp.to_identifier(name, quoted=True) for name in names]
    node.set("alias", exp.TableAlias(this=exp.to_identifier(own), columns=identifiers))
    return tuple(zip(names, kinds, strict=True))


def renamed(columns: Columns | None, names: Sequence[str], node: exp.Expr) -> Columns | None:
    """Columns under the names of an alias."""
    if not names or columns is None:
        return columns if not names else tuple((name, t.UNKNOWN) for name in names)
    if len(names) != len(columns):
        raise unsupported(f"{len(names)} names for {len(columns)} columns in {DIALECT}", node)
    return tuple((name, kind) for name, (_, kind) in zip(names, columns, strict=True))


def common_type(node: exp.Expr, kinds: Sequence[t.SqlType]) -> t.SqlType:
    """The type that values of one column have in common."""
    found = t.NULL
    for kind in kinds:
        both = t.common(found, kind)
        if both is None:
            raise unsupported(f"{found} and {kind} in one column in {DIALECT}", node, "cast them")
        found = both
    return found
