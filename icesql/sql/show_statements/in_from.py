"""SHOW, DESCRIBE and SUMMARIZE in the place of a table: ``SELECT … FROM (SHOW REFS FROM t)``.

Each becomes one name of the same place, so that every other word keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from icesql.sql.lexer import WORD, Token, closing
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query, Shown, Statement

# What the statement is called in the text and the tree. Names of users cannot begin so.
PREFIX: Final = "__sh"
_WORDS: Final = ("SHOW", "DESCRIBE", "DESC", "SUMMARIZE")
_BEFORE: Final = ("FROM", "JOIN", ",", "(")


class InFrom(Struct, frozen=True):
    """A statement from its opening to its closing bracket, and the ``name`` that stands for it."""

    opening: Token
    closing: Token
    name: str
    statement: Shown | Query

    def put(self, sql: str) -> str:
        """``sql`` with the name and blanks in its place."""
        start, end = self.opening.start, self.closing.stop
        return sql[:start] + self.name.ljust(end - start) + sql[end:]

    @property
    def token(self) -> Token:
        """The token of the name."""
        start = self.opening.start
        return Token(WORD, self.name, start, start + len(self.name), self.name.upper())


def statements_in_from(
    tokens: Sequence[Token], read: Callable[[Sequence[Token]], Statement]
) -> list[InFrom]:
    """The statements in brackets in FROM, in order. Raises UnsupportedSqlError, SqlSyntaxError."""
    found: list[InFrom] = []
    for first, last in _places(tokens):
        inner = tokens[first + 1 : last]
        _check_places(tokens[:first], inner)
        statement = read(inner)
        is_about = isinstance(statement, Query) and bool(statement.about)
        if not isinstance(statement, Shown | Query) or is_about != isinstance(statement, Query):
            word = inner[0].word
            raise unsupported(f"{word} of a query as a table", inner[0], "run it by itself")
        name = f"{PREFIX}{len(found)}"
        opening, closing = tokens[first], tokens[last]
        if len(name) > closing.stop - opening.start:
            raise unsupported("so many statements in FROM", opening)
        found.append(InFrom(opening, closing, name, statement))
    return found


def _check_places(before: Sequence[Token], inner: Sequence[Token]) -> None:
    """Refuse a ``?`` that would be counted before one that stands in front of it."""
    asked = next((each for each in inner if each.word == "?"), None)
    if asked is None:
        return
    if any(each.word == "?" for each in before):
        what = f"a parameter in {inner[0].word} in FROM behind another one"
        raise unsupported(what, asked, "number them: $1, $2")


def without(tokens: Sequence[Token], found: Sequence[InFrom]) -> list[Token]:
    """The tokens with one for each statement."""
    left: list[Token] = []
    rest = iter(found)
    current = next(rest, None)
    for token in tokens:
        if current is None or token.start < current.opening.start:
            left.append(token)
        elif token.start == current.closing.start:
            left.append(current.token)
            current = next(rest, None)
    return left


def begins_comparison(tokens: Sequence[Token]) -> bool:
    """Whether tokens are ``DIFF t BETWEEN a AND b`` or ``BLAME t``."""
    if not tokens or tokens[0].word not in ("DIFF", "BLAME"):
        return False
    from icesql.sql.show_statements.differences import compared_at

    return compared_at(tokens)[:1] == [0]


def _is_summary(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].word != "DIFF":
        return False
    from icesql.sql.show_statements.differences import is_summary

    return is_summary(tokens, index)


def _places(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The brackets of each statement, by their indexes."""
    end = 0
    for index in range(2, len(tokens) - 1):
        word = tokens[index]
        if (
            index < end
            or tokens[index - 1].word != "("
            or tokens[index - 2].word not in _BEFORE
            or not (word.word in _WORDS or _is_summary(tokens, index))
            # A table or column of that name.
            or tokens[index + 1].word in (")", ".", ",")
        ):
            continue
        end = closing(tokens, index - 1)
        if end < len(tokens):
            yield index - 1, end


# PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree has to know them.
#
# The user's own text runs. The tree says which tables and columns are read; DuckDB's parser makes
# ``SELECT * FROM`` of a statement, to whose source the PIVOT belongs.
#
# ``PIVOT t ON c USING sum(x)`` has a column for each value of c. Until these are read one text
# holds the place of their list: ``ON c IN ('…')``; see ``query.pivot_values``.

NO_VALUES: Final = "PIVOT without a list of values"
LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"
# The list of values that are not read yet, of a character that no keyboard has.
UNREAD: Final = "('\ue000values\ue000')"
