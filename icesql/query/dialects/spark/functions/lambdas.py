"""Functions that take lambdas: transform, filter, exists, forall, aggregate, zip_with …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Scope
from icesql.query.dialects.spark.calls import DIALECT, Typed, by_duckdb, converted
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions
    from icesql.query.dialects.spark.functions.special import Scalar


def _depth(self: Expressions) -> int:
    """The number of lambda variables in scope. Names made with it never hide outer ones."""
    return len(self.scope.variables)


def _arguments(node: exp.Anonymous, least: int, most: int) -> list[exp.Expr]:
    if not least <= len(node.expressions) <= most:
        raise unsupported(
            f"{node.name.lower()}() with {len(node.expressions)} arguments in {DIALECT}", node
        )
    return list(node.expressions)


def _of_kind(self: Expressions, node: exp.Expr, kind: str, word: str) -> Typed:
    value = self.of(node)
    if value.type.kind != kind:
        raise unsupported(f"{value.type} where a {word} belongs in {DIALECT}", node)
    return value


def _array_of(self: Expressions, node: exp.Expr) -> Typed:
    return _of_kind(self, node, "array", "list")


def _body(self: Expressions, node: exp.Expr, kinds: Sequence[SqlType]) -> tuple[list[str], Typed]:
    """The variable names of a lambda and its translated body, for variables of these types."""
    from icesql.query.dialects.spark.expressions import Expressions as Inner

    if not isinstance(node, exp.Lambda):
        raise unsupported(f"{node.key} where a lambda belongs in {DIALECT}", node)
    names = [each.name for each in node.expressions]
    if not 1 <= len(names) <= len(kinds):
        raise unsupported(f"a lambda of {len(names)} variables here in {DIALECT}", node)
    variables = dict(self.scope.variables)
    variables.update((n.lower(), kind) for n, kind in zip(names, kinds, strict=False))
    outer = self.scope
    scope = Scope(outer.parent, outer.items, outer.aliases, variables)
    return names, Inner(scope, self.queries).of(node.this)


def _lambda(names: Sequence[str], body: exp.Expr) -> exp.Expr:
    return exp.Lambda(
        this=body, expressions=[exp.to_identifier(name, quoted=True) for name in names]
    )


def _from_zero(names: Sequence[str], body: exp.Expr) -> exp.Expr:
    """The body of a lambda whose second variable starts at 0 in Spark and at 1 in DuckDB."""
    if len(names) > 1:
        for each in list(body.find_all(exp.Identifier)):
            if each.name == names[1] and not isinstance(each.parent, exp.Column):
                made = exp.Paren(this=exp.Sub(this=each.copy(), expression=exp.Literal.number(1)))
                if each is body:
                    return made
                each.replace(made)
    return body


def _over(
    self: Expressions, node: exp.Anonymous, *variables: SqlType, truth: bool
) -> tuple[Typed, exp.Expr, SqlType]:
    """A list, the lambda over its elements and ``variables``, and the type of its results.

    ``truth``: the results are conditions.
    """
    values, function = _arguments(node, 2, 2)
    array = _array_of(self, values)
    names, body = _body(self, function, [array.type.element, *variables])
    result = converted(body, t.BOOLEAN, node) if truth else body.node
    return array, _lambda(names, _from_zero(names, result)), body.type


def _transform(self: Expressions, node: exp.Anonymous) -> Typed:
    array, function, kind = _over(self, node, t.INT, truth=False)
    return by_duckdb("list_transform($1, $2)", t.array(kind), array, function)


def _filter(self: Expressions, node: exp.Anonymous) -> Typed:
    array, function, _ = _over(self, node, t.INT, truth=True)
    return by_duckdb("list_filter($1, $2)", array.type, array, function)


def _quantified(text: str) -> Scalar:
    def special(self: Expressions, node: exp.Anonymous) -> Typed:
        array, function, _ = _over(self, node, truth=True)
        return by_duckdb(text, t.BOOLEAN, duckdb("list_transform($1, $2)", array.node, function))

    return special


def _aggregate(self: Expressions, node: exp.Anonymous) -> Typed:
    given = _arguments(node, 3, 4)
    array, start = _array_of(self, given[0]), self.of(given[1])
    kind = start.type
    # DuckDB's start value must have the elements' type, so both are wrapped in one struct type.
    left, right = f"own_left_{_depth(self)}", f"own_right_{_depth(self)}"
    fields = (left, "total"), (right, "element")
    step = _step(
        self,
        given[2],
        (kind, array.type.element),
        fields,
        "aggregate() with a lambda of one variable",
    )
    if t.common(kind, step.type) != kind:
        raise unsupported(
            f"aggregate() from {kind} to {step.type} in {DIALECT}", node, "cast the start value"
        )
    wanted, inner = t.duckdb_name(kind), t.duckdb_name(array.type.element)
    if wanted is None or inner is None:
        raise unsupported(f"aggregate() of {array.type} from {kind} in {DIALECT}", node)
    text = (
        f"CASE WHEN $1 IS NOT NULL THEN list_reduce(list_transform($1, lambda each: "
        f"{{'total': CAST(NULL AS {wanted}), 'element': CAST(each AS {inner})}}), "
        f"lambda {left}, {right}: "
        f"{{'total': CAST($2 AS {wanted}), 'element': CAST(NULL AS {inner})}}, "
        f"{{'total': CAST($3 AS {wanted}), 'element': CAST(NULL AS {inner})}}).total END"
    )
    found = by_duckdb(text, kind, array, converted(step, kind, node), start)
    if len(given) == 4:
        names, last = _body(self, given[3], [kind])
        text = "list_transform([$1], $2)[1]"
        return by_duckdb(text, last.type, found, _lambda(names, last.node))
    return found


def _step(
    self: Expressions,
    node: exp.Expr,
    kinds: Sequence[SqlType],
    fields: Sequence[tuple[str, str]],
    what: str,
) -> Typed:
    """The body of a lambda whose two variables become these fields of other variables."""
    names, body = _body(self, node, kinds)
    if len(names) != 2:
        raise unsupported(f"{what} in {DIALECT}", node.parent)
    by_name = dict(zip(names, fields, strict=True))
    root = exp.Paren(this=body.node)
    for each in list(root.find_all(exp.Identifier)):
        field = by_name.get(each.name)
        if field is not None and not isinstance(each.parent, exp.Column | exp.Lambda):
            each.replace(duckdb("struct_extract($1, $2)", exp.to_identifier(field[0]), field[1]))
    return Typed(root, body.type)


def _zip_with(self: Expressions, node: exp.Anonymous) -> Typed:
    left, right, function = _arguments(node, 3, 3)
    one, other = _array_of(self, left), _array_of(self, right)
    pair = f"own_pair_{_depth(self)}"
    kinds = (one.type.element, other.type.element)
    step = _step(
        self,
        function,
        kinds,
        ((pair, "l"), (pair, "r")),
        "zip_with() with a lambda of one variable",
    )
    text = (
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_transform(list_transform("
        "range(1, greatest(len($1), len($2)) + 1), lambda i: {'l': $1[i], 'r': $2[i]}), "
        f"lambda {pair}: $3) END"
    )
    return by_duckdb(text, t.array(step.type), one, other, step)


def _of_entries(gives: str, text: str) -> Scalar:
    """The functions over the entries of a map."""

    def special(self: Expressions, node: exp.Anonymous) -> Typed:
        values, function = _arguments(node, 2, 2)
        given = _of_kind(self, values, "map", "map")
        key, value = given.type.parts
        entry = f"own_entry_{_depth(self)}"
        fields = (entry, "key"), (entry, "value")
        step = _step(self, function, (key, value), fields, "a lambda of one variable over a map")
        kinds = {
            "entries": given.type,
            "values": t.map_of(key, step.type),
            "keys": t.map_of(step.type, value),
        }
        made = converted(step, t.BOOLEAN, node) if gives == "entries" else step
        return by_duckdb(text.format(entry=entry), kinds[gives], given, made)

    return special


def _array_sort(self: Expressions, node: exp.Anonymous) -> Typed:
    """``array_sort`` of the table; its comparator is refused by the number of arguments."""
    return self.row("array_sort", self.many(_arguments(node, 1, 1)), node)


_EXISTS: Final = (
    "CASE WHEN $1 IS NULL THEN NULL WHEN list_contains($1, true) THEN true "
    "WHEN len(list_filter($1, lambda x: x IS NULL)) > 0 THEN NULL ELSE false END"
)
_FORALL: Final = (
    "CASE WHEN $1 IS NULL THEN NULL WHEN list_contains($1, false) THEN false "
    "WHEN len(list_filter($1, lambda x: x IS NULL)) > 0 THEN NULL ELSE true END"
)
LAMBDAS: Final[dict[str, Any]] = {
    "array_sort": _array_sort,
    "transform": _transform,
    "filter": _filter,
    "exists": _quantified(_EXISTS),
    "forall": _quantified(_FORALL),
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "zip_with": _zip_with,
    "map_filter": _of_entries(
        "entries", "map_from_entries(list_filter(map_entries($1), lambda {entry}: $2))"
    ),
    "transform_values": _of_entries(
        "values", "map(map_keys($1), list_transform(map_entries($1), lambda {entry}: $2))"
    ),
    "transform_keys": _of_entries(
        "keys", "map(list_transform(map_entries($1), lambda {entry}: $2), map_values($1))"
    ),
}
