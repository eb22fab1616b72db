"""Checks of the tokens alone: clauses that sqlglot drops, and hints that it does not read."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Final

from icesql.sql.lexer import NAME, TEXT, WORD, Token, phrase
from icesql.sql.positions import syntax_error, unsupported

# Tokens after which a clause has ended: an operand cannot start with them.
ENDS_CLAUSE: Final = frozenset(
    {";", ")", "]", "}", "FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT", "JOIN"}
    | {"UNION", "EXCEPT", "INTERSECT", "ON", "AS", ",", "THEN", "SELECT"}
)

_NEEDS_MORE: Final = {
    "ON": "a condition",
    "USING": "(",
    "WHERE": "a condition",
    "HAVING": "a condition",
    "QUALIFY": "a condition",
    "BY": "a column",
    "IN": "(",
}
_AFTER_COMMA: Final = ENDS_CLAUSE - {
    "FROM", ")", "]", "}", "SELECT",
    "THEN", "LIMIT", "AS",
}  # fmt: skip
# Older sqlglot takes ``a NOT`` for ``NOT a``.
_AFTER_NOT: Final = ENDS_CLAUSE | {
    "AND", "OR", "=", "<>", "<", ">",
    "<=", ">=", "END", "ELSE", "WHEN",
}  # fmt: skip
# What an item follows, and no comma.
_BEFORE_ITEM: Final = frozenset({"SELECT", "DISTINCT", ",", "(", "["} | {"{", "FROM", "BY"})


def ends_clause(tokens: Sequence[Token], index: int, words: Collection[str] = ENDS_CLAUSE) -> bool:
    """Whether no operand can start at a place: a clause begins or ends there."""
    word = tokens[index].word if index < len(tokens) else ";"
    if word in ("GROUP", "ORDER"):
        return index + 1 < len(tokens) and tokens[index + 1].word == "BY"
    return word in words


def check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse words that sqlglot would drop: an empty ON, USING, PARTITION BY, ``* EXCLUDE``.

    ``tokens`` are those of one statement. Raises SqlSyntaxError.
    """
    for index, token in enumerate(tokens):
        kind = token.word
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        wanted = _NEEDS_MORE.get(kind)
        if wanted and ends_clause(tokens, index + 1):
            raise _nothing_follows(tokens, index, wanted)
        if kind == "," and following is not None and following.word == kind:
            raise syntax_error('unexpected ","', following, ("an expression",))
        if kind == "," and index and tokens[index - 1].word in _BEFORE_ITEM:
            raise syntax_error('unexpected ","', token, ("an expression",))
        if kind == "," and ends_clause(tokens, index + 1, _AFTER_COMMA):
            raise _nothing_follows(tokens, index, "another item")
        if kind == "NOT" and ends_clause(tokens, index + 1, _AFTER_NOT):
            raise _nothing_follows(tokens, index, "a condition")
        if kind == "USING" and [each.word for each in tokens[index + 1 : index + 3]] == ["(", ")"]:
            raise syntax_error("USING () names no column", token.start, ("a column",))
        if (
            kind == "*"
            and following is not None
            and following.word in ("EXCLUDE", "REPLACE", "RENAME")
            and ends_clause(tokens, index + 2)
        ):
            raise _nothing_follows(tokens, index + 1, "(")


_COMMANDS_IN_FROM: Final = ("SHOW", "DESCRIBE", "DESC", "SUMMARIZE", "EXPLAIN")


def check_commands_in_from(tokens: Sequence[Token]) -> None:
    """Refuse ``FROM (SHOW TABLES)``, of which sqlglot makes a table with an alias.

    So is ``FROM FROM t``, of which it makes a query. Raises UnsupportedSqlError, SqlSyntaxError.
    """
    for before, token in itertools.pairwise(tokens):
        if token.word == "FROM" == before.word:
            raise syntax_error(f'unexpected "{token.text}"', token, ("a table",))
    for index in range(2, len(tokens) - 1):
        token = tokens[index]
        if (
            tokens[index - 1].word == "("
            and tokens[index - 2].word in ("FROM", "JOIN", ",")
            and token.word in _COMMANDS_IN_FROM
            and tokens[index + 1].word not in (")", ".")
        ):
            word = token.word
            hint = f"run {word} as a statement of its own"
            raise unsupported(f"{word} as a table", token, hint)


def check_comments(tokens: Sequence[Token], sql: str) -> None:
    """Refuse hints ``/*+ … */``: sqlglot keeps them as comments, and Flink's choose a snapshot.

    Raises UnsupportedSqlError.
    """
    if "/*+" not in sql and "\r" not in sql:
        return
    last = 0
    for token in tokens:
        if token.word == "/*+":
            raise unsupported("an optimizer hint /*+ … */", token.start, _HINT)
        _check_gap(sql, last, token.start)
        last = token.stop
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


def _nothing_follows(tokens: Sequence[Token], index: int, wanted: str) -> Exception:
    token = tokens[index]
    offset = tokens[index + 1].start if index + 1 < len(tokens) else token.stop
    shown = phrase(tokens, index - (token.word == "BY"))
    return syntax_error(f"nothing follows {shown}", offset, (wanted,))


# Words that are no name, and after which no table ends.
_NO_NAME: Final = ENDS_CLAUSE | {
    "BY", "GROUP", "ORDER", "DISTINCT", "ALL", "CASE", "WHEN", "ELSE", "AND", "OR", "NOT", "USING",
    "WITH", "IN", "LIKE", "BETWEEN", "IS",
}  # fmt: skip


def is_name(token: Token) -> bool:
    """Whether a token can be the last of the name of a table."""
    if token.kind == WORD:
        return token.word not in _NO_NAME
    return token.kind == NAME or (token.kind == TEXT and token.text.replace("_", "a").isalnum())
