"""CAST between Spark's types in ANSI mode, as DuckDB expressions.

Fractions are truncated, never rounded; values out of range and invalid texts raise an error;
``TRY_CAST`` returns NULL for them.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.instant_calls import FIRST_INSTANT
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType

# Characters that Spark trims at both ends of a text.
_BLANK: Final = r"[\x00-\x20\x7F]+"
_BLANKS: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_TRIMMED: Final = f"regexp_replace($1, '^{_BLANK}|{_BLANK}$', '', 'g')"
# A T before a time of day is valid only at the very start.
_TRIMMED_TIMESTAMP: Final = rf"regexp_replace($1, '(?s)^{_BLANK}([^T]|$)|{_BLANK}$', '\1', 'g')"
_INTEGER: Final = r"[+-]?[0-9]+"
_DECIMAL: Final = r"(?i)[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
# The limits of digits and exponent for which the value is exact.
_HEXADECIMAL: Final = (
    r"(?i)[+-]?0x([0-9a-f]{1,%d}\.?|[0-9a-f]{0,%d}\.[0-9a-f]{1,%d})p[+-]?[0-9]{1,%d}[df]?"
)
_SPECIAL: Final = r"[+-]NaN|(?i:[+-]?inf(inity)?|nan)"
_DAY: Final = r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"
_MOMENT: Final = r"[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_HOUR: Final = r"([01]?[0-9]|2[0-3])"
_SECONDS: Final = rf"{_HOUR}:[0-5]?[0-9]:[0-5]?[0-9](\.[0-9]*)?"
_TIME: Final = f"({_SECONDS}|{_HOUR}:[0-5]?[0-9])"
_OFFSET: Final = (
    r"[+-]((0?[0-9]|1[0-7])(:[0-5]?[0-9]|:[0-5][0-9]:[0-5][0-9])?"
    r"|(0[0-9]|1[0-7])[0-5][0-9]([0-5][0-9])?|18(:?00(:00)?|:0|0000)?)"
)
_SHIFTED: Final = rf"[\x00-\x20]*(Z|(UTC|GMT|UT)?{_OFFSET}|UTC|GMT|UT)"
_NAMED: Final = r"[\x00-\x20]*[A-Za-z][A-Za-z0-9/_+-]+"
_NAME: Final = "regexp_extract($1, '[A-Za-z][A-Za-z0-9/_+-]+$')"
# Java maps the first three to fixed offsets, DuckDB to the history of a region.
_REGION: Final = (
    f"coalesce(map {{'EST': 'GMT-05', 'MST': 'GMT-07', 'HST': 'GMT-10'}}[{_NAME}], {_NAME})"
)
# Java zone names that are not in title case. Java is case-sensitive, DuckDB is not.
_CASED: Final = (
    "[A-Z]{2,3}|[A-Z]{3}[0-9]([A-Z]{3})?|GB-Eire|NZ-CHAT|W-SU|Etc/(GMT([+-]?[0-9]+)?|UCT|UTC)|"
    "SystemV/[A-Z0-9]+|US/([A-Z][a-z]+|East-Indiana|Indiana-Starke)|Africa/Dar_es_Salaam|"
    "America/(Argentina/ComodRivadavia|Knox_IN|Port-au-Prince|Port_of_Spain)|"
    "Antarctica/(DumontDUrville|McMurdo)|Australia/(ACT|LHI|NSW)|Brazil/DeNoronha|"
    "Chile/EasterIsland|Europe/Isle_of_Man|Mexico/Baja(Norte|Sur)"
)
_IF_KNOWN: Final = (
    f"CASE WHEN {_NAME} NOT IN ('ROC', 'Factory', 'US/Pacific-New', 'Canada/East-Saskatchewan') "
    f"AND CASE WHEN regexp_full_match({_NAME}, '(?i){_CASED}') "
    f"THEN regexp_full_match({_NAME}, '{_CASED}') "
    f"ELSE regexp_full_match({_NAME}, '[A-Z][a-z]+([/_-][A-Z][a-z]+)*') END "
    f"AND TRY_CAST('2000-01-01 00:00:00 ' || {_NAME} AS TIMESTAMPTZ) IS NOT NULL "
    "THEN %s ELSE $failed END"
)
# A text in the form that DuckDB reads: no plus, six digits of a second, no zone.
_READ: Final = (
    r"trim(regexp_replace($1, '(?s)^\+?(-?[0-9]+-[0-9]+-[0-9]+)"
    r"([ T]([0-9]+:[0-9]+(:[0-9]+(\.[0-9]{0,6})?)?))?.*$', '\1 \3'))"
)
_SHIFT: Final = (
    "regexp_replace(regexp_replace(regexp_replace("
    "coalesce(nullif(regexp_extract($1, '([+-][0-9:]+)$', 1), ''), '+00'), "
    r"'^([+-])([0-9])(:|$)', '\10\2\3'), '^([+-][0-9]{2}):([0-9])$', '\1:0\2'), "
    r"'([0-9]{2})\B', '\1:', 'g')"
)
# A placeholder for the result of a text that Spark cannot read either.
_FAILED: Final = "$failed"
_WRITTEN: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
# Texts of constants for which DuckDB's cast is the same.
_PLAIN: Final[dict[str, re.Pattern[str]]] = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(rf"\d{{4}}-\d\d-\d\d( {_WRITTEN}(Z|[+-](0\d|1[0-7]):[0-5]\d)?)?"),
    "timestamp_ntz": re.compile(rf"\d{{4}}-\d\d-\d\d( {_WRITTEN})?"),
    "int": re.compile(r"-?\d{1,9}"),
    "bigint": re.compile(r"-?\d{1,18}"),
    "double": re.compile(r"-?\d{1,15}(\.\d{1,15})?"),
    "string": re.compile(r".*", re.DOTALL),
}
_JAVA_DOUBLE: Final = """
CASE WHEN isnan($1) THEN 'NaN' WHEN isinf($1) THEN replace(CAST($1 AS VARCHAR), 'inf', 'Infinity')
WHEN $1 = 0 OR (abs($1) >= 0.001 AND abs($1) < 10000000) THEN CAST($1 AS VARCHAR)
ELSE CASE WHEN $1 < 0 THEN '-' ELSE '' END || list_transform([CAST(abs($1) AS VARCHAR)], lambda s:
CASE WHEN contains(s, 'e')
THEN split_part(s, 'e', 1) || CASE WHEN contains(split_part(s, 'e', 1), '.') THEN '' ELSE '.0' END
 || 'E' || CAST(CAST(split_part(s, 'e', 2) AS INT) AS VARCHAR)
WHEN $1 > 1 OR $1 < -1
THEN s[1:1] || '.' || CASE WHEN rtrim(replace(s, '.', '')[2:], '0') = '' THEN '0'
 ELSE rtrim(replace(s, '.', '')[2:], '0') END || 'E' || CAST(length(split_part(s, '.', 1)) - 1 AS VARCHAR)
ELSE ltrim(replace(s, '.', ''), '0')[1:1] || '.' || CASE WHEN ltrim(replace(s, '.', ''), '0')[2:] = ''
 THEN '0' ELSE ltrim(replace(s, '.', ''), '0')[2:] END || 'E-' ||
 CAST(length(s) - 1 - length(ltrim(replace(s, '.', ''), '0')) AS VARCHAR) END)[1] END
"""

_JAVA_FLOAT: Final = (
    "CASE WHEN isnan($1) THEN 'NaN' WHEN isinf($1) THEN "
    "replace(CAST($1 AS VARCHAR), 'inf', 'Infinity') WHEN $1 = 0 OR (abs($1) >= 0.001 AND "
    "abs($1) < 10000000) THEN CAST($1 AS VARCHAR) "
    "WHEN $1 IS NOT NULL THEN error('a FLOAT of this size as text; CAST it to DOUBLE') END"
)


def cast(node: exp.Expr, given: SqlType, to: SqlType, *, safe: bool = False) -> exp.Expr | None:
    """``node`` cast as Spark casts it; None if Spark or this module does not support the cast.

    ``safe`` is TRY_CAST.
    """
    wanted = t.duckdb_name(to)
    if given == to:
        return node
    if wanted is None:
        return None
    if given.kind == "null":
        return _plain(node, wanted)
    if given.kind == "string":
        return _of_text(node, to, wanted, safe)
    if to.kind == "string":
        return _to_text(node, given)
    if given.kind == "array" and to.kind == "array":
        return _of_array(node, given, to, safe)
    if to.kind == "timestamp" and given.kind in ("date", "timestamp_ntz"):
        return first_instant(node)
    template = _template(given, to, wanted)
    if template is None:
        return None
    return duckdb(template.replace("CAST(", "TRY_CAST(") if safe else template, node)


def _plain(node: exp.Expr, wanted: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(wanted, dialect="duckdb"))


def _template(given: SqlType, to: SqlType, wanted: str) -> str | None:
    """The DuckDB expression for a cast between types other than text."""
    one, other = given.kind, to.kind
    if one in t.NUMERIC and other in t.NUMERIC:
        return _of_number(given, to, wanted)
    if one in t.NUMERIC and other == "boolean":
        return "$1 <> 0"
    if one == "boolean" and other in t.NUMERIC:
        return f"CAST(CAST($1 AS INT) AS {wanted})"
    if one in t.MOMENTS and other in t.MOMENTS:
        return f"CAST($1 AS {wanted})"
    if one == "timestamp" and other == "bigint":
        return "CAST(floor(epoch_us($1) / 1000000) AS BIGINT)"
    if one == "timestamp" and other == "double":
        return "epoch_us($1) / 1000000"
    if one in t.INTEGRAL and other == "timestamp":
        return "make_timestamptz(CAST($1 AS BIGINT) * 1000000)"
    if {one, other} <= {"struct", "map"} and one == other and t.common(given, to) == to:
        return f"CAST($1 AS {wanted})"
    return None


def _of_number(given: SqlType, to: SqlType, wanted: str) -> str:
    if to.kind in t.INTEGRAL and given.kind not in t.INTEGRAL:
        return f"CAST(trunc($1) AS {wanted})"
    long = given.kind == "decimal" and to.kind in t.FRACTIONAL and given.precision > 15
    if long or (given.kind in t.FRACTIONAL and to.kind == "decimal"):
        return f"CAST(CAST($1 AS VARCHAR) AS {wanted})"
    return f"CAST($1 AS {wanted})"


def _of_text(node: exp.Expr, to: SqlType, wanted: str, safe: bool) -> exp.Expr | None:
    bare = node.this if isinstance(node, exp.Paren) else node
    plain = None if safe else _PLAIN.get(to.kind)
    if isinstance(bare, exp.Literal) and plain is not None and plain.fullmatch(bare.name):
        is_clock = to.kind == "timestamp" and _PLAIN["timestamp_ntz"].fullmatch(bare.name)
        return first_instant(bare) if is_clock else _plain(bare, wanted)
    if to.kind == "binary":
        return duckdb("encode($1)", node)
    read = forms(to, wanted, "TRY_CAST" if safe else "CAST")
    if not read:
        return None
    cases = " ".join(f"WHEN regexp_full_match($1, '{form}') THEN {value}" for form, value in read)
    made = f"CASE WHEN $1 IS NULL THEN NULL {cases} ELSE {_FAILED} END"
    made = made.replace(
        _FAILED, "NULL" if safe else f"error('the text ''' || $1 || ''' is no {to}')"
    )
    if isinstance(bare, exp.Literal):
        text = bare.name.strip(_BLANKS)
        if to.kind == "timestamp" and text.startswith("T"):
            text = bare.name.rstrip(_BLANKS)
        return duckdb(made, exp.Literal.string(text))
    made = made.replace("$1", "own_text")
    trimmed = _TRIMMED_TIMESTAMP if to.kind == "timestamp" else _TRIMMED
    return duckdb(f"list_transform([{trimmed}], lambda own_text: {made})[1]", node)


def forms(to: SqlType, wanted: str, word: str) -> list[tuple[str, str]]:
    """Regular expressions of the trimmed texts that Spark reads as ``to``, and the value of each.

    ``wanted`` is DuckDB's name of the type, ``word`` CAST or TRY_CAST. Forms that cannot be
    computed here have the value ``error(…)``, also with TRY_CAST.
    """
    match to.kind:
        case "tinyint" | "smallint" | "int" | "bigint":
            return [(_INTEGER, f"{word}($1 AS {wanted})")]
        case "float" | "double":
            return [
                (_SPECIAL, f"CAST(regexp_replace(lower($1), '^[+-]n', 'n') AS {wanted})"),
                (f"{_DECIMAL}[df]?", f"{word}(regexp_replace($1, '[dDfF]$', '') AS {wanted})"),
                (
                    _HEXADECIMAL % ((6, 3, 3, 2) if to.kind == "float" else (13, 6, 7, 3)),
                    _of_digits(wanted),
                ),
                (
                    r"(?i)[+-]?0x([0-9a-f]+\.?|[0-9a-f]*\.[0-9a-f]+)p[+-]?[0-9]+[df]?",
                    "error('a hexadecimal number of many digits as a text')",
                ),
            ]
        case "decimal":
            digits = r"[+-]?[\p{Nd}.]*\p{Nd}[\p{Nd}.]*([eE][+-]?\p{Nd}+)?"
            return [
                (_DECIMAL, f"{word}($1 AS {wanted})"),
                ("[0-9.eE+-]*", _FAILED),
                (digits, f"{word}({_in_latin()} AS {wanted})"),
            ]
        case "boolean":
            return [("(?i)t|true|y|yes|1", "true"), ("(?i)f|false|n|no|0", "false")]
        case "date":
            day = r"regexp_extract($1, '^\+?(-?[0-9]+-[0-9]+-[0-9]+)', 1)"
            return [
                (f"(?s){_DAY}([ T].*)?", f"{word}({day} AS DATE)"),
                *_begun(7, word, "DATE"),
            ]
        case "timestamp_ntz":
            local = f"{word}({_READ} AS TIMESTAMP)"
            return [
                (f"{_MOMENT}([ T]({_TIME}|{_SECONDS}{_SHIFTED}))?", local),
                *_begun(6, word, "TIMESTAMP"),
                (f"{_MOMENT}[ T]{_SECONDS}{_NAMED}", _IF_KNOWN % local),
            ]
        case "timestamp":
            clock = f"({_MOMENT}[ T]|T?)"
            here = f"{FIRST_INSTANT}({word}({_dated('now()')} AS TIMESTAMP))"
            shifted = _dated(f"timezone('GMT' || {_SHIFT}, now())") + f" || {_SHIFT}"
            there = f"{word}({_dated(f'timezone({_REGION}, now())')} AS TIMESTAMP)"
            named = _IF_KNOWN % f"{FIRST_INSTANT}({there}, {_REGION})"
            return [
                (f"{_MOMENT}|{clock}{_TIME}", here),
                (f"{clock}{_SECONDS}{_SHIFTED}", f"{word}({shifted} AS TIMESTAMPTZ)"),
                *_begun(6, word, "TIMESTAMP", FIRST_INSTANT),
                (f"{clock}{_SECONDS}{_NAMED}", named),
            ]
        case _:
            return []


@functools.cache
def _in_latin() -> str:
    """A text whose other Unicode digits in the BMP are replaced by Latin ones, as Java reads them."""
    digits = [each for each in map(chr, range(0x80, 0x10000)) if each.isdecimal()]
    latin = "".join(str(int(each)) for each in digits)
    return f"translate($1, '{''.join(digits)}', '{latin}')"


def _of_digits(wanted: str) -> str:
    """The value of a hexadecimal text such as ``-0x1.8p3``."""
    part = "regexp_extract(lower($1), '0x([0-9a-f]*)[.]?([0-9a-f]*)p([+-]?[0-9]+)', {})".format
    digits = f"CAST('0x' || {part(1)} || {part(2)} AS BIGINT)"
    size = f"power(2.0::DOUBLE, CAST({part(3)} AS BIGINT) - 4 * length({part(2)}))"
    return f"CAST(if(starts_with($1, '-'), -1.0, 1.0)::DOUBLE * {digits} * {size} AS {wanted})"


def _dated(now: str) -> str:
    """A text in the form that DuckDB reads; a time of day gets the date of ``now``."""
    today = f"CAST(CAST({now} AS DATE) AS VARCHAR) || ' ' || ltrim($1, 'T')"
    return _READ.replace("$1", f"CASE WHEN contains($1[:4], ':') THEN {today} ELSE $1 END")


def _begun(digits: int, word: str, wanted: str, call: str = "") -> list[tuple[str, str]]:
    """Texts of a year, month or hour alone, as its start; years have at most ``digits`` digits."""
    parts = [("-[0-9]{1,2}", "-01"), ("", "-01-01")]
    if wanted == "TIMESTAMP":
        parts.append((f"-[0-9]{{1,2}}-[0-9]{{1,2}}[ T]{_HOUR}", ":00"))
    return [
        (
            f"[+-]?[0-9]{{4,{digits}}}{part}",
            f"{call}({word}(replace(ltrim($1, '+'), 'T', ' ') || '{rest}' AS {wanted}))",
        )
        for part, rest in parts
    ]


def _to_text(node: exp.Expr, given: SqlType) -> exp.Expr | None:
    if given.kind in (*t.INTEGRAL, "decimal", "boolean", "date", "timestamp_ntz", "uuid"):
        return duckdb("CAST($1 AS VARCHAR)", node)
    if given.kind == "timestamp":
        return duckdb("CAST(CAST($1 AS TIMESTAMP) AS VARCHAR)", node)
    if given.kind == "double":
        return duckdb(" ".join(_JAVA_DOUBLE.split("\n")).strip(), node)
    if given.kind == "float":
        return duckdb(_JAVA_FLOAT, node)
    if given.kind == "binary":
        return duckdb("decode($1)", node)
    return None


def _of_array(node: exp.Expr, given: SqlType, to: SqlType, safe: bool) -> exp.Expr | None:
    element = exp.to_identifier("own_element")
    made = cast(element, given.element, to.element, safe=safe)
    if made is None:
        return None
    if made is element:
        return node
    return duckdb("list_transform($1, lambda own_element: $2)", node, made)
