"""Translate regular expressions of RE2, which the local engine uses, into Java's."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql.kinds import (
    literal_integer,
    literal_text,
    refuse,
    refuse_rows,
    rows,
    spelled,
    string,
)
from icesql.user_pattern import read_pattern

_WORD: Final = "[0-9A-Za-z_]"
_BOUNDARY: Final = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
_SPACE: Final = {"s": "\\t\\n\\f\\r ", "S": "^\\t\\n\\f\\r "}
# Escapes with the same meaning in both.
_SAME: Final = frozenset("dDwWtnfraAz0123456789x")


# An escape, a class in brackets, the head of a group, or a letter; and the members of a class.
_PART: Final = re.compile(
    r"\\.?|\[(?P<negation>\^?)(?P<members>\]?(?:\[:.*?(?::\]|\Z)|\\.?|[^\]\\])*)\]?"
    r"|\(\?(?:[^\W\d_]|-)*.?|.",
    re.DOTALL,
)
_MEMBER: Final = re.compile(r"\[:(.*?)(?::\]|\Z)|\\(.?)|.", re.DOTALL)
_GROUP: Final = re.compile(r"\(\?[is]*[:)]")
_REFERENCE: Final = re.compile(r"\\(?:\d\d?|\\)?|\$")


def java_pattern(pattern: str) -> str:
    """The pattern in Java's syntax. Raises UnsupportedSqlError for syntax that may differ there.

    Only a newline ends a line, ``$`` matches only at the end of the text, ``\\s`` and ``\\b`` are
    ASCII.
    """
    return "(?d)" + _PART.sub(_java_part, pattern)


def _java_part(part: re.Match[str]) -> str:
    text = part[0]
    match text[0]:
        case "\\" if text[1:] in _BOUNDARY:
            return _BOUNDARY[text[1:]]
        case "\\" if text[1:] in _SPACE:
            return f"[{_SPACE[text[1:]]}]"
        case "\\":
            return _escaped(text[1:])
        case "[":
            return f"[{part['negation']}{_MEMBER.sub(_java_member, part['members'])}]"
        case "(" if _GROUP.fullmatch(text):
            # i ignores the case of all letters in RE2, only of ASCII letters in Java.
            return text.replace("i", "iu")
        case "(" if text != "(":
            raise refuse(f"{text} in a regular expression")
    return "\\z" if text == "$" else text


def _escaped(letter: str) -> str:
    if not letter or (letter.isalnum() and letter not in _SAME):
        raise refuse(f"\\{letter} in a regular expression")
    return f"\\{letter}"


def _java_member(part: re.Match[str]) -> str:
    name, letter = part.groups()
    if name is not None:
        if name not in rows("classes"):
            raise refuse(f"[:{name}:] in a regular expression")
        return rows("classes")[name][0][0]
    if letter is not None:
        return _SPACE["s"] if letter == "s" else _escaped(letter)
    # In Java, [ opens a nested class, && intersects two, and # may begin a comment.
    return f"\\{part[0]}" if part[0] in "[]&#^" else part[0]


def _pattern(node: exp.Expr) -> exp.Expr:
    text = literal_text(node)
    if text is None:
        raise refuse("a computed regular expression")
    return string(java_pattern(text))


def replaced(node: exp.RegexpReplace) -> exp.Expr:
    """regexp_replace(): the first match, or all matches with the option g."""
    replacement = literal_text(node.args.get("replacement"))
    flags = literal_text(node.args.get("modifiers")) or ""
    if replacement is None or set(flags) - {"g"}:
        raise refuse("regexp_replace() with options or a computed replacement")
    new = string(_REFERENCE.sub(_java_reference, replacement))
    pattern = _pattern(node.expression)
    if "g" in flags or not node.args.get("single_replace", True):
        if _may_be_empty(literal_text(node.expression) or ""):
            # Java finds an empty match inside a character beyond 16 bits.
            refusal = refuse_rows("regexp_replace() of nothing in text beyond 16 bits")
            return spelled(
                "IF({0} RLIKE {3}, {4}, REGEXP_REPLACE({0}, {1}, {2}))",
                node.this,
                pattern,
                new,
                string(r"[\x{10000}-\x{10FFFF}]"),
                refusal,
                like=node,
            )
        return spelled("REGEXP_REPLACE({0}, {1}, {2})", node.this, pattern, new, like=node)
    # Replace inside the first match, and keep the texts before and after it.
    return spelled(
        "(CASE WHEN REGEXP_INSTR({0}, {1}) = 0 THEN {0} ELSE CONCAT("
        "SUBSTR({0}, 1, REGEXP_INSTR({0}, {1}) - 1),"
        " REGEXP_REPLACE(REGEXP_EXTRACT({0}, {1}, 0), {1}, {2}),"
        " SUBSTR({0}, REGEXP_INSTR({0}, {1}) + LENGTH(REGEXP_EXTRACT({0}, {1}, 0)))) END)",
        node.this,
        pattern,
        new,
        like=node,
    )


def _may_be_empty(pattern: str) -> bool:
    found = read_pattern(pattern)
    return found is None or found.shortest == 0


def _java_reference(found: re.Match[str]) -> str:
    """A group, a backslash or a dollar of a replacement in Java's syntax."""
    match found[0]:
        case "$":
            return "\\$"
        case "\\\\" as both:
            return both
        case "\\":
            raise refuse("a single backslash in the replacement of regexp_replace()")
        case group if len(group) == 2:
            return f"${group[1]}"
    # A group's number has a single digit.
    raise refuse("a digit after a group in regexp_replace()")


def extracted(node: exp.RegexpExtract) -> exp.Expr:
    """regexp_extract(): the whole match, or a group by its number."""
    group = node.args.get("group")
    number = 0 if group is None else literal_integer(group)
    if number is None or node.args.get("parameters") or node.args.get("occurrence"):
        raise refuse("regexp_extract() with options or group names")
    pattern = _pattern(node.expression)
    return spelled(f"REGEXP_EXTRACT({{0}}, {{1}}, {number})", node.this, pattern, like=node)


def matched(node: exp.RegexpLike) -> exp.Expr:
    """regexp_matches(): a match anywhere in the text."""
    if node.args.get("flag"):
        raise refuse("regexp_matches() with options")
    return spelled("({0} RLIKE {1})", node.this, _pattern(node.expression), like="BOOLEAN")


def fully_matched(node: exp.RegexpFullMatch) -> exp.Expr:
    """regexp_full_match(): a match of the whole text."""
    text = literal_text(node.expression)
    if text is None or node.args.get("options"):
        raise refuse("regexp_full_match() with options or a computed pattern")
    pattern = string(f"\\A(?:{java_pattern(text)})\\z")
    return spelled("({0} RLIKE {1})", node.this, pattern, like="BOOLEAN")
