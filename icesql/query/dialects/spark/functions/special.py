"""Calls whose arguments are not plain values: lambdas, units, names, types, ``*``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import call, duckdb, template
from icesql.query.dialects.queries import Around, Scope, wrapped
from icesql.query.dialects.spark.calls import DIALECT, Typed, by_duckdb, cast, converted, unified
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions


# ------------------------------------------------------------------ lambdas


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


# ------------------------------------------------------------------ special calls


Special = Callable[[Expressions, exp.Anonymous, Around], Typed]
Scalar = Callable[[Expressions, exp.Anonymous], Typed]

# Functions that may be called without parentheses.
WORDS: Final = frozenset({"localtimestamp"})


def _count(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
    given = list(node.expressions)
    if len(given) == 1 and isinstance(given[0], exp.Star) and not any(given[0].args.values()):
        made: exp.Expr = template("count(*)", exact=False)
        return Typed(wrapped(made, around), t.BIGINT)
    distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
    if distinct:
        given = list(given[0].expressions)
    if not given:
        raise unsupported(f"count() without arguments in {DIALECT}", node)
    values = [each.node for each in self.many(given)]
    around.distinct = distinct
    if distinct and around.window is not None:
        raise unsupported(f"count(DISTINCT …) OVER in {DIALECT}", node)
    if len(values) == 1:
        made = duckdb("count($1)", values[0], exact=False)
    else:
        gaps = [f"${at + 1}" for at in range(len(values))]
        known = " AND ".join(f"{each} IS NOT NULL" for each in gaps)
        made = duckdb(f"count(CASE WHEN {known} THEN ({', '.join(gaps)}) END)", *values)
    return Typed(wrapped(made, around), t.BIGINT)


def _array(self: Expressions, node: exp.Anonymous) -> Typed:
    if not node.expressions:
        return Typed(exp.Array(expressions=[]), t.array(t.NULL))
    nodes, kind = unified(self.many(node.expressions), node, "array()")
    return Typed(exp.Array(expressions=nodes), t.array(kind))


def _map(self: Expressions, node: exp.Anonymous) -> Typed:
    given = self.many(node.expressions)
    if len(given) % 2 or not given:
        raise unsupported(f"map() of {len(given)} arguments in {DIALECT}", node)
    keys, key = unified(given[::2], node, "map()")
    values, value = unified(given[1::2], node, "map()")
    lists = [exp.Array(expressions=each) for each in (keys, values)]
    return by_duckdb("map($1, $2)", t.map_of(key, value), *lists)


def _struct(self: Expressions, node: exp.Anonymous) -> Typed:
    names, values = [], []
    for at, each in enumerate(node.expressions):
        named = isinstance(each, exp.Alias | exp.Column | exp.Dot)
        names.append(each.alias_or_name if named else f"col{at + 1}")
        values.append(self.of(each.unalias()))
    return _named_fields(node, names, values)


def _named_struct(self: Expressions, node: exp.Anonymous) -> Typed:
    names = node.expressions[::2]
    if len(node.expressions) % 2 or not names:
        raise unsupported(f"named_struct() of {len(node.expressions)} arguments in {DIALECT}", node)
    if not all(each.is_string for each in names):
        raise unsupported(f"named_struct() with names that are no constants in {DIALECT}", node)
    values = self.many(node.expressions[1::2])
    return _named_fields(node, [each.name for each in names], values)


def _named_fields(node: exp.Expr, names: list[str], values: list[Typed]) -> Typed:
    if len({name.lower() for name in names}) != len(names) or not names:
        raise unsupported(f"a struct with these names in {DIALECT}", node)
    pairs = [
        exp.PropertyEQ(this=exp.Literal.string(name), expression=value.node)
        for name, value in zip(names, values, strict=True)
    ]
    return Typed(exp.Struct(expressions=pairs), t.struct(names, [each.type for each in values]))


def _to(kind: SqlType, *, safe: bool = False) -> Scalar:
    """Cast functions such as ``int(x)``."""

    def special(self: Expressions, node: exp.Anonymous) -> Typed:
        if len(node.expressions) != 1:
            # With a pattern the name is a function of the table.
            return self.row(node.name.lower(), self.many(node.expressions), node)
        value = self.of(node.expressions[0])
        made = (
            None if value.type.kind == "unknown" else cast(value.node, value.type, kind, safe=safe)
        )
        if made is None:
            raise unsupported(f"{node.name.lower()}({value.type}) in {DIALECT}", node)
        return Typed(made, kind)

    return special


def _with_flag(name: str) -> Special:
    """``last(x, true)``: the flag ignores NULLs, like IGNORE NULLS."""

    def special(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
        given = list(node.expressions)
        ignoring = around.ignore_nulls
        if len(given) == 2:
            flag = given.pop()
            if not isinstance(flag, exp.Boolean):
                raise unsupported(f"{name}() with a flag that is no constant in {DIALECT}", node)
            ignoring = ignoring or bool(flag.this)
        key = f"{name}_ignore_nulls" if ignoring else name
        if ignoring and around.window is not None:
            key = f"{name.partition('_')[0]}_ignore_nulls_over"
        return self.row(key, self.many(given), node, around)

    return special


def _by_unit(name: str, months: Mapping[str, int]) -> Scalar:
    """``name`` of the table with a word as its unit; ``months`` has units that count in months."""

    def special(self: Expressions, node: exp.Anonymous) -> Typed:
        if len(node.expressions) != 3:
            return self.row(node.name.lower(), self.many(node.expressions), node)
        unit, *values = node.expressions
        if not isinstance(unit, exp.Var) and (not isinstance(unit, exp.Column) or unit.table):
            raise unsupported(f"a unit that is no word in {DIALECT}", unit)
        word = unit.name.upper()
        counted = exp.Literal.string("MONTH" if word in months else word)
        found = self.row(name, [Typed(counted, t.STRING), *self.many(values)], node)
        return by_duckdb(f"$1 // {months[word]}", found.type, found) if word in months else found

    return special


def _mode(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
    """``mode(x)`` and ``mode() WITHIN GROUP (ORDER BY x)``."""
    order, around.order = around.order, None
    if order is None:
        return self.row("mode", self.many(node.expressions), node, around)
    key = order.expressions[0]
    value = self.of(key.this)
    if node.expressions or key.args.get("desc"):
        raise unsupported(f"mode() WITHIN GROUP so in {DIALECT}", node)
    return self.row("mode", [value], node, around)


def _percentile(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
    """``percentile_cont(p) WITHIN GROUP (ORDER BY x)``, and percentile_disc."""
    name, order = node.name.lower(), around.order
    if order is None:
        raise unsupported(f"{name}() without WITHIN GROUP in {DIALECT}", node)
    key = order.expressions[0]
    value = self.of(key.this)
    share = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(share, exp.Literal) or share.is_string:
        raise unsupported(f"{name}() of a share that is no constant in {DIALECT}", node)
    part = float(share.name)
    if key.args.get("desc"):
        if name == "percentile_disc":
            raise unsupported(f"percentile_disc() WITHIN GROUP (… DESC) in {DIALECT}", node)
        part = 1 - part
    text = f"{name.replace('percentile', 'quantile')}($1, {part!r})"
    made = duckdb(text, converted(value, t.DOUBLE, node))
    return Typed(wrapped(made, around), t.DOUBLE)


def _listagg(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
    given = list(node.expressions)
    if given and isinstance(given[0], exp.Distinct):
        around.distinct = True
        given[:1] = given[0].expressions
    values = self.many(given)
    if not 1 <= len(values) <= 2:
        raise unsupported(f"listagg() of {len(values)} arguments in {DIALECT}", node)
    if len(values) == 2 and not isinstance(values[1].node, exp.Literal | exp.Null):
        raise unsupported(f"listagg() with a delimiter that is no constant in {DIALECT}", node)
    value = converted(values[0], t.STRING, node)
    delimiter = values[1].node if len(values) == 2 else exp.Literal.string("")
    if isinstance(delimiter, exp.Null):
        delimiter = exp.Literal.string("")
    order, around.order = around.order, None
    last: exp.Expr = delimiter
    if order is not None:
        self.ordered(order.expressions)
        last = exp.Order(this=delimiter, expressions=order.expressions)
    made = call("string_agg", value, last)
    if around.window is not None:
        raise unsupported(f"listagg() OVER in {DIALECT}", node)
    return Typed(wrapped(made, around), t.STRING)


def _typeof(self: Expressions, node: exp.Anonymous) -> Typed:
    value = self.of(node.expressions[0])
    if value.type.kind == "unknown" or len(node.expressions) != 1:
        raise unsupported(f"typeof() of this in {DIALECT}", node)
    text = str(value.type).replace(", ", ",").replace(": ", ":").replace("null", "void")
    if value.node.find(exp.Column, exp.Func) is None:
        return by_duckdb("$1", t.STRING, text)
    # Keep the argument: an aggregate in it makes one row, and its columns need GROUP BY.
    return by_duckdb("CASE WHEN $1 IS NULL THEN $2 ELSE $2 END", t.STRING, value, text)


def _timezone(self: Expressions, node: exp.Anonymous) -> Typed:
    if node.expressions:
        raise unsupported(f"current_timezone() with arguments in {DIALECT}", node)
    return Typed(exp.Literal.string(self.queries.timezone), t.STRING)


def _nothing_around(inner: Scalar) -> Special:
    """``inner`` for a scalar function, which refuses OVER, FILTER and DISTINCT."""

    def special(self: Expressions, node: exp.Anonymous, around: Around) -> Typed:
        if around != Around() or any(isinstance(e, exp.Distinct) for e in node.expressions):
            raise unsupported(
                f"DISTINCT, FILTER or OVER with {node.name.lower()}() in {DIALECT}", node
            )
        return inner(self, node)

    return special


_SCALARS: Final[dict[str, Scalar]] = {
    **LAMBDAS,
    "array": _array,
    "map": _map,
    "struct": _struct,
    "named_struct": _named_struct,
    "typeof": _typeof,
    "current_timezone": _timezone,
    **{
        kind: _to(SqlType(kind)) for kind in t.SCALAR if kind not in ("decimal", "null", t.NTZ.kind)
    },
    "decimal": _to(t.decimal(10, 0)),
    "to_date": _to(t.DATE),
    "to_timestamp": _to(t.TIMESTAMP),
    "to_timestamp_ntz": _to(t.NTZ),
    "to_timestamp_ltz": _to(t.TIMESTAMP),
    "try_to_date": _to(t.DATE, safe=True),
    "try_to_timestamp": _to(t.TIMESTAMP, safe=True),
    **dict.fromkeys(
        ("timestampdiff", "datediff", "date_diff"),
        _by_unit("timestampdiff", {"QUARTER": 3, "YEAR": 12}),
    ),
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), _by_unit("timestampadd", {})),
}
SPECIAL: Final[dict[str, Special]] = {
    **{name: _nothing_around(each) for name, each in _SCALARS.items()},
    "count": _count,
    "listagg": _listagg,
    "string_agg": _listagg,
    "percentile_cont": _percentile,
    "percentile_disc": _percentile,
    "mode": _mode,
    **{
        name + end: _with_flag(name)
        for name in ("first", "first_value", "last", "last_value", "any_value")
        for end in ("", "_ignore_nulls")
    },
}
