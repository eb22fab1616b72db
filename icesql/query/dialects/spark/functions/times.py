"""Dates and times: differences in whole units, addition, parts, truncation, Java's patterns."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT, Typed, by_duckdb, constant_text, converted
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.time_patterns import letters, pieces
from icesql.sql.grammar import columns
from icesql.sql.positions import unsupported

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
