"""Functions built from constant arguments, or from any number of arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.dialects import time_patterns
from icesql.query.dialects import types as t
from icesql.query.dialects.functions import call, duckdb, expanded
from icesql.query.dialects.trino_snowflake.operators import cast, common, described, typed, word

if TYPE_CHECKING:
    from icesql.query.dialects.trino_snowflake.translation import Translation

Arguments = list["exp.Expr"]
Builder = Callable[["Translation", "exp.Expr", Arguments], "exp.Expr"]
# Converts a pattern of dates and times to DuckDB's.
Convert = Callable[[str], str | None]
_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[[0-9]+\])*", re.ASCII)


# ---------------------------------------------------------------------- constants


def _constant(self: Translation, node: exp.Expr, what: str, value: exp.Expr) -> str:
    if value.is_string:
        return value.name
    raise self.refuse(f"{node.name.lower()}() with {what} that is no constant text", value)


def _check_moment(self: Translation, node: exp.Expr, value: exp.Expr) -> None:
    type = self.type(value)
    if type.kind not in (*t.MOMENTS, t.NULL.kind):
        what = f"{node.name.lower()}() of {described(type)}"
        raise self.refuse(what, value, "CAST it to DATE or TIMESTAMP")


# ---------------------------------------------------------------------- dates and times


def to_char(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``TO_CHAR(x)`` and ``TO_CHAR(timestamp, 'YYYY-MM-DD')``."""
    if len(given) == 1:
        made = cast(self, node, given[0], exp.DataType.build("VARCHAR"))
        return made or expanded("CAST($1 AS VARCHAR)", given[0])
    return _formatted(time_patterns.from_snowflake)(self, node, given)


def parsed_date(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``TO_DATE(text, 'YYYY-MM-DD')``."""
    return expanded("CAST($1 AS DATE)", _parsed(time_patterns.from_snowflake)(self, node, given))


def _pattern(self: Translation, node: exp.Expr, value: exp.Expr, convert: Convert) -> str:
    pattern = convert(_constant(self, node, "a pattern", value))
    if pattern is None:
        raise self.refuse(f"the pattern {value.sql()} of {node.name.lower()}()", value)
    return pattern


def _formatted(convert: Convert) -> Builder:
    """Functions such as ``date_format(x, '%Y-%m-%d %H:%i')``, whose patterns ``convert`` reads."""

    def built(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
        pattern = _pattern(self, node, given[1], convert)
        _check_moment(self, node, given[0])
        return expanded("strftime($1, $2)", given[0], pattern)

    return built


def _parsed(convert: Convert) -> Builder:
    """Functions such as ``date_parse(text, '%Y-%m-%d')``; the result is a timestamp."""

    def built(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
        pattern = _pattern(self, node, given[1], convert)
        safe = node.name.lower().startswith("try_")
        function = "try_strptime" if safe else "strptime"
        # Formatting writes milliseconds and zeros; parsing accepts any fraction.
        made = expanded(f"{function}($1, $2)", given[0], pattern.replace("%g000", "%f"))
        if "%y" in pattern:
            # Two digits mean 1970 to 2069 here, but 1969 to 2068 in DuckDB.
            later = "CASE WHEN year($1) = 1969 THEN $1 + INTERVAL 100 YEAR ELSE $1 END"
            made = expanded(later, made)
        return made

    return built


# ---------------------------------------------------------------------- texts and conditions


def joined(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``concat(a, b, …)``: NULL if an argument is NULL."""
    kinds = {word(self.type(each)) for each in given} - {"null"}
    if "array" in kinds:
        raise self.refuse("concat() of arrays", node, "write ||")
    if kinds - {"text", "integer", "boolean", "date", "decimal"}:
        raise self.refuse(f"concat() of {', '.join(sorted(kinds))}", node, "CAST it to VARCHAR")
    made = given[0].copy()
    for each in given[1:]:
        made = expanded("$1 || $2", made, each)
    return made


def substr(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``substr(s, start, length)``: '' for a start outside the text."""
    start = given[1]
    plain = isinstance(start, exp.Literal) and int(start.name) > 0
    length = ", greatest($3, 0)" if len(given) == 3 else ""
    if len(given) == 3 and isinstance(given[2], exp.Literal):
        length = ", $3"
    if plain:
        return expanded(f"substr($1, $2{length})", *given, exact=False)
    text = f"CASE WHEN $2 = 0 OR $2 < -length($1) THEN '' ELSE substr($1, $2{length}) END"
    if self.dialect == "snowflake":
        if not isinstance(start, exp.Neg):
            raise self.refuse(f"{node.name.lower()}() from a place that is no constant", start)
        text = f"CASE WHEN $2 < -length($1) THEN '' ELSE substr($1, $2{length}) END"
    return expanded(text, *given)


def regexp_replace(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """Replace all matches; groups in the replacement are ``$1`` (Trino) or ``\\1`` (Snowflake)."""
    text = _constant(self, node, "a replacement", given[2]) if len(given) == 3 else ""
    if self.dialect == "trino":
        if "\\" in text or "${" in text:
            raise self.refuse("regexp_replace() with this replacement", given[2])
        text = "".join(
            "\\" if each == "$" and text[at + 1 : at + 2].isdigit() else each
            for at, each in enumerate(text)
        )
    return expanded("regexp_replace($1, $2, $3, 'g')", given[0], given[1], text)


def json_extract_scalar(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``json_extract_scalar(text, '$.a.b')``: NULL for objects, arrays and null."""
    path = _constant(self, node, "a path", given[1])
    if not _PATH.fullmatch(path):
        raise self.refuse(f"the path '{path}' of json_extract_scalar()", given[1])
    text = (
        "CASE WHEN json_type($1, $2) NOT IN ('OBJECT', 'ARRAY', 'NULL') "
        "THEN json_extract_string($1, $2) END"
    )
    return expanded(text, *given)


def decode(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``DECODE(x, a, b, …, default)``: NULL equals NULL."""
    value, *rest = given
    made = exp.Case()
    for known, result in zip(rest[::2], rest[1::2], strict=False):
        equal = expanded("$1 IS NOT DISTINCT FROM $2", value, known)
        made = made.when(equal, result.copy())
    default = rest[-1:] if len(rest) % 2 else []
    for each in default:
        made = made.else_(each.copy())
    return typed(made, common(self.type(each) for each in (*rest[1::2], *default)))


# ---------------------------------------------------------------------- aggregates and lists


def count(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``count(*)``, ``count(x)``, ``count(DISTINCT x)``."""
    if len(given) > 1 or (isinstance(given[0], exp.Distinct) and len(given[0].expressions) > 1):
        raise self.refuse("count() of several columns", node, "count one")
    if isinstance(given[0], exp.Star) and any(given[0].args.values()):
        raise self.refuse("count(* …)", node)
    return exp.Count(this=given[0].copy())


def _within(node: exp.Expr) -> exp.WithinGroup | None:
    return node.parent if isinstance(node.parent, exp.WithinGroup) else None


def listagg(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``listagg(x, delimiter) WITHIN GROUP (ORDER BY y)``; the default delimiter is ''."""
    within = _within(node)
    delimiter = given[1].copy() if len(given) == 2 else exp.Literal.string("")
    if self.dialect == "trino" and within is None:
        raise self.refuse("listagg() without WITHIN GROUP", node)
    last: exp.Expr = delimiter
    if within is not None:
        last = exp.Order(
            this=delimiter, expressions=[e.copy() for e in within.expression.expressions]
        )
        within.replace(node)
    made = call("string_agg", given[0].copy(), last)
    return duckdb("coalesce($1, '')", made) if self.dialect == "snowflake" else made


def percentile(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)``, and PERCENTILE_DISC."""
    within = _within(node)
    if within is None or len(within.expression.expressions) != 1:
        raise self.refuse(f"{node.name.lower()}() without WITHIN GROUP", node)
    ordered = within.expression.expressions[0]
    if ordered.args.get("desc"):
        raise self.refuse(f"{node.name.lower()}() of a descending order", node)
    value = ordered.this.copy()
    within.replace(node)
    return call(node.name.lower().replace("percentile", "quantile"), value, given[0].copy())


def to_decimal(self: Translation, node: exp.Expr, given: Arguments) -> exp.Expr:
    """``TO_NUMBER(x, precision, scale)``."""
    sizes = ["38", "0"]
    for at, each in enumerate(given[1:]):
        if not isinstance(each, exp.Literal) or each.is_string:
            raise self.refuse(f"{node.name.lower()}() with a pattern", each)
        sizes[at] = each.name
    function = "TRY_CAST" if node.name.lower().startswith("try_") else "CAST"
    return expanded(f"{function}($1 AS DECIMAL({', '.join(sizes)}))", given[0])


# The builders by their names in the function tables.
BUILDERS: Final[dict[str, Builder]] = {
    "count": count,
    "date_format": _formatted(time_patterns.from_mysql),
    "date_parse": _parsed(time_patterns.from_mysql),
    "decode": decode,
    "format_datetime": _formatted(time_patterns.from_joda),
    "joined": joined,
    "json_extract_scalar": json_extract_scalar,
    "listagg": listagg,
    "parsed_date": parsed_date,
    "parsed_timestamp": _parsed(time_patterns.from_snowflake),
    "percentile": percentile,
    "regexp_replace": regexp_replace,
    "substr": substr,
    "to_char": to_char,
    "to_decimal": to_decimal,
}
