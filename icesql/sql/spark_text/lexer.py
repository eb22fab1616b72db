"""Spark's tokens, as its own lexer (SqlBaseLexer.g4) splits a text.

sqlglot reads the same text by rules of its own. What is checked and cut by position is therefore
split here by Spark's rules, and a character of which they say nothing is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from icesql.sql.positions import syntax_error, unsupported

SPACE: Final = "space"
COMMENT: Final = "comment"
TEXT: Final = "text"
QUOTED: Final = "quoted"
WORD: Final = "word"
MARK: Final = "mark"

_PIECE: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--(?:\\\n|[^\r\n])*|/\*)
      | (?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<mark>=>|->|\|>|[!%&*()+,\-./:<=>?@\[\]^|~])""",
    re.VERBOSE | re.DOTALL,
)
_BRACKETS: Final = re.compile(r"/\*|\*/")


class Piece(Struct, frozen=True):
    """A token with its place, ``stop`` being after its last character."""

    kind: str
    text: str
    start: int
    stop: int

    @property
    def name(self) -> str | None:
        """The name that a word or a quoted identifier is; None for everything else."""
        if self.kind == QUOTED:
            return self.text[1:-1].replace("``", "`")
        if self.kind == WORD and not self.text[0].isdigit():
            return self.text
        return None

    def is_word(self, *words: str) -> bool:
        """Whether this is one of these words (in upper case), not in quotes."""
        return self.kind == WORD and self.text.upper() in words


def pieces(sql: str, start: int, stop: int) -> list[Piece]:
    """The tokens of a statement from ``start`` to ``stop``, in order, comments and space too.

    Raises SqlSyntaxError and UnsupportedSqlError for what is none of Spark's tokens.
    """
    found = []
    at = start
    while at < stop:
        match = _PIECE.match(sql, at, stop)
        if match is None:
            what = "unterminated quote" if sql[at] in "'\"`" else f"unexpected {sql[at]!a}"
            raise syntax_error(what, at)
        kind, end = str(match.lastgroup), match.end()
        if match[0] == "/*":
            end = _end_of_comment(sql, at, stop)
        if match[0] == "|>":
            raise unsupported("the pipe |>", at)
        if kind == WORD and sql.startswith("://", end):
            raise unsupported("an address as a name", at)
        found.append(Piece(kind, sql[at:end], at, end))
        at = end
    return found


def _end_of_comment(sql: str, start: int, stop: int) -> int:
    """Comments in brackets nest."""
    depth = 0
    for match in _BRACKETS.finditer(sql, start, stop):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    raise syntax_error("unterminated comment", start)


def without_comments(found: Sequence[Piece]) -> str:
    """The text of all tokens with blanks for comments, each character at its place."""
    return "".join(
        re.sub(r"[^\n]", " ", each.text) if each.kind == COMMENT else each.text for each in found
    )


def significant(found: Sequence[Piece]) -> list[Piece]:
    """The tokens that mean something."""
    return [each for each in found if each.kind not in (SPACE, COMMENT)]


def calls(found: Sequence[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Each name before a parenthesis, and whether it is qualified by another before it."""
    for at, each in enumerate(found[:-1]):
        if each.name is not None and found[at + 1].text == "(":
            yield each, at > 0 and found[at - 1].text == "."
