"""Operators on typed operands: arithmetic, comparison, and the types of constants in them.

INTERVAL constants, which are operands of arithmetic, are read here.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import OPERATORS, duckdb, filled, functions, resolve
from icesql.query.dialects.spark.calls import DIALECT, Typed, by_duckdb, converted, unified
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

_SYMBOLS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "div", "mod": "%"}
_BY_ZERO: Final = "error('division by zero')"
_SPANS: Final = ("interval day", t.TIME_SPAN.kind)
# Kinds of types that DuckDB compares with each other as Spark does.
_COMPARED_AS_THEY_ARE: Final = (
    t.MOMENTS,
    (*t.INTEGRAL, "decimal", "double"),
    t.FRACTIONAL,
    ("uuid", "string"),
)
_NOT_ORDERED: Final = ("array", "map", "struct", t.MONTHS.kind, *_SPANS)


def literal_number(node: exp.Expr) -> str | None:
    """The digits of a constant number with its sign; None for other nodes."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = literal_number(node.this)
        return None if inner is None else f"-{inner}"
    return node.name if node.is_number else None


def as_decimal(value: Typed) -> SqlType:
    """The decimal type of a number beside decimals; a constant has as many digits as its text."""
    number = literal_number(value.node)
    if value.type.kind in t.INTEGRAL and number is not None:
        return t.decimal(len(number.lstrip("-")), 0)
    return t.as_decimal(value.type)


def arithmetic(node: exp.Binary, left: Typed, right: Typed) -> Typed:
    """``+ - * / div %`` of two typed operands. Raises UnsupportedSqlError at ``node``."""
    symbol = _SYMBOLS[node.key]
    kinds = (left.type.kind, right.type.kind)
    if any(kind in t.MOMENTS or kind in (t.MONTHS.kind, *_SPANS) for kind in kinds):
        return _with_times(node, symbol, left, right)
    left, right = _numbers(node, symbol, left, right)
    if symbol == "/" and {left.type.kind, right.type.kind} & {"float", "double"}:
        left, right = (Typed(converted(v, t.DOUBLE, node), t.DOUBLE) for v in (left, right))
    kinds = (left.type.kind, right.type.kind)
    if "decimal" in kinds and not set(kinds) & set(t.FRACTIONAL):
        return _decimals(node, symbol, left, right)
    both, divisor = t.common(left.type, right.type), _divisor(right)
    assert both is not None
    if symbol == "/":
        return by_duckdb(f"$1 / {divisor}", t.DOUBLE, left, right)
    if symbol == "div" and both.kind in t.FRACTIONAL:
        raise unsupported(f"div of {both} in {DIALECT}", node)
    narrow = left.type != right.type and {*kinds} & {"float", "tinyint", "smallint"}
    if narrow or symbol in ("div", "%"):
        left, right = (Typed(converted(each, both, node), both) for each in (left, right))
    if symbol == "div":
        return by_duckdb(f"CAST($1 // {divisor} AS BIGINT)", t.BIGINT, left, right)
    second = divisor if symbol == "%" else "$2"
    return by_duckdb(f"$1 {symbol} {second}", both, left, right)


def _numbers(node: exp.Expr, symbol: str, left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Cast both operands to numbers: a text or NULL gets the type of the other operand."""
    out = []
    for value, other in ((left, right), (right, left)):
        if value.type.kind in ("null", "string"):
            both = t.common(value.type, other.type)
            wanted = both if both is not None and both.kind in t.NUMERIC else t.DOUBLE
            value = Typed(converted(value, wanted, node), wanted)
        if value.type.kind not in t.NUMERIC:
            raise unsupported(
                f"{left.type} {symbol} {right.type} in {DIALECT}", node, "cast the operands"
            )
        out.append(value)
    return out[0], out[1]


def _divisor(right: Typed) -> str:
    """The second operand, with a check for zero unless it is a constant."""
    number = literal_number(right.node)
    if number is not None and float(number) != 0:
        return "$2"
    return f"CASE WHEN $2 = 0 AND $1 IS NOT NULL THEN {_BY_ZERO} ELSE $2 END"


def _decimals(node: exp.Expr, symbol: str, left: Typed, right: Typed) -> Typed:
    one, other = as_decimal(left), as_decimal(right)
    p1, s1, p2, s2 = one.precision, one.scale, other.precision, other.scale
    scale = max(s1, s2)
    match symbol:
        case "+" | "-":
            gives, exact = t.decimal(max(p1 - s1, p2 - s2) + scale + 1, scale), scale
        case "*":
            gives, exact = t.decimal(p1 + p2 + 1, s1 + s2), s1 + s2
        case "%":
            gives, exact = t.decimal(min(p1 - s1, p2 - s2) + scale, scale), scale
        case "div":
            return _whole_quotient(left, right, one, other)
        case _:
            return _quotient(node, left, right, one, other)
    second = _divisor(right) if symbol == "%" else "$2"
    text = f"$1 {symbol} {second}"
    if gives.scale != exact:
        text = f"CAST({text} AS {t.duckdb_name(gives)})"
    return by_duckdb(text, gives, left, right)


def unscaled(gap: str, kind: SqlType) -> str:
    """SQL of the unscaled value of a decimal of type ``kind``."""
    scale = kind.scale
    if scale == 0:
        return f"CAST({gap} AS HUGEINT)"
    if kind.precision + scale > t.MOST_DIGITS:
        return f"CAST(replace(CAST({gap} AS VARCHAR), '.', '') AS HUGEINT)"
    return f"CAST({gap} * CAST(1{'0' * scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"


def _whole_quotient(left: Typed, right: Typed, one: SqlType, other: SqlType) -> Typed:
    scale = max(one.scale, other.scale)
    first = f"{unscaled('$1', one)} * {10 ** (scale - one.scale)}"
    second = f"({unscaled(_divisor(right), other)} * {10 ** (scale - other.scale)})"
    text = f"CAST({first} // {second} AS BIGINT)"
    return by_duckdb(text, t.BIGINT, left, right)


def _quotient(node: exp.Expr, left: Typed, right: Typed, one: SqlType, other: SqlType) -> Typed:
    """The exact quotient of decimals, rounded half up to the scale that Spark defines."""
    scale = max(6, one.scale + other.precision + 1)
    gives = t.decimal(one.precision - one.scale + other.scale + scale, scale)
    made = quotient(left.node, right.node, one, other, gives, _divisor(right))
    if made is None:
        raise unsupported(f"{one} / {other} in {DIALECT}", node, "cast an operand to DOUBLE")
    return Typed(made, gives)


def quotient(
    left: exp.Expr,
    right: exp.Expr,
    one: SqlType,
    other: SqlType,
    gives: SqlType,
    divisor: str = "$2",
) -> exp.Expr | None:
    """``left / right``, decimals of types ``one`` and ``other``, cast to the decimal ``gives``."""
    shift = gives.scale + other.scale - one.scale
    if shift < 0:
        return None
    power = f"CAST('1{'0' * shift}' AS HUGEINT)"
    numerator = duckdb(f"{unscaled('$1', one)} * {power}", left.copy())
    denominator = duckdb(unscaled(divisor, other), left, right)
    rounded = "(2 * abs($1) + abs($2)) // (2 * abs($2))"
    unit = f"CAST('{'0.' + '0' * (gives.scale - 1) + '1'}' AS DECIMAL({gives.scale},{gives.scale}))"
    return duckdb(
        f"CAST(CAST(CASE WHEN ($1 < 0) <> ($2 < 0) THEN -({rounded}) ELSE {rounded} END "
        f"AS DECIMAL(38,0)) * {unit} AS {t.duckdb_name(gives)})",
        numerator,
        denominator,
    )


def _with_times(node: exp.Expr, symbol: str, left: Typed, right: Typed) -> Typed:
    later = t.MOMENTS if symbol == "+" else ()
    numbers = t.INTEGRAL if symbol == "*" else ()
    if left.type.kind in numbers or (left.type.kind not in later and right.type.kind in later):
        left, right = right, left
    rows = functions(OPERATORS).get(node.key, ())
    match = resolve(rows, [left.type, right.type], [None, None], lambda given, wanted: None)
    if match is None:
        what = f"{left.type} {symbol} {right.type} in {DIALECT}"
        raise unsupported(what, node, "cast the operands")
    return Typed(filled(match.row.tree(2), [left.node, right.node]), match.gives)


def comparable(node: exp.Expr, values: list[Typed], *, order: bool) -> list[exp.Expr]:
    """Cast operands of a comparison to one type. Raises UnsupportedSqlError at ``node``.

    Operands that DuckDB compares as Spark does are unchanged, so that conditions on columns prune.
    """
    kinds = {each.type.kind for each in values} - {"null"}
    unordered = [each for each in _NOT_ORDERED if each in kinds]
    if order and unordered:
        raise unsupported(f"ordering by {unordered[0]} in {DIALECT}", node)
    if "unknown" in kinds:
        if kinds != {"unknown"}:
            what = f"a comparison with a value whose type is not known in {DIALECT}"
            raise unsupported(what, node, "CAST it")
        return [each.node for each in values]
    if "map" in kinds:
        raise unsupported(f"comparing maps in {DIALECT}", node)
    same = len({each.type for each in values if each.type.kind != "null"}) <= 1
    if not same and "timestamp" in kinds and kinds <= set(t.MOMENTS):
        return [
            first_instant(each.node) if each.type.kind in ("date", "timestamp_ntz") else each.node
            for each in values
        ]
    if same or any(kinds <= set(each) for each in _COMPARED_AS_THEY_ARE):
        return [each.node for each in values]
    return unified(values, node, "a comparison")[0]


# ------------------------------------------------------------------ INTERVAL


DAYS: Final = SqlType("interval day")
_MONTHS: Final = {"YEAR": 12, "MONTH": 1}
_MICROS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_AMOUNT: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s+([A-Za-z]+)")
_SPAN_PATTERNS: Final = {
    ("YEAR", "MONTH"): r"(?P<YEAR>\d+)-(?P<MONTH>0*(?:\d|1[01]))",
    ("DAY", "HOUR"): r"(?P<DAY>\d+) (?P<HOUR>\d+)",
    ("DAY", "MINUTE"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("DAY", "SECOND"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("HOUR", "MINUTE"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("HOUR", "SECOND"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("MINUTE", "SECOND"): r"(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
}


def interval(node: exp.Interval) -> Typed:
    """The value of an INTERVAL constant. Raises UnsupportedSqlError at ``node``."""
    value, unit = node.this, node.args.get("unit")
    negative = False
    while isinstance(value, exp.Paren | exp.Neg):
        negative ^= isinstance(value, exp.Neg)
        value = value.this
    if not isinstance(value, exp.Literal):
        raise unsupported(
            f"an INTERVAL of an expression in {DIALECT}", node, "use make_dt_interval()"
        )
    text = f"-{value.name}" if negative else value.name
    if isinstance(unit, exp.IntervalSpan):
        return _span(node, text, unit.this.name.upper(), unit.expression.name.upper())
    if unit is None:
        return _listed(node, text)
    return _amounts(node, [(text, unit.name.upper().removesuffix("S"))])


def _listed(node: exp.Interval, text: str) -> Typed:
    """``INTERVAL '1 day 2 hours'``."""
    amounts, at = [], 0
    while found := _AMOUNT.match(text, at):
        amounts.append((found[1], found[2].upper().removesuffix("S")))
        at = found.end()
    if not amounts or text[at:].strip():
        raise unsupported(f"INTERVAL '{text}' in {DIALECT}", node, "write INTERVAL '1' DAY")
    return _amounts(node, amounts)


def _amounts(node: exp.Interval, amounts: list[tuple[str, str]]) -> Typed:
    months, micros = Fraction(0), Fraction(0)
    smallest = "DAY"
    for text, unit in amounts:
        try:
            number = Fraction(text.strip())
        except ValueError:
            raise unsupported(f"INTERVAL '{text}' in {DIALECT}", node) from None
        if unit in _MONTHS:
            months += number * _MONTHS[unit]
        elif unit in _MICROS:
            micros += number * _MICROS[unit]
            if unit not in ("DAY", "WEEK"):
                smallest = unit
        else:
            raise unsupported(f"INTERVAL … {unit} in {DIALECT}", node)
        if number.denominator != 1 and unit != "SECOND":
            raise unsupported(f"a part of a {unit} in an INTERVAL in {DIALECT}", node)
    if months and micros:
        raise unsupported(
            f"an INTERVAL of months and days in {DIALECT}", node, "add one after the other"
        )
    if any(unit in _MONTHS for _, unit in amounts):
        return Typed(_made(int(months), "MONTH"), t.MONTHS)
    return _of_micros(int(micros), DAYS if smallest == "DAY" else t.TIME_SPAN)


def _of_micros(micros: int, kind: SqlType) -> Typed:
    sign = -1 if micros < 0 else 1
    days, rest = divmod(abs(micros), _MICROS["DAY"])
    if days and rest:
        text = exp.Literal.string(f"{sign * days} days {sign * rest} microseconds")
        return Typed(exp.Interval(this=text), kind)
    units = ("DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
    unit = next(each for each in units if not micros % _MICROS[each])
    return Typed(_made(sign * (abs(micros) // _MICROS[unit]), unit), kind)


def _made(amount: int, unit: str) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(amount)), unit=exp.var(unit))


def _span(node: exp.Interval, text: str, first: str, last: str) -> Typed:
    pattern = _SPAN_PATTERNS.get((first, last), "(?!)")
    parsed = re.fullmatch(rf"\s*(?P<sign>[+-]?){pattern}\s*", text)
    if parsed is not None:
        given = parsed.groupdict()
        sign = -1 if given.pop("sign") == "-" else 1
        units = _MONTHS | _MICROS
        amount = sign * sum(int(Fraction(each) * units[unit]) for unit, each in given.items())
        if last == "MONTH":
            return Typed(_made(amount, "MONTH"), t.MONTHS)
        return _of_micros(amount, t.TIME_SPAN)
    raise unsupported(f"INTERVAL '{text}' {first} TO {last} in {DIALECT}", node)
