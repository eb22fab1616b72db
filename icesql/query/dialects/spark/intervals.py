"""INTERVAL constants of Spark: years and months, or days and smaller units."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT, Typed
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

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
