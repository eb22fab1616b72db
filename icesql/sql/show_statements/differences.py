"""``DIFF t BETWEEN a AND b`` and ``BLAME t WHERE …``: queries, alone and in brackets.

Each is read as ``FROM t`` with a clause for the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import WORD, Token, Tokens, is_name
from icesql.sql.positions import syntax_error

COMPARED: Final = ("DIFF", "BLAME")
_BEFORE_QUERY: Final = ("FROM", "JOIN", ",", "(", "AS")


def compared_at(tokens: Tokens) -> list[int]:
    """Return the indexes at which DIFF and BLAME begin a query."""
    found = []
    for index, token in enumerate(tokens[:-1]):
        if token.word not in COMPARED:
            continue
        in_brackets = (
            index > 1 and tokens[index - 1].word == "(" and tokens[index - 2].word in _BEFORE_QUERY
        )
        place = end_of_name(tokens, index + 1)
        compares = [each.word for each in tokens[place : place + 1]] == ["BETWEEN"]
        is_query = place > index + 1 and (compares or token.word == "BLAME")
        if (index == 0 or in_brackets) and is_query:
            found.append(index)
    return found


def is_summary(tokens: Tokens, index: int) -> bool:
    """True if ``DIFF SUMMARY t`` begins at ``index``, not DIFF of a table named summary."""
    words = [each.word for each in tokens[index : index + 3]]
    return words[:2] == ["DIFF", "SUMMARY"] and words[2:] != ["BETWEEN"]


def check_compared(tokens: Tokens) -> None:
    """Raise SqlSyntaxError for tokens that start with DIFF or BLAME but are not such a query."""
    words, word, place = TokenCursor(tokens, ""), tokens[0].word, end_of_name(tokens, 1)
    if place == 1:
        raise syntax_error(f"{word} takes a table", words.offset(1), ("a table",))
    if word == "DIFF" and words.word(place) != "BETWEEN":
        what = "DIFF t BETWEEN a AND b compares two states"
        raise syntax_error(what, words.offset(place), ("BETWEEN",))


def end_of_name(tokens: Tokens, index: int) -> int:
    """Return the end of the table's name, or of a call with its path, that begins at ``index``."""
    if index >= len(tokens) or not is_name(tokens[index]):
        return index
    if tokens[index].text.lower() == "iceberg_scan":
        kinds = [each.word for each in tokens[index:]]
        return index + kinds.index(")") + 1 if ")" in kinds else index
    index += 1
    while index + 1 < len(tokens) and tokens[index].word == ".":
        index += 2
    return index


def read_as_from(tokens: Tokens, places: Sequence[int]) -> list[Token]:
    """Return the tokens with FROM inserted before each DIFF and BLAME, at the same offset."""
    made: list[Token] = []
    for index, token in enumerate(tokens):
        if index in places:
            made.append(Token(WORD, "FROM", token.start, token.start + 4, "FROM"))
        made.append(token)
    return made
