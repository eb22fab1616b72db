"""The key Enter at the prompt: run the text, or begin another line."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from msgspec import Struct, field

from icesql.errors import SqlSyntaxError
from icesql.repl.commands import is_question, is_word
from icesql.sql.lexer import CLOSING, OPENING, WORD, tokens_in

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# Statements that are written on one line, and that destroy nothing.
_ONE_LINE: Final = frozenset(
    {"SHOW", "DESCRIBE", "DESC", "USE", "SET", "RESET", "BEGIN", "COMMIT", "ROLLBACK"}
)
# The statements that an empty line may run: one that changes a table may still get a WHERE.
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "EXPLAIN", "SUMMARIZE", "TABLE"})
_INNER: Final = frozenset({"SELECT", "WITH", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE", "CALL"})


class _Seen(Struct):
    """A parsed text: the offset of its last statement, and the words of that."""

    start: int = 0
    depth: int = 0
    last: str = ""
    words: list[str] = field(default_factory=list)
    is_open: bool = False


def is_complete(text: str, *, dialect: str = "duckdb") -> bool:
    r"""Whether Enter at the end of the text should run it.

    It runs a command, a statement that ends with ``;``, a statement of a single line such as SHOW
    TABLES, and a query followed by an empty line. Text inside quotes or a comment ends no
    statement. ``dialect`` is that of the statements, which defines their quotes.
    """
    stripped = text.strip()
    if not stripped or is_question(stripped):
        return True
    if "\n" not in stripped and (stripped[0] in "\\." or is_word(stripped)):
        return True
    _, rest, by_command = _taken_apart(text, dialect)
    seen = _seen(rest, dialect)
    if by_command or seen.is_open:
        return by_command
    if seen.last == ";":
        return True
    if seen.depth > 0:
        return False
    first = seen.words[0] if seen.words else ""
    if first in _ONE_LINE and not _INNER & set(seen.words[1:2]):
        return "\n" not in rest[seen.start :].strip()
    return bool(re.search(r"\n[ \t]*$", rest)) and runs_by_empty_line(rest, dialect=dialect)


def runs_by_empty_line(text: str, *, dialect: str = "duckdb") -> bool:
    """Whether an empty line ends the statement at the end of the text, which changes nothing."""
    seen = _seen(text, dialect)
    words = seen.words
    if not words or seen.is_open or seen.depth > 0:
        return False
    # Also behind WITH or EXPLAIN ANALYZE.
    changes = {"INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "COPY", "CREATE", "ALTER", "DROP"}
    return words[0] in _QUERIES | _ONE_LINE and not changes & set(words)


def inputs(text: str, *, dialect: str = "duckdb") -> tuple[list[str], str]:
    r"""The commands and statements of a text, in order, and an unfinished statement to go on with.

    A command is a line of its own, and is taken out of the statement around it, which keeps all of
    its other lines and their ends. After ``\q``, ``exit`` or ``help`` inside a statement, the
    statement is back at the next prompt. Pasted text may hold several commands.
    """
    found, rest, by_command = _taken_apart(text, dialect)
    if by_command or not rest.strip():
        return found, rest if rest.strip() else ""
    return [*found, rest.strip()], ""


def _taken_apart(text: str, dialect: str) -> tuple[list[str], str, bool]:
    """Commands and the statements that end before one, the rest, and whether a command ends it."""
    found: list[str] = []
    lines: list[str] = []
    by_command = False
    end = len(text.rstrip())
    for each in _LINE.finditer(text):
        line, before = each[0], "".join(lines)
        if not line.strip():
            lines.append(line)
            continue
        # Inside a statement a word may be the name of a column, except where Enter was just typed.
        may_be = each.end() >= end or line.lstrip()[0] == "\\" or not before.strip()
        by_command = may_be and _is_command(line) and not _seen(before, dialect).is_open
        if not by_command:
            lines.append(line)
            continue
        if _seen(before, dialect).last == ";":
            found.append(before.strip())
            lines = []
        found.append(line.strip())
    return found, "".join(lines), by_command


def _is_command(line: str) -> bool:
    stripped = line.strip()
    return bool(re.match(r"\\[A-Za-z?!]", stripped)) or is_word(stripped)


def _seen(text: str, dialect: str) -> _Seen:
    seen = _Seen()
    with suppress(SqlSyntaxError):
        for token in tokens_in(text, dialect=dialect):
            if seen.last == ";":
                seen.start, seen.words = token.start, []
            seen.depth += (token.word in OPENING) - (token.word in CLOSING)
            if token.word == ";":
                seen.depth = 0
            seen.last = token.word
            if token.kind == WORD:
                seen.words.append(token.word)
        return seen
    seen.is_open = True
    return seen
