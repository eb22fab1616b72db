"""``WITH … VALUES (…)``, which sqlglot reads as ``WITH … SELECT * FROM VALUES (…)`` alone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

_OPENING = (
    (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"),
)  # fmt: skip


_QUERIES = (TokenType.SELECT, TokenType.FROM, TokenType.VALUES)


def select_from_values(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens with ``SELECT * FROM`` before each VALUES that is the query of a WITH."""
    if all(token.token_type != TokenType.WITH for token in tokens):
        return tokens
    made: list[Token] = []
    depth, open_at = 0, list[int]()
    for token in tokens:
        kind = token.token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        while open_at and open_at[-1] > depth:
            open_at.pop()
        if kind == TokenType.WITH:
            open_at.append(depth)
        elif open_at and open_at[-1] == depth and kind in _QUERIES:
            open_at.pop()
            if kind == TokenType.VALUES and made[-1].token_type == TokenType.R_PAREN:
                line, col, at = token.line, token.col, token.start
                made += [Token(each, text, line, col, at, at) for each, text in _OPENING]
        made.append(token)
    return made
