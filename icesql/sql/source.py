"""SQL text with positions, and which tokens end a clause."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from sqlglot.tokenizer_core import TokenType

from icesql.errors import SqlSyntaxError, UnsupportedSqlError

# Tokens after which a clause has ended: an operand cannot start with them.
ENDS_CLAUSE: Final = frozenset(
    {
        TokenType.SENTINEL,
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


class Source(Struct, frozen=True):
    """SQL text, for turning an offset into a line and a column that count from 1."""

    sql: str

    def position(self, offset: int | None) -> tuple[int | None, int | None]:
        """(line, column) of a character offset; (None, None) for None."""
        if offset is None:
            return None, None
        before = self.sql[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def syntax_error(
        self, problem: str, offset: int | None, expected: tuple[str, ...] = ()
    ) -> SqlSyntaxError:
        """A SqlSyntaxError at an offset, with the line of the source."""
        line, column = self.position(offset)
        return SqlSyntaxError(problem, line=line, column=column, expected=expected, sql=self.sql)

    def unsupported(
        self, construct: str, offset: int | None, hint: str = ""
    ) -> UnsupportedSqlError:
        """An UnsupportedSqlError at an offset."""
        line, column = self.position(offset)
        return UnsupportedSqlError(construct, hint=hint, line=line, column=column)


def unfinished(sql: str) -> tuple[int | None, str]:
    """Where a quote or comment that never ends begins, and what it is.

    The offset is None if nothing is open.
    """
    index, length = 0, len(sql)
    closers = {"'": "a text", '"': "a quoted name", "`": "a quoted name"}
    while index < length:
        two = sql[index : index + 2]
        if two == "--":
            end = sql.find("\n", index)
            index = length if end < 0 else end
        elif two == "/*":
            end = sql.find("*/", index + 2)
            if end < 0:
                return index, "a comment is not closed"
            index = end + 2
        elif sql[index] in closers:
            end = sql.find(sql[index], index + 1)
            if end < 0:
                return index, f"{closers[sql[index]]} is not closed"
            index = end + 1
        else:
            index += 1
    return None, "the text cannot be split into words"
