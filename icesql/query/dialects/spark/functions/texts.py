"""Text functions that depend on constant arguments: patterns, formats, positions, letters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

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
)
from icesql.query.dialects.spark.operators import literal_number
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported
from icesql.user_pattern import UserPattern, read_pattern

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions


# ------------------------------------------------------------------ LIKE and regular expressions
# Patterns that RE2 and Java read differently are refused.


# Syntax that Java and RE2 read differently: look-around, references, possessive and atomic groups,
# nested character classes, quotes, anchors and boundaries, Unicode scripts, named groups.
_JAVA_ONLY: Final = re.compile(
    r"\(\?(?![:imsU-]|P<)|\\[1-9kQEGRXZzbBhHvVNuxec0pP]|[*+?}]\+|\[[^\]]*(\[|&&)"
)
_MODES: Final = re.compile(r"\(\?[a-zA-Z-]*[^imsa-zA-Z:)-]")


def like(self: Expressions, node: exp.Expr) -> Typed:
    """Translate LIKE and ILIKE, also with ESCAPE, ANY and ALL."""
    escape = "\\"
    whole = node
    if isinstance(node, exp.Escape):
        if not isinstance(node.expression, exp.Literal) or len(node.expression.name) != 1:
            raise unsupported(f"an ESCAPE that is not one character in {DIALECT}", node)
        escape, node = node.expression.name, node.this
    if not isinstance(node, exp.Like | exp.ILike):
        raise unsupported(f"ESCAPE here in {DIALECT}", whole)
    value = self.of(node.this)
    subject = converted(value, t.STRING, node)
    word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
    pattern, negated = node.expression, bool(node.args.get("negate"))
    if not isinstance(pattern, exp.Any | exp.All):
        made = _one(self, subject, pattern, word, escape)
        return Typed(exp.Not(this=made) if negated else made, t.BOOLEAN)
    inner = pattern.this
    listed = inner.expressions if isinstance(inner, exp.Tuple) else [inner.unnest()]
    if not listed or isinstance(listed[0], exp.Query):
        raise unsupported(f"{word} ANY or ALL without a list in {DIALECT}", node)
    parts = [_one(self, subject.copy(), each, word, escape) for each in listed]
    if negated:
        parts = [exp.Not(this=each) for each in parts]
    join = exp.or_ if isinstance(pattern, exp.Any) else exp.and_
    return Typed(exp.Paren(this=join(*parts, copy=False)), t.BOOLEAN)


def _one(
    self: Expressions, subject: exp.Expr, pattern: exp.Expr, word: str, escape: str
) -> exp.Expr:
    text = pattern.name if pattern.is_string else None
    own = re.escape(escape)
    # In Spark an escape before any other character raises an error.
    regular = f"(?s)([^{own}]|{own}[_%{own}])*"
    if text is not None and not re.fullmatch(regular, text):
        raise unsupported(f"a LIKE pattern with a stray {escape} in {DIALECT}", pattern)
    found = converted(self.of(pattern), t.STRING, pattern)
    if text is not None and escape not in text:
        return duckdb(f"$1 {word} $2", subject, found, exact=False)
    quoted = escape.replace("'", "''")
    made = duckdb(f"$1 {word} $2 ESCAPE '{quoted}'", subject, found)
    if text is not None:
        return made
    return duckdb(
        "CASE WHEN NOT regexp_full_match($1, $2) "
        "THEN error('a LIKE pattern with a stray escape') ELSE $3 END",
        found.copy(),
        regular,
        made,
    )


def java_pattern(value: Typed, at: exp.Expr) -> str:
    """A regular expression with one meaning in both. Raises UnsupportedSqlError at ``at``."""
    if not value.node.is_string:
        raise unsupported(f"a regular expression that is not a constant text in {DIALECT}", at)
    text = value.node.name
    if _JAVA_ONLY.search(text) or _MODES.search(text):
        raise unsupported(
            f"the regular expression '{text}' in {DIALECT}", at, "RE2 has no such part"
        )
    # In Java "$" also matches before a final line break.
    return text


# ------------------------------------------------------------------ letters
# By Unicode's SpecialCasing one letter may become several; DuckDB maps letter by letter. Most texts
# have none of these letters and only need DuckDB's mapping.


# Letters whose upper case has several letters; letters whose title case is not the upper case.
_LONGER: Final = (
    "ßŉǰΐΰև\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6\u1fb7\u1fbc"
    "\u1fc2-\u1fc4\u1fc6\u1fc7\u1fcc\u1fd2\u1fd3\u1fd6\u1fd7\u1fe2-\u1fe4\u1fe6\u1fe7"
    "\u1ff2-\u1ff4\u1ff6\u1ff7\u1ffc\ufb00-\ufb06\ufb13-\ufb17"
)
_TITLED: Final = _LONGER + "\u01c4-\u01cc\u01f1-\u01f3\u10d0-\u10fa\u10fd-\u10ff"
# The final sigma of a word: after a letter and not before one, ignoring marks and apostrophes.
_LETTER: Final = r"\p{Lu}\p{Ll}\p{Lt}ªº"
_BETWEEN: Final = r"\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}:.·’‘․﹒＇．…"
_SIGMA: Final = rf"([{_LETTER}][{_BETWEEN}'']*)Σ([{_BETWEEN}'']*)($|[^{_LETTER}{_BETWEEN}''])"
_LOWER: Final = (
    "CASE WHEN regexp_matches($1, '[İΣ]') THEN lower(regexp_replace(replace($1, 'İ', 'i\u0307'), "
    f"'{_SIGMA}', '\\1ς\\2\\3', 'g')) ELSE lower($1) END"
)


def _pairs(pattern: str, mapped: Callable[[str], str]) -> str:
    """The entries of a MAP from each letter in a character class of a regular expression."""
    letters = re.sub(
        "(.)-(.)", lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), pattern
    )
    return ", ".join(f"'{each}': '{mapped(each)}'" for each in letters)


_UPPER: Final = (
    f"CASE WHEN regexp_matches($1, '[{_LONGER}]') THEN array_to_string(list_transform("
    f"string_split($1, ''), lambda own_letter: coalesce(MAP {{{_pairs(_LONGER, str.upper)}}}[own_letter], "
    "upper(own_letter))), '') ELSE upper($1) END"
)
_FIRST: Final = (
    f"CASE WHEN regexp_matches(own_word, '^[{_TITLED}]') "
    f"THEN MAP {{{_pairs(_TITLED, str.title)}}}[own_word[1:1]] ELSE upper(own_word[1:1]) END"
)
_REST: Final = (
    f"({_LOWER.replace('$1', 'own_word')})"
    "[length(lower(own_word[1:1])) + CAST(starts_with(own_word, 'İ') AS INT) + 1:]"
)
# Words are separated by spaces.
_INITCAP: Final = (
    "array_to_string(list_transform(string_split($1, ' '), "
    f"lambda own_word: {_FIRST} || {_REST}), ' ')"
)
CASES: Final = {"upper": _UPPER, "lower": _LOWER, "initcap": _INITCAP}


# ------------------------------------------------------------------ texts


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
