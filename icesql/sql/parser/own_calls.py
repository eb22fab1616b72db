"""Keep calls as they are written until the function table of their dialect interprets them.

While it parses, sqlglot turns each function that it knows into a class of its own, and drops
arguments and modifiers for which the class has no field. A call under an unknown name becomes an
``Anonymous`` with all of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from icesql.sql.acceptance import WHOLE
from icesql.sql.function_table import SPARK
from icesql.sql.keywords import word_set
from icesql.sql.parser.releases.newest import respelt
from icesql.sql.positions import unsupported

_HIDDEN: Final = "icesql_call_of_"
# Calls with special syntax between the parentheses, and keywords that are not functions.
_SYNTAX: Final = word_set(
    "AND CASE CAST CUBE EXTRACT IN NOT OR POSITION ROLLUP TRIM TRY_CAST VALUES"
)
_SPARK_SYNTAX: Final = word_set("OVERLAY SUBSTR SUBSTRING TRY")
# Types and operators in Trino and Snowflake, not functions.
_OTHER_SYNTAX: Final = word_set("ARRAY ILIKE LIKE TABLE TIME TIMESTAMP UNNEST")
# No call follows these: an operator or an alias follows an operand, a name, type or list AS and ::.
_NO_CALL_AFTER: Final = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.ALIAS,
        TokenType.DCOLON,
        TokenType.DOT,
    }
)
_NESTED: Final = word_set("ARRAY MAP STRUCT")
# Aggregates in Spark; LIKE ANY ('a', 'b') has a list, not a call.
_QUANTIFIERS: Final = word_set("ALL ANY SOME")
_MATCHES: Final = frozenset({TokenType.LIKE, TokenType.ILIKE})
_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN})
# Words that may also precede a query in parentheses.
_BEFORE_QUERIES: Final = frozenset({*_QUANTIFIERS, "ARRAY", "EXISTS"})


_VALUE_ENDS: Final = (
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET,
)  # fmt: skip


def hide_calls(tokens: Sequence[Token], reader: Dialect, dialect: str = "") -> list[Token]:
    """Return the tokens with the names of calls hidden from sqlglot; ``show_calls`` undoes it.

    ``dialect`` is one of ``TRANSLATED``, or "" for a template in DuckDB's spelling. Raises
    UnsupportedSqlError for a name in the text that ``show_calls`` would mistake for a hidden one.
    """
    for token in tokens:
        if token.text.startswith(_HIDDEN):
            raise unsupported(f'the name "{token.text}"', token.start, "it is reserved")
    if dialect == SPARK:
        _check_paths(tokens)
    parser: Any = reader.parser_class
    hidden = {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS} - _SYNTAX
    hidden = (hidden | _QUANTIFIERS) - _SPARK_SYNTAX if dialect == SPARK else hidden - _OTHER_SYNTAX
    made = list(tokens)
    for at in range(len(tokens) - 1):
        token = tokens[at]
        if tokens[at + 1].token_type == TokenType.L_PAREN and token.text.upper() in hidden:
            quoted = token.token_type == TokenType.IDENTIFIER and dialect != SPARK
            if not quoted and _is_call(tokens, at):
                made[at] = respelt(token, TokenType.VAR, _HIDDEN + token.text)
    return made


def _check_paths(tokens: Sequence[Token]) -> None:
    """Refuse ``v:a``, which sqlglot parses as a column and a parameter; allow ``struct<a:int>``."""
    nested = 0
    for at, token in enumerate(tokens[:-1]):
        if token.token_type == TokenType.LT and tokens[at - 1].text.upper() in _NESTED:
            nested += 1
        elif nested:
            nested -= token.text.count(">")
        elif token.token_type == TokenType.COLON and at:
            before, after = tokens[at - 1], tokens[at + 1]
            if before.token_type in _VALUE_ENDS and before.end + 1 == token.start:
                path = f"a path into a variant ({before.text}:{after.text})"
                raise unsupported(f"{path} in Spark's dialect", before.start, WHOLE)


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """True if the function name at ``at``, before a parenthesis, is a call."""
    word, kind = tokens[at].text.upper(), tokens[at].token_type
    if kind in (TokenType.STRING, TokenType.NUMBER):
        return False
    if word in _BEFORE_QUERIES and at + 2 < len(tokens) and tokens[at + 2].token_type in _QUERIES:
        return False
    before = tokens[at - 1].token_type if at else None
    if before == TokenType.LT:
        return at < 2 or tokens[at - 2].text.upper() not in _NESTED  # array<char(10)>
    if before in _MATCHES:
        return word not in _QUANTIFIERS
    if before == TokenType.STAR:
        return word != "REPLACE"  # * REPLACE (1 AS a)
    if before == TokenType.NOT and kind in _MATCHES:
        return not (at > 1 and tokens[at - 2].token_type in _NO_CALL_AFTER)
    return before not in _NO_CALL_AFTER


def show_calls(tree: exp.Expr) -> None:
    """Restore the names of calls in ``tree`` that ``hide_calls`` replaced."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.Identifier | exp.Var):
            name = node.this
            if isinstance(name, str) and name.startswith(_HIDDEN):
                node.set("this", name.removeprefix(_HIDDEN))
