"""Calls that stay as they are written until the table of their dialect says what they mean.

sqlglot gives each function that it knows a meaning of its own while it reads, and drops arguments
that this has no room for. Under a name that it does not know, a call stays a name and arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

SPARK: Final = frozenset({"spark", "databricks", "hive"})

_HIDDEN: Final = "icesql_call_of_"
# Calls with syntax of their own between the parentheses, and words that are no calls.
_SYNTAX: Final = frozenset(
    {"CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING", "SUBSTR"}
    | {"AND", "OR", "NOT", "CASE", "IN", "VALUES", "CUBE", "ROLLUP", "TRY"}
)
# What sqlglot reads as a type or a keyword before a parenthesis.
_WORDS: Final = frozenset(
    {"ARRAY", "MAP", "STRUCT", "ANY", "IF", "TRANSFORM", "SOME", "ALL", "EXISTS"}
)
# After an operand comes an operator or an alias, after these a type or a list: no call.
_NO_CALL_AFTER: Final = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.ALIAS,
        TokenType.LT,
        TokenType.DCOLON,
        TokenType.LIKE,
        TokenType.ILIKE,
        TokenType.DOT,
    }
)
# Words of time travel: TIMESTAMP AS OF date_sub(…), FOR TIMESTAMP BEFORE date_sub(…).
_BEFORE_TIMES: Final = frozenset({"OF", "BEFORE"})
_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN})


def has_own_table(dialect: str | None) -> bool:
    """Whether the functions of a dialect have a table of meanings."""
    return (dialect or "").lower() in SPARK


def hide_calls(tokens: Sequence[Token], dialect: Dialect) -> list[Token]:
    """The tokens with the names of calls hidden from sqlglot; ``show_calls`` undoes it."""
    parser: Any = dialect.parser_class
    known = {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS, *_WORDS} - _SYNTAX
    made = list(tokens)
    for at in range(len(tokens) - 1):
        token = tokens[at]
        if tokens[at + 1].token_type != TokenType.L_PAREN or token.text.upper() not in known:
            continue
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            continue
        before = tokens[at - 1].token_type if at else None
        after = tokens[at + 2].token_type if at + 2 < len(tokens) else None
        if before in _NO_CALL_AFTER and tokens[at - 1].text.upper() not in _BEFORE_TIMES:
            # "FROM t LATERAL VIEW explode(…)": what stands before is a keyword to Spark.
            continue
        if after in _QUERIES and token.text.upper() in _WORDS:
            continue
        made[at] = Token(
            TokenType.VAR,
            _HIDDEN + token.text,
            token.line,
            token.col,
            token.start,
            token.end,
            token.comments,
        )
    return made


def show_calls(tree: exp.Expr) -> None:
    """Give the calls and names of ``tree`` back what ``hide_calls`` took."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.Identifier | exp.Var):
            name = node.this
            if isinstance(name, str) and name.startswith(_HIDDEN):
                node.set("this", name.removeprefix(_HIDDEN))
