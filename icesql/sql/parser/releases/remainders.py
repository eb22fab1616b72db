"""``a % b``, which sqlglot before 30.20 gives the precedence of sums, not of products.

``1 + 5 % 3`` would be ``(1 + 5) % 3``. The percent sign is replaced by the token of an operator
with the precedence of products; after parsing, the nodes of that operator become remainders again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.parser.releases.newest import respelt
from icesql.sql.positions import unsupported

# DuckDB's ``a <-> b``, the distance between two lists.
_PRODUCT: Final = TokenType.LR_ARROW
_PRODUCTS: Final = (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_ENDS: Final = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.COMMA}
    | {TokenType.SEMICOLON}
)
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# A percent sign after these belongs to a row count.
_COUNTS: Final = frozenset({TokenType.LIMIT, TokenType.TABLE_SAMPLE})
_CLAUSES: Final = frozenset(
    {TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.ON, TokenType.COMMA}
    | {TokenType.OFFSET, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING}
)


def has_remainders(tokens: Sequence[Token]) -> bool:
    """True if the tokens contain a percent sign, or a call of mod, which is written as one."""
    return any(token.token_type == TokenType.MOD or token.text.lower() == "mod" for token in tokens)


def as_products(tokens: Sequence[Token]) -> list[Token]:
    """Give every remainder the precedence of a product; ``LIMIT 10%`` stays.

    Raises UnsupportedSqlError for ``<->`` beside a remainder.
    """
    made = []
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.MOD and not _is_percentage(tokens, index):
            token = respelt(token, _PRODUCT, token.text)
        elif token.token_type == _PRODUCT:
            hint = "write list_distance(a, b), or install sqlglot 30.20 or newer"
            raise unsupported(f"{token.text} beside %", token.start, hint)
        made.append(token)
    return made


def remainders(tree: exp.Expr | None) -> exp.Expr | None:
    """Turn the products of ``as_products`` back into remainders; the root may be a new node."""
    if tree is None:
        return None
    for node in list(tree.find_all(exp.Distance)):
        made = exp.Mod(this=node.this, expression=node.expression, comments=node.comments)
        if node is tree:
            tree = made
        else:
            node.replace(made)
    in_parentheses(tree)
    return tree


def in_parentheses(tree: exp.Expr) -> None:
    """Put ``a * mod(b, c)`` in parentheses: these releases would write ``a * b % c``."""
    for node in list(tree.find_all(exp.Mod)):
        if isinstance(node.parent, _PRODUCTS) and node.parent.expression is node:
            node.replace(exp.Paren(this=node.copy()))


def _is_percentage(tokens: Sequence[Token], index: int) -> bool:
    """True if a percent sign follows a row count, as in LIMIT 10%."""
    if index + 1 >= len(tokens) or tokens[index + 1].token_type in _ENDS:
        return True
    depth = 0
    for at in range(index - 1, -1, -1):
        token = tokens[at]
        if token.token_type in _CLOSING:
            depth += 1
        elif token.token_type in _OPENING:
            depth -= 1
            if depth < 0:
                return False
        elif not depth:
            sampled = token.text.upper() == "SAMPLE" and at > 0
            if sampled and tokens[at - 1].token_type == TokenType.USING:
                return True
            if token.token_type in _COUNTS:
                return True
            if token.token_type in _CLAUSES:
                return False
    return False
