"""Upper and lower case by Unicode's SpecialCasing: one letter may become several.

DuckDB maps letter by letter. Most texts have none of these letters and only need DuckDB's mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

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
