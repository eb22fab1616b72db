"""The parts of a table's name that comes alone, outside of a statement."""

from __future__ import annotations

from sqlglot.tokens import TokenType

from icesql.errors import SqlSyntaxError
from icesql.sql.parser.dialect import reading, tokenize


def name_parts(name: str) -> tuple[str, ...]:
    """``a.b`` and ``"a"."b c"`` in parts; what SQL would not take for a name is split at its dots.

    >>> name_parts('sales."big orders"'), name_parts("sales.2024-orders")
    (('sales', 'big orders'), ('sales', '2024-orders'))
    """
    if '"' in name:
        try:
            tokens = tokenize(name, reading(None))
        except SqlSyntaxError:
            tokens = []
        names, dots = tokens[::2], tokens[1::2]
        if (
            len(names) == len(dots) + 1
            and all(token.token_type == TokenType.DOT for token in dots)
            and all(token.token_type in (TokenType.IDENTIFIER, TokenType.VAR) for token in names)
        ):
            return tuple(token.text for token in names)
    return tuple(name.split("."))
