"""Functions whose DuckDB expression depends on constants among the arguments, or on their types."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import chained, duckdb
from icesql.query.dialects.spark.calls import (
    DIALECT,
    Built,
    Typed,
    by_duckdb,
    constant_text,
    converted,
    unified,
)
from icesql.query.dialects.spark.functions import texts
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.spark.operators import (
    arithmetic,
    comparable,
    literal_number,
    quotient,
    unscaled,
)
from icesql.query.dialects.time_patterns import letters, pieces
from icesql.query.dialects.types import SqlType
from icesql.sql.grammar import columns
from icesql.sql.positions import unsupported

# ------------------------------------------------------------------ dates and times


# Java reserves these for later.
_RESERVED: Final = re.compile(r"[\[\]{}#]")


def _pieces(pattern: str, at: exp.Expr) -> list[tuple[bool, str]]:
    found = pieces(pattern)
    if found is None or _RESERVED.search(re.sub(r"'[^']*'", "", pattern)):
        raise unsupported(f"the pattern '{pattern}' in {DIALECT}", at)
    return found


def _pattern(given: list[Typed], at: exp.Expr) -> str:
    return constant_text(given[1], at, "a pattern") if len(given) == 2 else "yyyy-MM-dd HH:mm:ss"


def date_format(given: list[Typed], at: exp.Expr) -> Typed:
    """Format a time with a Java pattern."""
    pattern = _pattern(given, at)
    out, known = [], letters("java", "spark")
    for is_letters, text in _pieces(pattern, at):
        if is_letters and text not in known:
            raise unsupported(f"{text} in the pattern '{pattern}' in {DIALECT}", at)
        out.append(known[text] if is_letters else text.replace("%", "%%"))
    text = (
        "CASE WHEN year($1) BETWEEN 1000 AND 9999 THEN strftime($1, $2) WHEN $1 IS NOT NULL "
        "THEN error('a year of other than four digits in date_format()') END"
    )
    return by_duckdb(text, t.STRING, converted(given[0], t.NTZ, at), "".join(out))


def _read(given: list[Typed], at: exp.Expr) -> exp.Expr:
    """Parse a text with a Java pattern as a timestamp without zone."""
    pattern = _pattern(given, at)
    out, regular = [], []
    known = {text: row for text, *row in columns("time_patterns.txt", "read by spark")}
    used = [text for is_letters, text in _pieces(pattern, at) if is_letters]
    if len(set(used)) != len(used) or "yyyy" not in used:
        raise unsupported(f"reading the pattern '{pattern}' in {DIALECT}", at)
    for is_letters, text in _pieces(pattern, at):
        if not is_letters:
            out.append(text.replace("%", "%%"))
            regular.append("".join(f"\\{c}" if not c.isalnum() and c != " " else c for c in text))
        elif text in known:
            word, shape = known[text]
            out.append(word)
            regular.append(shape)
        else:
            raise unsupported(f"{text} in the pattern '{pattern}' in {DIALECT}", at)
    return duckdb(
        "CASE WHEN $1 IS NULL THEN NULL WHEN regexp_full_match($1, $2) THEN strptime($1, $3) "
        "ELSE error('the text ''' || $1 || ''' is not of the pattern ' || $4) END",
        given[0].node,
        "".join(regular),
        "".join(out),
        pattern,
    )


def to_date(given: list[Typed], at: exp.Expr) -> Typed:
    """Parse a date with a Java pattern."""
    return by_duckdb("CAST($1 AS DATE)", t.DATE, _read(given, at))


def to_timestamp(given: list[Typed], at: exp.Expr) -> Typed:
    """Parse a time with a Java pattern as an instant in the session's zone."""
    return Typed(first_instant(_read(given, at)), t.TIMESTAMP)


def unix_of_text(given: list[Typed], at: exp.Expr) -> Typed:
    """Parse a time with a Java pattern as seconds since 1970."""
    text = "CAST(floor(epoch_us($1) / 1000000) AS BIGINT)"
    return by_duckdb(text, t.BIGINT, first_instant(_read(given, at)))


def from_unixtime(given: list[Typed], at: exp.Expr) -> Typed:
    """Format seconds since 1970 as text in the session's zone."""
    moment = by_duckdb("make_timestamptz($1 * 1000000)", t.TIMESTAMP, given[0])
    return date_format([moment, *given[1:]], at)


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
