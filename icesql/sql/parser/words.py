"""What the tokens alone show: clauses that sqlglot would drop, and hints that it would not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import syntax_error, unsupported

# Tokens after which a clause has ended: an operand cannot start with them.
ENDS_CLAUSE: Final = frozenset(
    {
        TokenType.SEMICOLON,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.R_BRACE,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.LIMIT,
        TokenType.JOIN,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ON,
        TokenType.ALIAS,
        TokenType.COMMA,
        TokenType.THEN,
        TokenType.SELECT,
    }
)

_NEEDS_MORE: Final = {
    TokenType.ON: "a condition",
    TokenType.USING: "(",
    TokenType.WHERE: "a condition",
    TokenType.HAVING: "a condition",
    TokenType.QUALIFY: "a condition",
    TokenType.GROUP_BY: "a column",
    TokenType.ORDER_BY: "a column",
    TokenType.PARTITION_BY: "a column",
    TokenType.IN: "(",
}
_AFTER_COMMA: Final = ENDS_CLAUSE - {
    TokenType.FROM, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.SELECT,
    TokenType.THEN, TokenType.LIMIT, TokenType.ALIAS,
}  # fmt: skip
# Older sqlglot takes ``a NOT`` for ``NOT a``.
_AFTER_NOT: Final = ENDS_CLAUSE | {
    TokenType.AND, TokenType.OR, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.GT,
    TokenType.LTE, TokenType.GTE, TokenType.END, TokenType.ELSE, TokenType.WHEN,
}  # fmt: skip
# What an item follows, and no comma.
_BEFORE_ITEM: Final = frozenset(
    {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET}
    | {TokenType.L_BRACE, TokenType.FROM, TokenType.GROUP_BY, TokenType.ORDER_BY}
)


def check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse words that sqlglot would drop: an empty ON, USING, PARTITION BY, ``* EXCLUDE``.

    ``tokens`` are those of one statement. Raises SqlSyntaxError.
    """
    count = len(tokens)
    for index, token in enumerate(tokens):
        kind = token.token_type
        following = tokens[index + 1] if index + 1 < count else None
        wanted = _NEEDS_MORE.get(kind)
        if wanted and (following is None or following.token_type in ENDS_CLAUSE):
            raise _nothing_follows(token, following, wanted)
        if kind == TokenType.COMMA and following is not None and following.token_type == kind:
            raise syntax_error('unexpected ","', following, ("an expression",))
        if kind == TokenType.COMMA and index and tokens[index - 1].token_type in _BEFORE_ITEM:
            raise syntax_error('unexpected ","', token, ("an expression",))
        if kind == TokenType.COMMA and (following is None or following.token_type in _AFTER_COMMA):
            raise _nothing_follows(token, following, "another item")
        if kind == TokenType.NOT and (following is None or following.token_type in _AFTER_NOT):
            raise _nothing_follows(token, following, "a condition")
        if (
            kind == TokenType.USING
            and following is not None
            and following.token_type == TokenType.L_PAREN
            and index + 2 < count
            and tokens[index + 2].token_type == TokenType.R_PAREN
        ):
            raise syntax_error("USING () names no column", token.start, ("a column",))
        if (
            kind == TokenType.STAR
            and following is not None
            and following.text.upper() in ("EXCLUDE", "REPLACE", "RENAME")
            and following.token_type != TokenType.IDENTIFIER
        ):
            after = tokens[index + 2] if index + 2 < count else None
            if after is None or after.token_type in ENDS_CLAUSE:
                raise _nothing_follows(following, after, "(")


def check_comments(tokens: Sequence[Token], sql: str) -> None:
    """Refuse hints ``/*+ … */``: sqlglot keeps them as comments, and Flink's choose a snapshot.

    Raises UnsupportedSqlError.
    """
    if "/*+" not in sql and "\r" not in sql:
        return
    last = 0
    for token in tokens:
        if token.token_type == TokenType.HINT:
            raise unsupported("an optimizer hint /*+ … */", token.start, _HINT)
        _check_gap(sql, last, token.start)
        last = token.end + 1
    _check_gap(sql, last, len(sql))


_HINT: Final = "leave it out; a snapshot is chosen with FOR VERSION AS OF …"


def _check_gap(sql: str, start: int, end: int) -> None:
    index = start
    while index < end:
        if sql.startswith("/*+", index):
            raise unsupported("an optimizer hint /*+ … */", index, _HINT)
        if sql.startswith("--", index):
            stop = sql.find("\n", index)
            stop = end if stop < 0 else min(stop, end)
            return_at = sql.find("\r", index, stop)
            if return_at >= 0 and return_at + 1 != stop:
                # The engine's comment ends here, and sqlglot's at the end of the line.
                raise unsupported("a carriage return in a comment", return_at, "end it with \\n")
            index = stop
        elif sql.startswith("/*", index):
            stop = sql.find("*/", index + 2)
            index = end if stop < 0 else stop + 2
        else:
            index += 1


def _nothing_follows(token: Token, following: Token | None, wanted: str) -> Exception:
    offset = following.start if following is not None else token.end + 1
    return syntax_error(f"nothing follows {token.text.upper()}", offset, (wanted,))


# Token types that are no name, and after which no table ends.
_NO_NAME: Final = ENDS_CLAUSE | {
    TokenType.DOT, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.DISTINCT,
    TokenType.ALL, TokenType.CASE, TokenType.WHEN, TokenType.ELSE, TokenType.AND, TokenType.OR,
    TokenType.NOT, TokenType.EQ, TokenType.LT, TokenType.GT, TokenType.PLUS, TokenType.DASH,
    TokenType.STAR, TokenType.SLASH, TokenType.NUMBER, TokenType.USING, TokenType.COLON,
    TokenType.WITH, TokenType.IN, TokenType.LIKE, TokenType.BETWEEN, TokenType.IS,
}  # fmt: skip


def is_name(token: Token) -> bool:
    """Whether a token can be the last of the name of a table."""
    kind = token.token_type
    if kind in (TokenType.VAR, TokenType.IDENTIFIER):
        return True
    return kind not in _NO_NAME and token.text.replace("_", "a").isalnum()
