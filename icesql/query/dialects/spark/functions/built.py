"""Functions whose DuckDB expression depends on constants among the arguments, or on their types."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT, Built, Typed, by_duckdb, converted, unified
from icesql.query.dialects.spark.functions import texts
from icesql.query.dialects.spark.functions.times import (
    date_format,
    from_unixtime,
    to_date,
    to_timestamp,
    unix_of_text,
)
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


def _places(given: list[Typed], at: exp.Expr) -> int:
    """The constant number of places to which a number is rounded; without one to integers."""
    if len(given) == 1:
        return 0
    number = literal_number(given[1].node)
    if number is None or not number.lstrip("-").isdigit():
        raise unsupported(f"places that is no constant in {DIALECT}", at)
    return int(number)


# ------------------------------------------------------------------ numbers


def _whole(name: str) -> Built:
    def built(given: list[Typed], at: exp.Expr) -> Typed:
        kind = given[0].type
        to = t.decimal(kind.precision - kind.scale + (1 if kind.scale else 0), 0)
        return by_duckdb(f"CAST({name}($1) AS {t.duckdb_name(to)})", to, given[0])

    return built


def _round(given: list[Typed], at: exp.Expr) -> Typed:
    value = given[0]
    if value.type.kind == "string":
        value = Typed(converted(value, t.DOUBLE, at), t.DOUBLE)
    places = _places(given, at)
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
        return by_duckdb(text, kind, value)
    if kind.kind == "decimal" and places >= 0:
        scale = min(kind.scale, places)
        to = t.decimal(min(kind.precision - kind.scale + 1 + scale, t.MOST_DIGITS), scale)
        return by_duckdb(f"CAST($1 AS {t.duckdb_name(to)})", to, value)
    if kind.kind in t.FRACTIONAL and 0 <= places <= 18:
        # Round the decimal text of the number half up, as Java's BigDecimal does.
        digits = f"DECIMAL(38,{places})"
        text = (
            f"CASE WHEN abs($1) < 1e{36 - places} AND NOT isnan($1) "
            f"THEN CAST(CAST(CAST(CAST($1 AS VARCHAR) AS {digits}) AS VARCHAR) AS {t.duckdb_name(kind)}) ELSE $1 END"
        )
        return by_duckdb(text, kind, value)
    raise unsupported(f"round() of {kind} to {places} places in {DIALECT}", at)


def _bround(given: list[Typed], at: exp.Expr) -> Typed:
    value = given[0]
    places = _places(given, at)
    kind = value.type
    if kind.kind in t.INTEGRAL and places >= 0:
        return value
    if kind.kind not in ("decimal", *t.FRACTIONAL) or not 0 <= places <= 15:
        raise unsupported(f"bround() of {kind} to {places} places in {DIALECT}", at)
    exact = kind if kind.kind == "decimal" else SqlType("decimal", 38, 18)
    scale = min(exact.scale, places)
    unit = 10 ** (exact.scale - scale)
    if unit == 1:
        return value
    whole = duckdb(unscaled("$1", exact), converted(value, exact, at))
    up = f"(2 * abs($1 % {unit}) > {unit} OR (2 * abs($1 % {unit}) = {unit} AND abs($1 // {unit}) % 2 = 1))"
    rounded = f"($1 // {unit} + CASE WHEN {up} THEN CASE WHEN $1 < 0 THEN -1 ELSE 1 END ELSE 0 END)"
    to = t.decimal(min(exact.precision - exact.scale + 1 + scale, t.MOST_DIGITS), scale)
    if scale:
        rounded = f"CAST({rounded} AS DECIMAL(38,0)) * CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale},{scale}))"
    made = by_duckdb(f"CAST({rounded} AS {t.duckdb_name(to)})", to, whole)
    if kind.kind == "decimal":
        return made
    return by_duckdb(f"CAST(CAST($1 AS VARCHAR) AS {t.duckdb_name(kind)})", kind, made)


def _pmod(given: list[Typed], at: exp.Expr) -> Typed:
    nodes, kind = unified(given, at, "pmod()")
    if kind.kind not in (*t.INTEGRAL, *t.FRACTIONAL):
        raise unsupported(f"pmod() of {kind} in {DIALECT}", at)
    first = arithmetic(exp.Mod(), Typed(nodes[0], kind), Typed(nodes[1].copy(), kind))
    text = "CASE WHEN $1 < 0 THEN ($1 + $2) % $2 ELSE $1 END"
    return by_duckdb(text, kind, first, nodes[1])


def _nullif(given: list[Typed], at: exp.Expr) -> Typed:
    left, right = comparable(at, given, order=False)
    text = "CASE WHEN $1 = $2 THEN NULL ELSE $3 END"
    return by_duckdb(text, given[0].type, left.copy(), right, given[0])


# ------------------------------------------------------------------ lists


def _concat(given: list[Typed], at: exp.Expr) -> Typed:
    kinds = {each.type.kind for each in given} - {"null"}
    if kinds == {"array"}:
        nodes, kind = unified(given, at, "concat()")
        text = "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_concat($1, $2) END"
        return Typed(chained(text, nodes), kind)
    if kinds == {"binary"}:
        nodes, kind = [each.node for each in given], t.BINARY
    else:
        nodes, kind = [converted(each, t.STRING, at) for each in given], t.STRING
    return Typed(chained("$1 || $2", nodes or [exp.Literal.string("")]), kind)


# ------------------------------------------------------------------ aggregates


def _sum_decimal(given: list[Typed], at: exp.Expr) -> Typed:
    kind = given[0].type
    to = t.decimal(min(kind.precision + 10, t.MOST_DIGITS), kind.scale)
    return by_duckdb(f"CAST(sum($1) AS {t.duckdb_name(to)})", to, given[0])


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
    "mod": lambda given, at: arithmetic(exp.Mod(), *given),
    "pmod": _pmod,
    "nullif": _nullif,
    "concat": _concat,
    "sum_decimal": _sum_decimal,
    "avg_decimal": _avg_decimal,
    "date_format": date_format,
    "to_date": to_date,
    "to_timestamp": to_timestamp,
    "unix_of_text": unix_of_text,
    "from_unixtime": from_unixtime,
}  # fmt: skip
