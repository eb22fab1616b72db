"""Functions whose DuckDB expression depends on constants among the arguments, or on their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

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
from icesql.query.dialects.templates import chained, duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

# Arguments: typed arguments, the call.
Built = Callable[[list[Typed], "exp.Expr"], Typed]


def constant_integer(value: Typed, at: exp.Expr, what: str) -> int:
    """The value of a constant integer argument. Raises UnsupportedSqlError for other arguments."""
    number = literal_number(value.node)
    if number is None or not number.lstrip("-").isdigit():
        raise unsupported(f"{what} that is no constant in {DIALECT}", at)
    return int(number)


# ------------------------------------------------------------------ numbers


def _whole(name: str) -> Built:
    def built(given: list[Typed], at: exp.Expr) -> Typed:
        kind = given[0].type
        to = t.decimal(kind.precision - kind.scale + (1 if kind.scale else 0), 0)
        return Typed(duckdb(f"CAST({name}($1) AS {t.duckdb_name(to)})", given[0].node), to)

    return built


def _round(given: list[Typed], at: exp.Expr) -> Typed:
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


def _bround(given: list[Typed], at: exp.Expr) -> Typed:
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


def _mod(given: list[Typed], at: exp.Expr) -> Typed:
    return arithmetic(exp.Mod(), given[0], given[1])


def _pmod(given: list[Typed], at: exp.Expr) -> Typed:
    nodes, kind = unified(given, at, "pmod()")
    if kind.kind not in (*t.INTEGRAL, *t.FRACTIONAL):
        raise unsupported(f"pmod() of {kind} in {DIALECT}", at)
    first = arithmetic(exp.Mod(), Typed(nodes[0], kind), Typed(nodes[1].copy(), kind))
    text = "CASE WHEN $1 < 0 THEN ($1 + $2) % $2 ELSE $1 END"
    return Typed(duckdb(text, first.node, nodes[1]), kind)


def _nullif(given: list[Typed], at: exp.Expr) -> Typed:
    left, right = comparable(at, given, order=False)
    made = duckdb("CASE WHEN $1 = $2 THEN NULL ELSE $3 END", left.copy(), right, given[0].node)
    return Typed(made, given[0].type)


# ------------------------------------------------------------------ lists


def _concat(given: list[Typed], at: exp.Expr) -> Typed:
    if not given:
        return Typed(exp.Literal.string(""), t.STRING)
    kinds = {each.type.kind for each in given} - {"null"}
    if kinds == {"array"}:
        nodes, kind = unified(given, at, "concat()")
        text = "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_concat($1, $2) END"
        return Typed(chained(text, nodes), kind)
    if kinds == {"binary"}:
        nodes, kind = [each.node for each in given], t.BINARY
    else:
        nodes, kind = [converted(each, t.STRING, at) for each in given], t.STRING
    return Typed(chained("$1 || $2", nodes), kind)


# ------------------------------------------------------------------ aggregates


def _sum_decimal(given: list[Typed], at: exp.Expr) -> Typed:
    kind = given[0].type
    to = t.decimal(min(kind.precision + 10, t.MOST_DIGITS), kind.scale)
    return Typed(duckdb(f"CAST(sum($1) AS {t.duckdb_name(to)})", given[0].node), to)


def _avg_decimal(given: list[Typed], at: exp.Expr) -> Typed:
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


BUILT: Final[dict[str, Built]] = {
    **texts.BUILT,
    "ceil_decimal": _whole("ceil"),
    "floor_decimal": _whole("floor"),
    "round": _round,
    "bround": _bround,
    "mod": _mod,
    "pmod": _pmod,
    "nullif": _nullif,
    "concat": _concat,
    "sum_decimal": _sum_decimal,
    "avg_decimal": _avg_decimal,
    "date_format": times.date_format,
    "to_date": times.to_date,
    "to_timestamp": times.to_timestamp,
    "unix_of_text": times.unix_of_text,
    "from_unixtime": times.from_unixtime,
}  # fmt: skip
