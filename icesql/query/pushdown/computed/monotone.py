"""Find expressions that keep the order of their columns, so that the ends of a range bound them.

If an expression is monotone in each of its columns, its least and greatest values are at corners
of the box of the columns' bounds. Expressions not listed here are taken as not monotone.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.evaluated import INTEGERS
from icesql.query.constants.times import FINER_THAN_DAY, unit_name
from icesql.query.pushdown.computed.expression import Expression, call, string
from icesql.query.pushdown.computed.sql import type_sql

NUMBERS: Final = ("number", "float")
TIMES: Final = ("date", "time", "zoned")
_CAST_KINDS: Final = {
    **dict.fromkeys(INTEGERS, "number"), "FLOAT": "float", "DOUBLE": "float", "DATE": "date",
    "TIMESTAMP": "time", "TIMESTAMPTZ": "zoned", "VARCHAR": "text", "INTERVAL": "interval",
}  # fmt: skip
_CONSTANT_KINDS: Final = {
    Kind.INTEGER: "number", Kind.DECIMAL: "number", Kind.DOUBLE: "float", Kind.FLOAT: "float",
    Kind.DATE: "date", Kind.TIMESTAMP: "time", Kind.TIMESTAMPTZ: "zoned", Kind.STRING: "text",
    Kind.TEXT: "text", Kind.INTERVAL: "interval",
}  # fmt: skip
_ARITHMETIC: Final = ("+", "-", "*", "/", "//")
_ROUNDING: Final = ("round", "floor", "ceil", "ceiling", "trunc", "sign")
_SINCE: Final = ("year", "isoyear", "decade", "century", "millennium", "yearweek", "julian")
_INSTANTS: Final = ("epoch", "epoch_ms", "epoch_us", "epoch_ns")
# Parts of a time that are monotone only within one longer part.
_WITHIN: Final = {
    "month": "year", "quarter": "year", "dayofyear": "year", "doy": "year", "day": "month",
    "dayofmonth": "month", "hour": "day", "minute": "hour", "isodow": "week", "monthname": "month",
    "dayname": "day", "dayofweek": "day", "dow": "day", "weekday": "day",
}  # fmt: skip
# Units of a fixed number of microseconds, and the functions that make intervals of them.
_FINE: Final = FINER_THAN_DAY | {"day", "week"}
_STEPS: Final = frozenset(f"to_{unit}s" for unit in _FINE)
# The limit for 7,000 years, in seconds, and for 3,000 years, in days.
_MOST_SECONDS: Final = 250_000_000_000
_UNITS_A_SECOND: Final = {"to_timestamp": 1, "epoch_ms": 1_000, "make_timestamp": 1_000_000}
_MOST_DAYS: Final = 1_000_000
_MOST_DIGITS: Final = 38
# Parts of a time from long to short, each with a fixed number of digits, texts between them.
_ORDERED_FORMAT: Final = re.compile(
    r"~%Y~(%j~|%m~(%d~(%H~(%M~(%S~(%[fgn]~)?)?)?)?)?)?".replace("~", "[^%]*+")
)
_LONG_FORMATS: Final = {"%c": "%x %X", "%x": "%Y-%m-%d", "%X": "%H:%M:%S"}


class Shape(Struct):
    """Preconditions found while walking an expression.

    ``guards`` must be equal at both ends of a range; ``years`` are times whose year must have four
    digits; ``ranges`` are numbers converted to times, with the least and greatest allowed: times
    outside the calendar may cause a fatal error in the engine. ``finite`` must be finite at all
    corners: results of infinities are not monotone, such as ``x / 0``, which is NaN between them.
    ``zoned``: a time is read on the clock of a zone that may be set back. ``strict`` is False if
    NULL may become another value.
    """

    utc: bool
    guards: list[Expression] = field(default_factory=list)
    years: list[Expression] = field(default_factory=list)
    ranges: list[tuple[Expression, int, int]] = field(default_factory=list)
    finite: list[Expression] = field(default_factory=list)
    zoned: bool = False
    strict: bool = True

    def kind(self, each: Expression) -> str:
        """The kind of an expression's result; "" if it is not known to be monotone."""
        if each.name == "input":
            return _cast_kind(type_sql(each.value.type))
        if each.is_free:
            return self._free_kind(each)
        kinds = [self.kind(part) for part in each.arguments]
        if "" in kinds:
            return ""
        made = self._call(each, kinds)
        if made == "float" and each.name in _ARITHMETIC:
            self.finite.append(each)
        return made

    def _free_kind(self, each: Expression) -> str:
        """The kind of an expression without columns."""
        match each.name:
            case "literal":
                return _literal_kind(*each.value)
            case "constant":
                constant: Constant = each.value
                return _CONSTANT_KINDS.get(constant.kind, "")
            case "cast":
                return _cast_kind(each.value)
            case name if name in _STEPS or name in ("to_months", "to_years", "to_quarters"):
                return "interval"
            case "-" | "+":
                kinds = [self._free_kind(part) for part in each.arguments]
                if "interval" in kinds and kinds[0] in TIMES:
                    self._on_clock(kinds[0])
                    return "time" if kinds[0] == "date" else kinds[0]
                return self._sum(each, kinds)
            case _:  # the engine evaluated the others
                return ""

    def _on_clock(self, *kinds: str) -> None:
        if "zoned" in kinds and not self.utc:
            self.zoned = True

    def _call(self, each: Expression, kinds: list[str]) -> str:
        name, parts = each.name, each.arguments
        match name:
            case "cast":
                return self._cast(each, kinds[0])
            case "+" | "-":
                return self._sum(each, kinds)
            case "*" if len(parts) == 2 and set(kinds) <= set(NUMBERS):
                return "float" if "float" in kinds else "number"
            case "/" | "//" if len(parts) == 2 and parts[1].is_free and set(kinds) <= set(NUMBERS):
                return "float" if name == "/" or "float" in kinds else "number"
            case _ if name in _ROUNDING and kinds[0] in NUMBERS:
                return kinds[0] if all(part.is_free for part in parts[1:]) else ""
            case "greatest" | "least" if set(kinds) <= set(NUMBERS) or set(kinds) in (
                {"date"},
                {"time"},
            ):
                self.strict = False
                return "float" if "float" in kinds else kinds[0]
            case "coalesce" if all(part.is_free for part in parts[1:]) and len(set(kinds)) == 1:
                self.strict = False
                return kinds[0]
            case "left" if kinds[0] == "text" and (parts[1].whole_number or 0) > 0:
                return "text"
            case _:
                return self._of_times(each, kinds)

    def _of_times(self, each: Expression, kinds: list[str]) -> str:
        name, parts = each.name, each.arguments
        first = kinds[0]
        match name:
            case "epoch_ms" | "make_timestamp" | "to_timestamp" if len(parts) == 1:
                if first == "number" or (first == "float" and name == "to_timestamp"):
                    most = _MOST_SECONDS * _UNITS_A_SECOND[name]
                    self.ranges.append((parts[0], -most, most))
                    return "zoned" if name == "to_timestamp" else "time"
                return self._part(name, parts[0], first) if name == "epoch_ms" else ""
            case "make_date" if len(parts) == 3 and set(kinds) == {"number"}:
                self.ranges += zip(parts, (1, 1, 1), (9999, 12, 31), strict=True)
                return "date"
            case "last_day" if first in TIMES:
                self._on_clock(first)
                return "date"
            case "strftime" if len(parts) == 2:
                # The format may be the first argument.
                at = 0 if first in TIMES else 1
                form = parts[1 - at].text
                if kinds[at] not in TIMES or form is None or not _keeps_order(form):
                    return ""
                self._on_clock(kinds[at])
                self.years.append(parts[at])
                return "text"
            case "timezone" if len(parts) == 2 and parts[0].is_free:
                if (parts[0].text or "").upper() != "UTC":
                    self.zoned = True
                return {"time": "zoned", "zoned": "time"}.get(kinds[1], "")
            case "date_trunc" | "datetrunc" if parts[0].text is not None and kinds[1] in TIMES:
                if kinds[1] == "date" and unit_name(parts[0].text) in FINER_THAN_DAY:
                    return ""  # DuckDB compares only the day
                self._on_clock(kinds[1])
                return kinds[1]
            case "time_bucket" if len(parts) == 2 and parts[0].is_free and kinds[1] in TIMES:
                self._on_clock(kinds[1])
                return kinds[1]
            case "date_diff" | "datediff" | "date_sub" | "datesub" if len(parts) == 3:
                unit = unit_name(parts[0].text or "")
                if not set(kinds[1:]) <= set(TIMES) or (
                    name in ("date_sub", "datesub") and unit not in _FINE
                ):
                    return ""
                self._on_clock(*kinds[1:])
                return "number"
            case "date_part" | "datepart" if len(parts) == 2 and parts[0].text is not None:
                return self._part(parts[0].text.lower(), parts[1], kinds[1])
            case _ if len(parts) == 1:
                return self._part(name, parts[0], first)
            case _:
                return ""

    def _part(self, name: str, inner: Expression, kind: str) -> str:
        if kind not in TIMES:
            return ""
        if name in _INSTANTS:
            return "float" if name == "epoch" else "number"
        self._on_clock(kind)
        if name in _SINCE:
            return "float" if name == "julian" else "number"
        longer = _WITHIN.get(name)
        if longer is None:
            return ""
        self.guards.append(call("date_trunc", string(longer), inner))
        return "text" if name in ("monthname", "dayname") else "number"

    def _cast(self, each: Expression, kind: str) -> str:
        made = _cast_kind(each.value)
        if kind in NUMBERS:
            return made if made in NUMBERS else ""
        if kind in TIMES:
            if made == "text" and kind != "zoned":
                self.years.append(each.arguments[0])
                return made
            if kind != made and "zoned" in (kind, made):
                self._on_clock("zoned")
            return made if made in TIMES else ""
        return made if kind == made == "text" else ""

    def _sum(self, each: Expression, kinds: list[str]) -> str:
        minus, parts = each.name == "-", each.arguments
        if set(kinds) <= set(NUMBERS):
            return "float" if "float" in kinds else "number"
        if len(kinds) != 2:
            return ""
        match kinds:
            case ["date", "number"]:
                self.ranges.append((parts[1], -_MOST_DAYS, _MOST_DAYS))
                return "date"
            case ["number", "date"] if not minus:
                self.ranges.append((parts[0], -_MOST_DAYS, _MOST_DAYS))
                return "date"
            case ["date", "date"] if minus:
                return "number"
            case [one, two] if minus and {one, two} <= {*TIMES}:
                if one != two:
                    self._on_clock(one, two)
                return "interval"
            case [one, "interval"] if one in TIMES and parts[1].name in _STEPS:
                self._on_clock(one)
                return "time" if one == "date" else one
            case _:
                return ""


def _keeps_order(form: str) -> bool:
    """Whether texts written by this ``strftime`` format sort in the order of their times."""
    for short, long in _LONG_FORMATS.items():
        form = form.replace(short, long)
    return _ORDERED_FORMAT.fullmatch(form) is not None


def _literal_kind(kind: str, text: str) -> str:
    if kind == "STRING":
        return "text"
    if kind not in ("INTEGER", "NUMERIC"):
        return ""
    # A number with too many digits for a decimal is a DOUBLE.
    return "float" if "e" in text.lower() or len(text) > _MOST_DIGITS else "number"


def _cast_kind(name: str) -> str:
    return "number" if name.startswith("DECIMAL") else _CAST_KINDS.get(name, "")
