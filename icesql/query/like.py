"""SQL's LIKE for names: ``%`` matches any text, ``_`` any character, others themselves."""

from __future__ import annotations


def is_like(text: str, pattern: str) -> bool:
    """Whether ``text LIKE pattern``. The time is at most the product of their lengths.

    >>> is_like("orders", "ord%"), is_like("orders", "[o]rders"), is_like("a", "_%_")
    (True, False, False)
    """
    at = place = 0
    # The position of the last %, and the end of the text it has matched so far.
    any_text, taken = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            any_text, taken = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at += 1
            place += 1
        elif any_text >= 0:
            taken += 1
            at, place = taken, any_text + 1
        else:
            return False
    return all(each == "%" for each in pattern[place:])
