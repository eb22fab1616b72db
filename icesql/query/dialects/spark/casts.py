"""CAST between Spark's types in ANSI mode, as DuckDB expressions.

Fractions are cut, never rounded; what does not fit or cannot be read ends the query by an error;
``TRY_CAST`` gives NULL there.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.instant_calls import FIRST_INSTANT
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType

_INTEGER: Final = r"\s*[+-]?[0-9]+\s*"
_NUMBER: Final = r"(?i)\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)\s*"
_DECIMAL: Final = r"(?i)\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*"
_DAY: Final = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_MOMENT: Final = (
    rf"\s*{_DAY}([ T][0-9]{{1,2}}:[0-9]{{1,2}}(:[0-9]{{1,2}}(\.[0-9]{{0,6}})?)?"
    r"( ?Z|[+-][0-9]{2}:[0-9]{2})?)?\s*"
)
_LOCAL: Final = rf"\s*{_DAY}([ T][0-9]{{1,2}}:[0-9]{{1,2}}(:[0-9]{{1,2}}(\.[0-9]{{0,6}})?)?)?\s*"
# Texts of constants that every cast reads as DuckDB does.
_PLAIN: Final[dict[str, re.Pattern[str]]] = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?"),
    "timestamp_ntz": re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?"),
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
    """``node`` cast as Spark casts it; None where Spark or this table has no such cast.

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
    """The DuckDB expression for a cast between values that are no texts."""
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
    if given.kind in t.FRACTIONAL and to.kind == "decimal":
        return f"CAST(CAST($1 AS VARCHAR) AS {wanted})"
    if given.kind == "decimal" and to.kind in t.FRACTIONAL and given.precision > 15:
        return f"CAST(CAST($1 AS VARCHAR) AS {wanted})"
    return f"CAST($1 AS {wanted})"


def _of_text(node: exp.Expr, to: SqlType, wanted: str, safe: bool) -> exp.Expr | None:
    bare = node.this if isinstance(node, exp.Paren) else node
    plain = _PLAIN.get(to.kind)
    if isinstance(bare, exp.Literal) and plain is not None and plain.fullmatch(bare.name):
        is_clock = to.kind == "timestamp" and _PLAIN["timestamp_ntz"].fullmatch(bare.name)
        return first_instant(bare) if is_clock else _plain(bare, wanted)
    failed = "NULL" if safe else f"error('the text ''' || $1 || ''' is no {to}')"
    cast_word = "TRY_CAST" if safe else "CAST"
    value = f"{cast_word}($1 AS {wanted})"
    if to.kind in t.INTEGRAL:
        pattern = _INTEGER
    elif to.kind in t.FRACTIONAL:
        pattern = _NUMBER
    elif to.kind == "decimal":
        pattern = _DECIMAL
    elif to.kind == "timestamp":
        clock = f"{FIRST_INSTANT}({cast_word}($1 AS TIMESTAMP))"
        pattern = _MOMENT
        value = f"CASE WHEN regexp_full_match($1, '{_LOCAL}') THEN {clock} ELSE {value} END"
    elif to.kind == "timestamp_ntz":
        pattern = _LOCAL
    elif to.kind == "date":
        return duckdb(_day(cast_word, failed), node)
    elif to.kind == "boolean":
        return duckdb(
            "CASE WHEN $1 IS NULL THEN NULL "
            "WHEN lower(trim($1)) IN ('t', 'true', 'y', 'yes', '1') THEN true "
            f"WHEN lower(trim($1)) IN ('f', 'false', 'n', 'no', '0') THEN false ELSE {failed} END",
            node,
        )
    elif to.kind == "binary":
        return duckdb("encode($1)", node)
    else:
        return None
    if to.kind in ("timestamp", "timestamp_ntz"):
        failed = _begun(to, cast_word, failed)
    return duckdb(
        f"CASE WHEN $1 IS NULL THEN NULL WHEN regexp_full_match($1, '{pattern}') "
        f"THEN {value} ELSE {failed} END",
        node,
    )


def _begun(to: SqlType, cast_word: str, failed: str) -> str:
    """The beginning of the year or month that a text is."""
    call = FIRST_INSTANT if to.kind == "timestamp" else ""
    return (
        f"CASE WHEN regexp_full_match($1, '\\s*[0-9]{{4}}-[0-9]{{1,2}}\\s*') "
        f"THEN {call}({cast_word}(trim($1) || '-01' AS TIMESTAMP)) "
        f"WHEN regexp_full_match($1, '\\s*[0-9]{{4}}\\s*') "
        f"THEN {call}({cast_word}(trim($1) || '-01-01' AS TIMESTAMP)) ELSE {failed} END"
    )


def _day(cast_word: str, failed: str) -> str:
    """The date that a text begins with: a day, a month or a year."""
    return (
        f"CASE WHEN $1 IS NULL THEN NULL WHEN regexp_full_match($1, '\\s*{_DAY}([ T].*)?\\s*') "
        f"THEN {cast_word}(regexp_extract($1, '{_DAY}') AS DATE) "
        f"WHEN regexp_full_match($1, '\\s*[0-9]{{4}}-[0-9]{{1,2}}\\s*') "
        f"THEN {cast_word}(trim($1) || '-01' AS DATE) "
        f"WHEN regexp_full_match($1, '\\s*[0-9]{{4}}\\s*') "
        f"THEN {cast_word}(trim($1) || '-01-01' AS DATE) ELSE {failed} END"
    )


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
