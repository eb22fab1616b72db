"""Functions whose DuckDB expression depends on constants among the arguments, or on their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT, Typed, converted, unified
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.spark.functions import texts, times
from icesql.query.dialects.spark.operators import (
    arithmetic,
    comparable,
    literal_number,
    quotient,
    unscaled,
)
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

# Arguments: typed arguments, the row's result type, the call, the queries around it.
Built = Callable[..., Typed]


def constant_integer(value: Typed, at: exp.Expr, what: str) -> int:
    """The value of a constant integer argument. Raises UnsupportedSqlError for other arguments."""
    number = literal_number(value.node)
    if number is None or not number.lstrip("-").isdigit():
        raise unsupported(f"{what} that is no constant in {DIALECT}", at)
    return int(number)


# ------------------------------------------------------------------ numbers


def _whole(name: str) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        kind = given[0].type
        to = t.decimal(kind.precision - kind.scale + (1 if kind.scale else 0), 0)
        return Typed(duckdb(f"CAST({name}($1) AS {t.duckdb_name(to)})", given[0].node), to)

    return built


def _round(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    value = given[0]
    if value.type.kind == "string":
        value = Typed(converted(value, t.DOUBLE, at), t.DOUBLE)
    places = constant_integer(given[1], at, "places") if len(given) == 2 else 0
    kind = value.type
    if kind.kind in t.INTEGRAL:
        if places >= 0:
            return value
        if places < -18:
            raise unsupported(f"round() to {places} places in {DIALECT}", at)
        unit = 10**-places
        text = (
            f"CAST(CASE WHEN $1 < 0 THEN -1 ELSE 1 END * ((abs(CAST($1 AS HUGEINT)) + {unit // 2})"
            f" // {unit}) * {unit} AS {t.duckdb_name(kind)})"
        )
        return Typed(duckdb(text, value.node), kind)
    if kind.kind == "decimal":
        if places < 0:
            raise unsupported(f"round() of {kind} to {places} places in {DIALECT}", at)
        scale = min(kind.scale, places)
        to = t.decimal(min(kind.precision - kind.scale + 1 + scale, t.MOST_DIGITS), scale)
        return Typed(duckdb(f"CAST($1 AS {t.duckdb_name(to)})", value.node), to)
    if kind.kind in t.FRACTIONAL and 0 <= places <= 18:
        # Round the decimal text of the number half up, as Java's BigDecimal does.
        digits = f"DECIMAL(38,{places})"
        text = (
            f"CASE WHEN abs($1) < 1e{36 - places} AND NOT isnan($1) "
            f"THEN CAST(CAST(CAST(CAST($1 AS VARCHAR) AS {digits}) AS VARCHAR) AS {t.duckdb_name(kind)}) ELSE $1 END"
        )
        return Typed(duckdb(text, value.node), kind)
    raise unsupported(f"round() of {kind} to {places} places in {DIALECT}", at)


def _bround(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    value = given[0]
    places = constant_integer(given[1], at, "places") if len(given) == 2 else 0
    kind = value.type
    if kind.kind in t.INTEGRAL and places >= 0:
        return value
    if kind.kind not in ("decimal", *t.FRACTIONAL) or not 0 <= places <= 15:
        raise unsupported(f"bround() of {kind} to {places} places in {DIALECT}", at)
    exact = kind if kind.kind == "decimal" else SqlType("decimal", 38, 18)
    number = value.node if kind is exact else cast(value.node, kind, exact)
    assert number is not None
    scale = min(exact.scale, places)
    unit = 10 ** (exact.scale - scale)
    if unit == 1:
        return Typed(value.node, kind)
    whole = duckdb(unscaled("$1", exact), number)
    up = f"(2 * abs($1 % {unit}) > {unit} OR (2 * abs($1 % {unit}) = {unit} AND abs($1 // {unit}) % 2 = 1))"
    rounded = f"($1 // {unit} + CASE WHEN {up} THEN CASE WHEN $1 < 0 THEN -1 ELSE 1 END ELSE 0 END)"
    to = t.decimal(min(exact.precision - exact.scale + 1 + scale, t.MOST_DIGITS), scale)
    if scale:
        rounded = f"CAST({rounded} AS DECIMAL(38,0)) * CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale},{scale}))"
    made = duckdb(f"CAST({rounded} AS {t.duckdb_name(to)})", whole)
    if kind.kind == "decimal":
        return Typed(made, to)
    return Typed(duckdb(f"CAST(CAST($1 AS VARCHAR) AS {t.duckdb_name(kind)})", made), kind)


def _mod(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    return arithmetic(exp.Mod(), given[0], given[1])


def _pmod(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    nodes, kind = unified(given, at, "pmod()")
    if kind.kind not in (*t.INTEGRAL, *t.FRACTIONAL):
        raise unsupported(f"pmod() of {kind} in {DIALECT}", at)
    first = arithmetic(exp.Mod(), Typed(nodes[0], kind), Typed(nodes[1].copy(), kind))
    text = "CASE WHEN $1 < 0 THEN ($1 + $2) % $2 ELSE $1 END"
    return Typed(duckdb(text, first.node, nodes[1]), kind)


def _extreme(name: str) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        if len(given) < 2:
            raise unsupported(f"{name}() of one value in {DIALECT}", at)
        comparable(at, [Typed(each.node, gives) for each in given], order=True)
        gaps = ", ".join(f"${n + 1}" for n in range(min(len(given), 9)))
        if len(given) > 9:
            raise unsupported(f"{name}() of more than nine values in {DIALECT}", at)
        return Typed(duckdb(f"{name}({gaps})", *(v.node for v in given), exact=False), gives)

    return built


def _nullif(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    left, right = comparable(at, given, order=False)
    made = duckdb("CASE WHEN $1 = $2 THEN NULL ELSE $3 END", left.copy(), right, given[0].node)
    return Typed(made, given[0].type)


def _elt(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    listed = exp.Array(expressions=[each.node for each in given[1:]])
    if gives.kind != "string":
        raise unsupported(f"elt() of {gives} in {DIALECT}", at)
    text = (
        f"CASE WHEN $1 < 1 OR $1 > {len(given) - 1} THEN error('elt() beyond its values') "
        "ELSE $2[$1] END"
    )
    return Typed(duckdb(text, given[0].node, listed), gives)


# ------------------------------------------------------------------ lists


def _concat(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    if not given:
        return Typed(exp.Literal.string(""), t.STRING)
    kinds = {each.type.kind for each in given} - {"null"}
    if kinds == {"array"}:
        nodes, kind = unified(given, at, "concat()")
        made = nodes[0]
        for each in nodes[1:]:
            made = duckdb(
                "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_concat($1, $2) END",
                made,
                each,
            )
        return Typed(made, kind)
    if kinds == {"binary"}:
        nodes, kind = [each.node for each in given], t.BINARY
    else:
        nodes, kind = [converted(each, t.STRING, at) for each in given], t.STRING
    made = nodes[0]
    for each in nodes[1:]:
        made = duckdb("$1 || $2", made, each)
    return Typed(exp.Paren(this=made) if len(nodes) > 1 else made, kind)


def _sort_array(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    kind = given[0].type
    down = False
    if len(given) == 2:
        if not isinstance(given[1].node, exp.Boolean):
            raise unsupported(f"sort_array() with a flag that is no constant in {DIALECT}", at)
        down = not given[1].node.this
    if kind.element.kind not in t.SCALAR:
        raise unsupported(f"sorting {kind} in {DIALECT}", at)
    order = "'DESC', 'NULLS LAST'" if down else "'ASC', 'NULLS FIRST'"
    return Typed(duckdb(f"list_sort($1, {order})", given[0].node), kind)


def _array_extreme(name: str) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        if gives.kind not in t.SCALAR:
            raise unsupported(f"the {name} of {given[0].type} in {DIALECT}", at)
        return Typed(duckdb(f"list_{name}($1)", given[0].node), gives)

    return built


def _array_insert(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    # Positions beyond the end are filled with NULLs; -1 is the position after the last element.
    element = t.duckdb_name(gives.element)
    if element is None:
        raise unsupported(f"array_insert() into {gives} in {DIALECT}", at)
    nulls = f"lambda i: CAST(NULL AS {element})"
    after = f"list_transform(range(greatest($2 - len($1) - 1, 0)), {nulls})"
    before = f"list_transform(range(greatest(-$2 - len($1) - 1, 0)), {nulls})"
    text = (
        "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $2 = 0 THEN error('array_insert() at 0') "
        f"WHEN $2 > 0 THEN list_concat($1[1:$2 - 1], {after}, [$3], $1[$2:]) "
        f"WHEN -$2 > len($1) + 1 THEN list_concat([$3], {before}, $1) "
        "ELSE list_concat($1[1:len($1) + $2 + 1], [$3], $1[len($1) + $2 + 2:]) END"
    )
    return Typed(duckdb(text, *(each.node for each in given)), gives)


# ------------------------------------------------------------------ aggregates


def _sum_decimal(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    kind = given[0].type
    to = t.decimal(min(kind.precision + 10, t.MOST_DIGITS), kind.scale)
    return Typed(duckdb(f"CAST(sum($1) AS {t.duckdb_name(to)})", given[0].node), to)


def _avg_decimal(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    kind = given[0].type
    to = SqlType(
        "decimal", min(kind.precision + 4, t.MOST_DIGITS), min(kind.scale + 4, t.MOST_DIGITS)
    )
    total = duckdb("sum($1)", given[0].node.copy())
    count = duckdb("nullif(count($1), 0)", given[0].node)
    sums = SqlType("decimal", t.MOST_DIGITS, kind.scale)
    made = quotient(total, count, sums, SqlType("decimal", 20, 0), to)
    if made is None:
        raise unsupported(f"avg() of {kind} in {DIALECT}", at)
    return Typed(made, to)


def _ordered_extreme(name: str) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        comparable(at, given, order=True)
        return Typed(duckdb(f"{name}($1)", given[0].node, exact=False), gives)

    return built


def _by_extreme(name: str) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        comparable(at, [given[1]], order=True)
        text = f"{name}({{'v': $1}}, $2).v"
        return Typed(duckdb(text, given[0].node, given[1].node), gives)

    return built


def _share(value: Typed, at: exp.Expr) -> exp.Expr:
    for each in value.node.find_all(exp.Column):
        raise unsupported(f"a percentile by {each.name}, which is no constant, in {DIALECT}", at)
    return value.node


def _percentile(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    return Typed(duckdb("quantile_cont($1, $2)", given[0].node, _share(given[1], at)), gives)


def _percentile_approx(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    # The exact result is within the error that Spark permits.
    return Typed(duckdb("quantile_disc($1, $2)", given[0].node, _share(given[1], at)), gives)


def _collect_set(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    text = "coalesce(list_distinct(list($1) FILTER (WHERE $1 IS NOT NULL)), [])"
    if given[0].type.kind not in t.SCALAR:
        raise unsupported(f"collect_set() of {given[0].type} in {DIALECT}", at)
    return Typed(duckdb(text, given[0].node), gives)


def _zone(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    return Typed(exp.Literal.string(queries.timezone), t.STRING)


def _try_cast(to: SqlType) -> Built:
    def built(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
        made = cast(given[0].node, given[0].type, to, safe=True)
        assert made is not None
        return Typed(made, to)

    return built


BUILT: Final[dict[str, Built]] = {
    **texts.BUILT,
    "ceil_decimal": _whole("ceil"),
    "floor_decimal": _whole("floor"),
    "round": _round,
    "bround": _bround,
    "mod": _mod,
    "pmod": _pmod,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "nullif": _nullif,
    "elt": _elt,
    "concat": _concat,
    "sort_array": _sort_array,
    "array_max": _array_extreme("max"),
    "array_min": _array_extreme("min"),
    "array_insert": _array_insert,
    "sum_decimal": _sum_decimal,
    "avg_decimal": _avg_decimal,
    "min": _ordered_extreme("min"),
    "max": _ordered_extreme("max"),
    "max_by": _by_extreme("arg_max"),
    "min_by": _by_extreme("arg_min"),
    "percentile": _percentile,
    "percentile_approx": _percentile_approx,
    "collect_set": _collect_set,
    "current_timezone": _zone,
    "try_to_date": _try_cast(t.DATE),
    "try_to_timestamp": _try_cast(t.TIMESTAMP),
    "date_part": times.date_part,
    "trunc": times.trunc,
    "date_trunc": times.date_trunc,
    "next_day": times.next_day,
    "months_between": times.months_between,
    "date_format": times.date_format,
    "to_date": times.to_date,
    "to_timestamp": times.to_timestamp,
    "unix_of_text": times.unix_of_text,
    "from_unixtime": times.from_unixtime,
}  # fmt: skip
