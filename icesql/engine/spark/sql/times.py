"""Functions of dates and times in Spark's spelling."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql.kinds import (
    Rewrites,
    kind,
    literal_text,
    refuse,
    rows,
    spelled,
    string,
)
from icesql.engine.spark.sql.zones import micros_of_naive

_DAY_UNITS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
_CLOCK: Final = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
                 "MILLISECOND": 1_000, "MICROSECOND": 1}  # fmt: skip
_TIMES: Final = ("date", "timestamp", "timestamptz")


def part_of(part: str, value: exp.Expr) -> exp.Expr:
    """``part`` (a unit name in any case) of a date or timestamp."""
    upper = part.upper()
    upper = _PLURALS.get(upper, upper)
    if kind(value) not in _TIMES:
        raise refuse(f"{part} of a value that is not a date or timestamp")
    if upper == "EPOCH":
        return epoch(exp.TimeToUnix(this=value))
    found = rows("parts").get(upper)
    if found is None:
        raise refuse(f"extract({part})")
    return spelled(found[0][0], value, like="BIGINT")


_PLURALS: Final = {f"{name}S": name for name in (*_DAY_UNITS, *_CLOCK)}


def epoch(node: exp.TimeToUnix) -> exp.Expr:
    """Seconds since 1970 as a double; a naive time counts as UTC."""
    value = node.this
    match kind(value):
        case "timestamptz":
            return spelled("(UNIX_MICROS({0}) / 1000000D)", value, like="DOUBLE")
        case "timestamp" | "date":
            naive = spelled("CAST({0} AS TIMESTAMP_NTZ)", value, like="TIMESTAMP")
            return spelled("({0} / 1000000D)", micros_of_naive(naive), like="DOUBLE")
        case _:
            raise refuse("epoch() of a value that is not a date or timestamp")


def _trunc(node: exp.TimestampTrunc | exp.DateTrunc) -> exp.Expr:
    """date_trunc(); no time zone affects a naive time."""
    value, found = node.this, kind(node.this)
    if found not in _TIMES:
        raise refuse("date_trunc() of a value that is not a date or timestamp")
    unit = node.args.get("unit")
    name = str(unit.name if unit is not None else "").upper()
    name = _PLURALS.get(name, name)
    clock = ("HOUR", "MINUTE", "SECOND")
    if name not in (*_DAY_UNITS, *clock):
        raise refuse(f"date_trunc('{name.lower()}', …)")
    if found == "timestamptz":
        text = f"DATE_TRUNC('{name}', {{0}})"
    elif name in _DAY_UNITS:
        day = "CAST({0} AS DATE)" if name == "DAY" else f"TRUNC(CAST({{0}} AS DATE), '{name}')"
        text = f"CAST({day} AS TIMESTAMP_NTZ)"
    else:
        kept = clock.index(name) + 1
        parts = ", ".join([f"{each}({{0}})" for each in clock[:kept]] + ["0"] * (3 - kept))
        text = f"MAKE_TIMESTAMP_NTZ(YEAR({{0}}), MONTH({{0}}), DAY({{0}}), {parts})"
    made = spelled(text, value, like="DATE" if found == "date" else node)
    if found == "date" and kind(node) == "date":
        return spelled("CAST({0} AS DATE)", made, like="DATE")
    return made


def _diff(node: exp.DateDiff | exp.TimestampDiff) -> exp.Expr:
    """date_diff() counts the boundaries of the unit between two times."""
    unit = str(node.args["unit"].name if node.args.get("unit") is not None else "DAY").upper()
    unit = _PLURALS.get(unit, unit)
    # DuckDB's (unit, start, end) is (end, start) in the tree.
    end, start = node.this, node.expression
    kinds = {kind(end), kind(start)}
    if kinds - set(_TIMES):
        raise refuse("date_diff() of a value that is not a date or timestamp")
    if unit == "WEEK" and kinds != {"date"}:
        # In the local engine, weeks of timestamps begin on other days than weeks of dates.
        raise refuse("date_diff('week', …) of timestamps", "CAST them to DATE")
    if unit in rows("boundaries"):
        ((counted,),) = rows("boundaries")[unit]
        return spelled(f"CAST({counted} AS BIGINT)", end, start, like="BIGINT")
    size = _CLOCK.get(unit, 0)
    if not size:
        raise refuse(f"date_diff('{unit.lower()}', …)")
    if "timestamptz" in kinds and len(kinds) > 1:
        raise refuse("date_diff() of an instant and a local time", "CAST one of them")
    return spelled(
        f"CAST(FLOOR({{0}} / CAST({size} AS DECIMAL(20,0)))"
        f" - FLOOR({{1}} / CAST({size} AS DECIMAL(20,0))) AS BIGINT)",
        _boundary_micros(end),
        _boundary_micros(start),
        like="BIGINT",
    )


def _boundary_micros(value: exp.Expr) -> exp.Expr:
    if kind(value) == "timestamptz":
        return spelled("UNIX_MICROS({0})", value, like="BIGINT")
    return micros_of_naive(spelled("CAST({0} AS TIMESTAMP_NTZ)", value, like="TIMESTAMP"))


def _strftime(node: exp.TimeToStr) -> exp.Expr:
    """strftime() as a concatenation of parts: Spark's date_format() needs a time zone."""
    value, format_ = node.this, literal_text(node.args.get("format"))
    if kind(value) not in _TIMES or format_ is None:
        raise refuse(
            "strftime() of a value that is not a date or timestamp, or with a computed format"
        )
    clock = value
    if kind(value) == "date":
        clock = spelled("CAST({0} AS TIMESTAMP_NTZ)", value, like="TIMESTAMP")
    args, parts, known = [value, clock], [], rows("strftime")
    for match in re.finditer(r"%(-?)(.)|[^%]+|%", format_, re.DOTALL):
        bare, letter = match[1] or "", match[2]
        if letter is None:
            parts.append(f"{{{len(args)}}}")
            args.append(string(match[0]))
        elif letter == "%":
            parts.append("'%'")
        elif letter in known and not (bare and len(known[letter][0]) == 1):
            text, *widths = known[letter][0]
            shown = f"CAST({text} AS STRING)" if widths else text
            parts.append(f"LPAD({shown}, {widths[0]}, '0')" if widths and not bare else shown)
        else:
            raise refuse(f"strftime(…, '{match[0]}')")
    text = ", ".join(parts) or "''"
    # A format without parts gives a constant text, but NULL for a NULL value.
    return spelled(
        f"IF({{0}} IS NULL, CAST(NULL AS STRING), CONCAT({text}))", *args, like="VARCHAR"
    )


TIME_REWRITES: Final[Rewrites] = {
    exp.Extract: lambda node: part_of(str(node.this.name), node.expression),
    exp.TimeToUnix: epoch,
    exp.TimeToStr: _strftime,
    exp.TimestampTrunc: _trunc,
    exp.DateTrunc: _trunc,
    exp.DateDiff: _diff,
    exp.TimestampDiff: _diff,
}
