"""Recognize COPY statements that load rows into a table."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import TEXT, Token


def is_copy_from(tokens: Sequence[Token]) -> bool:
    """True for the tokens of COPY table … FROM 'file'."""
    words = TokenCursor(tokens, "")
    words.index = 1
    if words.peek() in ("(", "INTO"):
        return False
    for place in range(1, len(tokens)):
        words.index = place
        if words.peek() in ("TO", "SELECT"):
            return False
        if words.peek() == "FROM":
            return [each.kind for each in tokens[place + 1 : place + 2]] == [TEXT]
    return False
