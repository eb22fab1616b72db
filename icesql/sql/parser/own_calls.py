"""Calls of a dialect with a table of functions of its own: sqlglot's classes hold none of them.

sqlglot makes nodes of the functions that it knows, and drops arguments and modifiers that they
have no room for. A mark on the name makes each an ``Anonymous`` with all of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

_MARK: Final = "\1call"
# Dialects whose functions are translated by a table.
TRANSLATED: Final = frozenset({"trino", "snowflake"})

# What stands before a parenthesis and is no function, or has a syntax of its own inside of it.
_SYNTAX: Final = frozenset(
    {"ALL", "AND", "ANY", "ARRAY", "AS", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "CUBE"}
    | {"DECIMAL", "DISTINCT", "ELSE", "EXCEPT", "EXCLUDE", "EXISTS", "EXTRACT", "FROM", "GROUP"}
    | {"GROUPS", "HAVING", "ICEBERG_SCAN", "ILIKE", "IN", "INTERSECT", "INTERVAL", "IS", "JOIN"}
    | {"LATERAL", "LIKE", "LIMIT", "NOT", "NUMBER", "NUMERIC", "OFFSET", "ON", "OR", "ORDER"}
    | {"OVER", "PARTITION", "POSITION", "QUALIFY", "RANGE", "RENAME", "ROLLUP", "ROWS", "SELECT"}
    | {"SETS", "SOME", "TABLE", "THEN", "TIME", "TIMESTAMP", "TRIM", "TRY_CAST", "UNION"}
    | {"UNNEST", "USING", "VALUES", "VARCHAR", "WHEN", "WHERE", "WITH", "WITHIN"}
)


def mark_calls(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with the names of calls marked."""
    made: list[Token] = []
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        is_call = following is not None and following.token_type == TokenType.L_PAREN
        if is_call and _is_name(token, made[-1] if made else None):
            text = token.text + _MARK
            token = Token(
                TokenType.VAR, text, token.line, token.col, token.start, token.end, token.comments
            )
        made.append(token)
    return made


def _is_name(token: Token, before: Token | None) -> bool:
    word = token.text.upper()
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return False
    if not word.replace("_", "a").isalnum() or word[0].isdigit():
        return False
    kind = before.token_type if before is not None else None
    if kind in (TokenType.ALIAS, TokenType.DCOLON) or (
        word == "REPLACE" and kind == TokenType.STAR
    ):
        return False  # a type, the columns of an alias, a clause of *
    if word == "FILTER":
        return kind != TokenType.R_PAREN
    return word not in _SYNTAX


def unmark_calls(tree: exp.Expr) -> None:
    """Take the marks away; a call of a function keeps ``call`` in its ``meta``."""
    for node in list(tree.find_all(exp.Identifier, exp.Anonymous)):
        name = node.this
        if isinstance(name, str) and name.endswith(_MARK):
            node.set("this", name.removesuffix(_MARK))
            if isinstance(node, exp.Anonymous):
                node.meta["call"] = True
