"""The first characters that a pattern, or the same text in another case, demands."""

from __future__ import annotations

from itertools import product
from typing import Final

from icesql.query.pushdown.computed.expression import FALSE, Expression, call, conjunction, string

# The other characters whose lower() or upper() is an ASCII letter: dotted capital I, Kelvin sign,
# dotless i, long s. A test asks the engine for all there are.
TO_LOWER: Final = {"i": "\u0130", "k": "\u212a"}
TO_UPPER: Final = {"I": "\u0131", "S": "\u017f"}
_MOST_TEXTS: Final = 16
_PLAIN: Final = frozenset(" !\"#%&',-/:;<=>@_`~")


def folded_prefixes(way: str, inner: Expression, text: str, *, whole: bool) -> Expression | None:
    """Prefixes of texts whose lower() or upper() is ``text``, or begins with it.

    ``whole``: is ``text``, not only begins with it. ``way`` "ilike" is case that does not matter.
    None where nothing follows.
    """
    choices: list[str] = []
    count = 1
    for character in text:
        others = _others(way, character)
        if others == "":
            return FALSE  # such as an upper case letter that lower() never gives
        if others is None or count * len(others) > _MOST_TEXTS:
            break
        count *= len(others)
        choices.append(others)
    if not choices:
        return None
    exact = whole and len(choices) == len(text)
    found = ["".join(each) for each in product(*choices)]
    name = "=" if exact else "starts_with"
    return conjunction("or", [call(name, inner, string(each)) for each in found])


def _others(way: str, character: str) -> str | None:
    """The characters that become this one; None if that is not known, "" if there are none."""
    if not character.isascii():
        return None
    if not character.isalpha():
        return character
    low, high = character.lower(), character.upper()
    if way == "upper":
        return low + high + TO_UPPER.get(high, "") if character == high else ""
    if way == "ilike" or character == low:
        return low + high + TO_LOWER.get(low, "")
    return ""


def ilike_prefix(pattern: str) -> tuple[str, bool]:
    """The text before the first wildcard, and whether there is none."""
    end = min((at for at in map(pattern.find, "%_") if at >= 0), default=len(pattern))
    return pattern[:end], end == len(pattern)


def glob_prefix(pattern: str) -> str:
    """The text before the first special character of a GLOB pattern."""
    end = min((at for at in map(pattern.find, "*?[\\") if at >= 0), default=len(pattern))
    return pattern[:end]


def regex_prefix(pattern: str, *, anchored: bool) -> str:
    """The plain characters that every match of a regular expression begins with.

    ``anchored``: it matches whole texts; else it has to begin with ``^``. Patterns with ``|`` have
    none: where alternatives end is not looked into.

    >>> regex_prefix("^abc+d*e", anchored=False), regex_prefix("abc", anchored=False)
    ('abc', '')
    """
    if not pattern.startswith("^") and not anchored:
        return ""
    rest = pattern.removeprefix("^")
    if "|" in pattern:
        return ""
    prefix = ""
    for at, character in enumerate(rest):
        if not character.isascii() or not (character.isalnum() or character in _PLAIN):
            break
        if rest[at + 1 : at + 2] in ("*", "?", "{"):
            break
        prefix += character
    return prefix
