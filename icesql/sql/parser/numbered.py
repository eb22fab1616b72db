"""Tokens of a text with numbered parameters close together: ``f($1,$2)``.

sqlglot takes ``$1,$`` for the beginning of a dollar-quoted text, whose tag in SQL begins with a
letter. With a space after the number it does not; places are counted as if there was none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token

# Quoted texts, names and comments as they are, and parameters that look like tags.
_PIECES: Final = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"""|(?<!\w)(?P<tag>\$(?:[A-Za-z_]\w*)?\$)(?:.*?(?P=tag)|.*)|(?P<number>\$\d+)(?=[^\s$]+\$)""",
    re.DOTALL,
)


def tokenize_apart(sql: str, dialect: Dialect) -> list[Token]:
    """The tokens of ``sql``. Raises sqlglot's TokenError."""
    pieces: list[str] = []
    added: list[int] = []  # the places of the spaces in the text with them
    last = 0
    for found in _PIECES.finditer(sql):
        if found["number"]:
            pieces += [sql[last : found.end()], " "]
            added.append(found.end() + len(added))
            last = found.end()
    tokens = dialect.tokenize("".join([*pieces, sql[last:]]))
    return [
        Token(
            each.token_type,
            each.text,
            each.line,
            each.col,
            each.start - bisect_left(added, each.start),
            each.end - bisect_left(added, each.end),
            each.comments,
        )
        for each in tokens
    ]
