"""The prefixes that texts need to match a pattern, or to equal a text in another case."""

from __future__ import annotations

from itertools import product
from typing import Final

from icesql.query.pushdown.computed.expression import FALSE, Expression, call, conjunction, string

# Characters other than letters of ASCII whose lower() or upper() is one: dotted capital I, Kelvin
# sign, dotless i, long s. A test compares this list with the engine.
TO_LOWER: Final = {"i": "\u0130", "k": "\u212a"}
TO_UPPER: Final = {"I": "\u0131", "S": "\u017f"}
# The special characters of LIKE and of GLOB.
WILDCARDS: Final = "%_"
GLOB: Final = "*?[\\"
_MOST_TEXTS: Final = 16
_PLAIN: Final = frozenset(" !\"#%&',-/:;<=>@_`~")


def folded_prefixes(way: str, inner: Expression, text: str, *, whole: bool) -> Expression | None:
    """A condition on the prefixes of texts whose lower() or upper() is ``text`` or starts with it.

    ``whole``: equals ``text``, not only starts with it. ``way`` "ilike" ignores case.
    None if nothing is implied.
    """
    choices: list[str] = []
    count = 1
    for character in text:
        others = _others(way, character)
        if others == "":
            return FALSE  # such as an upper case letter, which lower() never returns
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
    """The characters that map to this one; None if that is not known, "" if there are none."""
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


def before_any(pattern: str, special: str) -> str:
    """The text before the first of these special characters of a pattern."""
    end = min((at for at in map(pattern.find, special) if at >= 0), default=len(pattern))
    return pattern[:end]


def regex_prefix(pattern: str, *, anchored: bool) -> str:
    """The literal prefix of every match of a regular expression.

    ``anchored``: it matches whole texts; else it has to start with ``^``. Patterns with ``|`` have
    no prefix, because the ends of alternatives are not parsed.

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
