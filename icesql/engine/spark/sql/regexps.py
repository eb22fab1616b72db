"""Translate regular expressions of RE2, which the local engine uses, into Java's."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql.kinds import (
    literal_integer,
    literal_text,
    refuse,
    refuse_rows,
    spelled,
    string,
)
from icesql.user_pattern import read_pattern

_CLASSES: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z",
    "space": "\\t\\n\\x0B\\f\\r ", "blank": "\\t ", "xdigit": "0-9A-Fa-f", "word": "0-9A-Za-z_",
    "punct": "!-/:-@\\[-`{-~", "cntrl": "\\x00-\\x1F\\x7F", "print": " -~", "graph": "!-~",
    "ascii": "\\x00-\\x7F",
}  # fmt: skip
_WORD: Final = "[0-9A-Za-z_]"
_BOUNDARY: Final = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
_SPACE: Final = {"s": "\\t\\n\\f\\r ", "S": "^\\t\\n\\f\\r "}
# Escapes with the same meaning in both.
_SAME: Final = frozenset("dDwWtnfraAz0123456789x")


def java_pattern(pattern: str) -> str:
    """The pattern in Java's syntax. Raises UnsupportedSqlError for syntax that may differ there.

    Only a newline ends a line, ``$`` matches only at the end of the text, ``\\s`` and ``\\b`` are
    ASCII.
    """
    made, at = ["(?d)"], 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            text, at = _escaped(pattern, at)
        elif letter == "[":
            text, at = _bracket(pattern, at)
        elif letter == "(" and pattern.startswith("(?", at):
            text, at = _group(pattern, at)
        else:
            text, at = ("\\z" if letter == "$" else letter), at + 1
        made.append(text)
    return "".join(made)


def _escaped(pattern: str, at: int) -> tuple[str, int]:
    letter = pattern[at + 1 : at + 2]
    if letter in _BOUNDARY:
        return _BOUNDARY[letter], at + 2
    if letter in _SPACE:
        return f"[{_SPACE[letter]}]", at + 2
    if not letter or (letter.isalnum() and letter not in _SAME):
        raise refuse(f"\\{letter} in a regular expression")
    return pattern[at : at + 2], at + 2


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    made, at = ["["], at + 1
    if pattern.startswith("^", at):
        made, at = ["[^"], at + 1
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        if pattern.startswith("[:", at):
            name, _, rest = pattern[at + 2 :].partition(":]")
            if name not in _CLASSES:
                raise refuse(f"[:{name}:] in a regular expression")
            made.append(_CLASSES[name])
            at = len(pattern) - len(rest)
        elif pattern[at] == "\\":
            letter = pattern[at + 1 : at + 2]
            if letter == "s":
                made.append(_SPACE["s"])
            elif letter.isalnum() and letter not in _SAME:
                raise refuse(f"\\{letter} in a regular expression")
            else:
                made.append(pattern[at : at + 2])
            at += 2
        else:
            # In Java, [ opens a nested class, && intersects two, and # may begin a comment.
            made.append("\\" + pattern[at] if pattern[at] in "[]&#^" else pattern[at])
            at += 1
    return "".join(made) + "]", at + 1


def _group(pattern: str, at: int) -> tuple[str, int]:
    end = at + 2
    while end < len(pattern) and (pattern[end].isalpha() or pattern[end] == "-"):
        end += 1
    flags, closing = pattern[at + 2 : end], pattern[end : end + 1]
    if closing in (":", ")") and set(flags) <= set("is-") and "-" not in flags:
        # i ignores the case of all letters in RE2, only of ASCII letters in Java.
        return "(?" + flags.replace("i", "iu") + closing, end + 1
    raise refuse(f"{pattern[at : end + 1]} in a regular expression")


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
    new = string(_java_replacement(replacement))
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


def _java_replacement(text: str) -> str:
    made, at = "", 0
    while at < len(text):
        following = text[at + 1 : at + 2]
        if text[at] == "\\" and following.isdigit():
            # A group's number has a single digit.
            made, at = made + f"${following}", at + 2
            if text[at : at + 1].isdigit():
                raise refuse("a digit after a group in regexp_replace()")
        elif text[at] == "\\" and following == "\\":
            made, at = made + "\\\\", at + 2
        elif text[at] == "\\":
            raise refuse("a single backslash in the replacement of regexp_replace()")
        else:
            made, at = made + ("\\$" if text[at] == "$" else text[at]), at + 1
    return made


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
