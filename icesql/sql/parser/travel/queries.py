"""A query in the place of a version or a time: ``TIMESTAMP AS OF (SELECT max(…) FROM …)``.

Only its text is kept: a session asks it before the statement is bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.show_statements.in_from import PREFIX

_OPENINGS: Final = ("SELECT", "WITH", "FROM", "VALUES")
# Where a query is noted in the node that stands for it.
QUERY: Final = "query"


def query_at(tokens: Sequence[Token], sql: str, first: int) -> tuple[exp.Expr, int] | None:
    """What stands for the query in brackets that begins at ``first``, and where it ends.

    None where no query stands. Raises UnsupportedSqlError for one with parameters.
    """
    if tokens[first].token_type != TokenType.L_PAREN or first + 1 >= len(tokens):
        return None
    opening = tokens[first + 1]
    if opening.text.upper() not in _OPENINGS or opening.token_type == TokenType.IDENTIFIER:
        return None
    depth, end = 0, first
    for end in range(first, len(tokens)):
        kind = tokens[end].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            break
    if depth:
        raise syntax_error("unterminated query", tokens[first], (")",))
    for index in range(first + 1, end):
        _check(tokens, index)
    start, stop = opening.start, tokens[end].start
    node = exp.Null()
    # Blanks before it, so that errors in it know their places.
    before = "".join(each if each == "\n" else " " for each in sql[:start])
    node.meta[QUERY] = (before + sql[start:stop], sql[start:stop].strip())
    return node, end + 1


def _check(tokens: Sequence[Token], index: int) -> None:
    token = tokens[index]
    if token.token_type in (TokenType.PLACEHOLDER, TokenType.PARAMETER):
        hint = "write the value into the query"
        raise unsupported("a parameter in a query that chooses a snapshot", token, hint)
    if token.text.startswith(PREFIX):
        hint = "use the metadata table: t.snapshots, t.history or t.refs"
        raise unsupported("SHOW in a query that chooses a snapshot", token, hint)
