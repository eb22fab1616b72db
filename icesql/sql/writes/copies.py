"""Recognize COPY statements that load rows into a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.sql.lexer import TEXT, Token

_DECIDING: Final = ("TO", "SELECT", "FROM")


def is_copy_from(tokens: Sequence[Token]) -> bool:
    """True for the tokens of COPY table … FROM 'file'."""
    place = next((n for n, each in enumerate(tokens) if n and each.word in _DECIDING), 0)
    if tokens[place].word != "FROM" or tokens[1].word in ("(", "INTO"):
        return False
    return [each.kind for each in tokens[place + 1 : place + 2]] == [TEXT]
