"""Text functions that depend on constant arguments: patterns, formats, positions."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import (
    DIALECT,
    Built,
    Typed,
    by_duckdb,
    constant_text,
    converted,
)
from icesql.query.dialects.spark.functions.letters import CASES
from icesql.query.dialects.spark.functions.patterns import java_pattern
from icesql.query.dialects.spark.operators import literal_number
from icesql.query.dialects.templates import chained, duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported
from icesql.user_pattern import UserPattern, read_pattern

_TEXTS: Final = t.array(t.STRING)
_SPECIAL: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
_FORMAT: Final = re.compile(
    r"%(?P<flags>[-0,+ #(]*)(?P<width>\d*)(?P<places>\.\d+)?(?P<kind>.)|[^%]+|%", re.DOTALL
)


def _substring(given: list[Typed], at: exp.Expr) -> Typed:
    start = literal_number(given[1].node)
    length = literal_number(given[2].node) if len(given) == 3 else "0"
    if start is not None and length is not None and int(start) > 0 and int(length) >= 0:
        gaps = ", ".join(f"${n + 1}" for n in range(len(given)))
        return by_duckdb(f"substring({gaps})", t.STRING, *given, exact=False)
    begin = "(CASE WHEN $2 > 0 THEN $2 - 1 WHEN $2 < 0 THEN length($1) + $2 ELSE 0 END)"
    if len(given) == 2:
        text = f"CASE WHEN $2 IS NOT NULL THEN substring($1, greatest({begin}, 0) + 1) END"
        return by_duckdb(text, t.STRING, *given)
    text = (
        "CASE WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL THEN NULL WHEN $3 <= 0 THEN '' "
        f"ELSE substring($1, greatest({begin}, 0) + 1, "
        f"greatest(CAST({begin} AS BIGINT) + $3 - greatest({begin}, 0), 0)) END"
    )
    return by_duckdb(text, t.STRING, *given)


def _left(given: list[Typed], at: exp.Expr) -> Typed:
    count = literal_number(given[1].node)
    if count is not None and int(count) > 0:
        return by_duckdb("left($1, $2)", t.STRING, *given, exact=False)
    text = "CASE WHEN $1 IS NULL THEN NULL WHEN $2 <= 0 THEN '' ELSE left($1, $2) END"
    return by_duckdb(text, t.STRING, *given)


def _concat_ws(given: list[Typed], at: exp.Expr) -> Typed:
    separator, *values = given
    lists = []
    for value in values:
        if value.type.kind == "array":
            lists.append(duckdb("coalesce($1, [])", converted(value, t.array(t.STRING), at)))
        else:
            lists.append(exp.Array(expressions=[converted(value, t.STRING, at)]))
    if not lists:
        return by_duckdb("CASE WHEN $1 IS NOT NULL THEN '' END", t.STRING, separator)
    text = (
        "CASE WHEN $1 IS NULL THEN NULL ELSE list_transform([list_filter($2, lambda x: x IS NOT NULL)]"
        ", lambda l: CASE WHEN len(l) = 0 THEN '' ELSE list_reduce(l, lambda x, y: x || $1 || y) END)[1]"
        " END"
    )
    whole = chained("list_concat($1, $2)", lists)
    return by_duckdb(text, t.STRING, separator, whole)


# ------------------------------------------------------------------ regular expressions


def _split(given: list[Typed], at: exp.Expr) -> Typed:
    if len(given) == 3 and literal_number(given[2].node) not in ("-1", "0"):
        raise unsupported(f"split() with a limit in {DIALECT}", at)
    pattern = constant_text(given[1], at, "a regular expression")
    plain = re.fullmatch(r"(?:\\([^A-Za-z0-9])|[^\\^$.|?*+()\[\]{}])+", pattern)
    if plain is not None:
        text = re.sub(r"\\(.)", r"\1", pattern)
        return by_duckdb("string_split($1, $2)", _TEXTS, given[0], text)
    found = java_pattern(given[1], at)
    if _read(pattern, at).shortest == 0 or "^" in pattern or "$" in pattern or "(" in pattern:
        raise unsupported(f"split() by '{pattern}' in {DIALECT}", at)
    return by_duckdb("string_split_regex($1, $2)", _TEXTS, given[0], found)


def _rlike(given: list[Typed], at: exp.Expr) -> Typed:
    pattern = java_pattern(given[1], at)
    return by_duckdb("regexp_matches($1, $2)", t.BOOLEAN, given[0], pattern, exact=False)


def _group(given: list[Typed], at: exp.Expr) -> str:
    group = literal_number(given[2].node) if len(given) == 3 else "1"
    if group is None or not 0 <= int(group) <= 9:
        raise unsupported(f"a group of a regular expression that is no constant in {DIALECT}", at)
    pattern = constant_text(given[1], at, "a regular expression")
    groups = _read(pattern, at).groups
    if int(group) > groups:
        raise unsupported(f"group {group} of '{pattern}', which has {groups}, in {DIALECT}", at)
    return group


def _read(pattern: str, at: exp.Expr) -> UserPattern:
    found = read_pattern(pattern)
    if found is None:
        raise unsupported(f"the regular expression '{pattern}' in {DIALECT}", at)
    return found


def _matching(value: Typed, at: exp.Expr, what: str) -> str:
    """A regular expression that never matches the empty text."""
    pattern = java_pattern(value, at)
    if _read(pattern, at).shortest == 0:
        raise unsupported(f"{what} '{pattern}', which matches nothing, in {DIALECT}", at)
    return pattern


def _regexp_extract(name: str, gives: SqlType) -> Built:
    def built(given: list[Typed], at: exp.Expr) -> Typed:
        text = f"{name}($1, $2, {_group(given, at)})"
        return by_duckdb(text, gives, given[0], java_pattern(given[1], at))

    return built


def _regexp_replace(given: list[Typed], at: exp.Expr) -> Typed:
    pattern = _matching(given[1], at, "replacing")
    text = constant_text(given[2], at, "a replacement")
    if re.search(r"\$\{|\$\d\d|\\(?![\\$])", text) or not re.fullmatch(
        r"(?s)(\\.|\$\d|[^\\$])*", text
    ):
        raise unsupported(f"the replacement '{text}' in {DIALECT}", at)
    # DuckDB writes a group as \1 and a dollar as it is.
    made = re.sub(
        r"(?s)\\.|\$", lambda found: {"$": "\\", r"\$": "$"}.get(found[0], found[0]), text
    )
    return by_duckdb("regexp_replace($1, $2, $3, 'g')", t.STRING, given[0], pattern, made)


def _regexp_count(given: list[Typed], at: exp.Expr) -> Typed:
    text = "CAST(len(regexp_extract_all($1, $2, 0)) AS INT)"
    return by_duckdb(text, t.INT, given[0], _matching(given[1], at, "counting"))


def _regexp_substr(given: list[Typed], at: exp.Expr) -> Typed:
    text = "CASE WHEN regexp_matches($1, $2) THEN regexp_extract($1, $2, 0) END"
    return by_duckdb(text, t.STRING, given[0], java_pattern(given[1], at))


# ------------------------------------------------------------------ formats


def _format_string(given: list[Typed], at: exp.Expr) -> Typed:
    template = constant_text(given[0], at, "a format")
    values = iter(given[1:])
    parts: list[exp.Expr] = []
    for found in _FORMAT.finditer(template):
        if found[0] == "%":
            raise unsupported(f"the format '{template}' in {DIALECT}", at)
        if found["kind"] is None or found[0] in ("%%", "%n"):
            parts.append(exp.Literal.string({"%%": "%", "%n": "\n"}.get(found[0], found[0])))
            continue
        value = next(values, None)
        if value is None:
            count = len(given) - 1
            raise unsupported(f"the format '{template}' of {count} values in {DIALECT}", at)
        parts.append(_formatted(found, value, template, at))
    return Typed(chained("$1 || $2", parts or [exp.Literal.string("")]), t.STRING)


def _formatted(found: re.Match[str], value: Typed, template: str, at: exp.Expr) -> exp.Expr:
    flags, width, places = found["flags"], found["width"], found["places"]
    kind = value.type.kind
    match found["kind"]:
        case "s" if not places and kind in (*t.SCALAR, "null"):
            text = converted(value, t.STRING, at) if kind != "null" else exp.Null()
        case "d" if not places and kind in t.INTEGRAL:
            text = duckdb("CAST($1 AS VARCHAR)", value.node)
        case "f" if kind in ("decimal", *t.FRACTIONAL):
            digits = int(places[1:]) if places else 6
            inner = "CAST($1 AS VARCHAR)" if kind in t.FRACTIONAL else "$1"
            text = duckdb(
                f"CASE WHEN isfinite(CAST($1 AS DOUBLE)) THEN CAST(CAST({inner} AS DECIMAL(38,{digits}))"
                " AS VARCHAR) WHEN $1 IS NOT NULL THEN error('a format of no finite number') END",
                value.node,
            )
        case "x" | "X" as case if not places and kind in ("int", "bigint"):
            whole = "$1"
            if kind == "int":  # a negative INT has eight hex digits
                whole = "CASE WHEN $1 < 0 THEN CAST($1 AS BIGINT) + 4294967296 ELSE $1 END"
            lowered = f"lower(hex({whole}))" if case == "x" else f"hex({whole})"
            text = duckdb(lowered, value.node)
        case _:
            raise unsupported(
                f"{found[0]} of {value.type} in the format '{template}' in {DIALECT}", at
            )
    # Java truncates the word "null", too.
    null = "null"[: int(places[1:])] if places else "null"
    text = duckdb(f"coalesce($1, '{null}')", text)
    if not width:
        if flags:
            raise unsupported(f"{found[0]} in the format '{template}' in {DIALECT}", at)
        return text
    if flags in ("", "-"):
        pad = "rpad" if flags else "lpad"
        return duckdb(
            f"CASE WHEN length($1) < {width} THEN {pad}($1, {width}, ' ') ELSE $1 END", text
        )
    if flags == "0" and found["kind"] in "dfxX":
        padded = (
            f"CASE WHEN length($1) >= {width} OR $1 = 'null' THEN lpad($1, CAST(greatest(length($1), {width}) AS INT), ' ') "
            f"WHEN starts_with($1, '-') THEN '-' || lpad($1[2:], {width} - 1, '0') "
            f"ELSE lpad($1, {width}, '0') END"
        )
        return duckdb(padded, text)
    raise unsupported(f"{found[0]} in the format '{template}' in {DIALECT}", at)


def _format_number(given: list[Typed], at: exp.Expr) -> Typed:
    value, places = given[0], literal_number(given[1].node)
    if places is None or not 0 <= int(places) <= 15 or value.type.kind not in t.NUMERIC:
        raise unsupported(f"format_number() of {value.type} so in {DIALECT}", at)
    if value.type.kind in t.FRACTIONAL:
        text = (
            f"CASE WHEN isfinite($1) THEN format('{{:,.{places}f}}', CAST($1 AS DOUBLE)) "
            "WHEN $1 IS NOT NULL THEN error('format_number() of no finite number') END"
        )
        return by_duckdb(text, t.STRING, value)
    if value.type.kind == "decimal" and value.type.scale > int(places):
        raise unsupported(f"format_number() of {value.type} to {places} places in {DIALECT}", at)
    zeros = "0" * int(places)
    if value.type.kind == "decimal":
        number = duckdb(f"CAST(CAST($1 AS DECIMAL(38,{places})) AS VARCHAR)", value.node)
    else:
        number = duckdb(f"CAST($1 AS VARCHAR) || '{'.' + zeros if zeros else ''}'", value.node)
    text = (
        "regexp_replace(reverse(regexp_replace(reverse(split_part($1, '.', 1)), '([0-9]{3})', '\\1,', 'g'))"
        ", '^(-?),', '\\1')"
    )
    if zeros:
        text += " || '.' || split_part($1, '.', 2)"
    return by_duckdb(text, t.STRING, number)


def _str_to_map(given: list[Typed], at: exp.Expr) -> Typed:
    marks = [",", ":"]
    for index, each in enumerate(given[1:]):
        marks[index] = constant_text(each, at, "a delimiter")
    if any(_SPECIAL.search(mark) or not mark for mark in marks):
        raise unsupported(f"str_to_map() with these delimiters in {DIALECT}", at)
    text = (
        "map_from_entries(list_transform(string_split($1, $2), lambda each: "
        "{'key': CASE WHEN contains(each, $3) THEN split_part(each, $3, 1) ELSE each END, "
        "'value': CASE WHEN contains(each, $3) THEN substring(each, instr(each, $3) + length($3)) END}))"
    )
    return by_duckdb(text, t.map_of(t.STRING, t.STRING), given[0], *marks)


def _cased(text: str) -> Built:
    return lambda given, at: by_duckdb(text, t.STRING, *given)


BUILT: Final[dict[str, Built]] = {
    **{name: _cased(text) for name, text in CASES.items()},
    "substring": _substring,
    "left": _left,
    "concat_ws": _concat_ws,
    "split": _split,
    "rlike": _rlike,
    "regexp_extract": _regexp_extract("regexp_extract", t.STRING),
    "regexp_extract_all": _regexp_extract("regexp_extract_all", _TEXTS),
    "regexp_replace": _regexp_replace,
    "regexp_count": _regexp_count,
    "regexp_substr": _regexp_substr,
    "format_string": _format_string,
    "format_number": _format_number,
    "str_to_map": _str_to_map,
}
