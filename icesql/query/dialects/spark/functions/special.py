"""Calls whose arguments are not plain values: lambdas, units, names, types, ``*``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.aggregates import Around, wrapped
from icesql.query.dialects.spark.calls import DIALECT, Typed, by_duckdb, converted, unified
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.spark.expressions import Expressions
from icesql.query.dialects.spark.functions.lambdas import LAMBDAS
from icesql.query.dialects.templates import call, duckdb, template
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

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
