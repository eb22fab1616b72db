"""A query in the place of a version or a time: ``TIMESTAMP AS OF (SELECT max(…) FROM …)``.

Only its text is kept: a session asks it before the statement is bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.sql.lexer import Token, closing
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.show_statements.in_from import PREFIX
from icesql.sql.trees import exp

_OPENINGS: Final = ("SELECT", "WITH", "FROM", "VALUES")
# Where a query is noted in the node that stands for it.
QUERY: Final = "query"


def query_at(tokens: Sequence[Token], sql: str, first: int) -> tuple[exp.Expr, int] | None:
    """The node of the query in brackets that begins at ``first``, and its end.

    None where no query stands. Raises UnsupportedSqlError for one with parameters.
    """
    if tokens[first].word != "(" or first + 1 >= len(tokens):
        return None
    opening = tokens[first + 1]
    if opening.word not in _OPENINGS:
        return None
    end = closing(tokens, first)
    if end == len(tokens):
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
    if token.word in ("?", "$"):
        hint = "write the value into the query"
        raise unsupported("a parameter in a query that chooses a snapshot", token, hint)
    if token.text.startswith(PREFIX):
        hint = "use the metadata table: t.snapshots, t.history or t.refs"
        raise unsupported("SHOW in a query that chooses a snapshot", token, hint)
