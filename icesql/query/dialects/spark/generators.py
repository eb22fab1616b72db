"""Functions that return rows: explode, posexplode, inline, stack; LATERAL VIEW; range in FROM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Columns, Item, Scope
from icesql.query.dialects.spark.calls import DIALECT, Typed, unified
from icesql.query.dialects.templates import call, duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions
    from icesql.query.dialects.spark.queries import SparkQueries

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
