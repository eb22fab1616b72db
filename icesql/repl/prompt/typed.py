"""What Enter does with the text at the prompt: run it, or begin another line."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from icesql.repl.commands import is_question, is_word

# Quotes, dollar quotes, comments, and single characters that say something.
_PIECE: Final = re.compile(
    r"(?P<quote>['\"`])|(?P<dollar>\$\w*\$)|(?P<line>--)|(?P<block>/\*)|\s+|(?P<other>.)", re.DOTALL
)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# Dialects in which a backslash escapes a quote.
BACKSLASH_ESCAPES: Final = frozenset(
    {"athena", "bigquery", "clickhouse", "databricks", "doris", "hive", "mysql", "redshift",
     "singlestore", "snowflake", "spark", "spark2", "starrocks"}
)  # fmt: skip
# Statements that nobody writes on several lines, and that destroy nothing.
_ONE_LINE: Final = frozenset(
    {"SHOW", "DESCRIBE", "DESC", "USE", "SET", "RESET", "BEGIN", "COMMIT", "ROLLBACK"}
)
# What an empty line may run: a WHERE may be still to come in everything that changes a table.
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "EXPLAIN", "SUMMARIZE", "TABLE"})
_INNER: Final = frozenset({"SELECT", "WITH", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE", "CALL"})


class _Seen(Struct):
    """A text read to its end: ``start`` is where its last statement begins."""

    start: int = 0
    depth: int = 0
    last: str = ""
    is_open: bool = False


def is_complete(text: str, *, escapes: bool = False) -> bool:
    r"""Whether Enter at the end of the text should run it.

    A command does, a statement that ends with ``;``, one of a single line such as SHOW TABLES, and
    a query with an empty line behind it. Nothing inside quotes or a comment ends anything.
    ``escapes`` says that a backslash escapes a quote, as in Spark's SQL.
    """
    stripped = text.strip()
    if not stripped or is_question(stripped):
        return True
    if "\n" not in stripped and (stripped[0] in "\\." or is_word(stripped)):
        return True
    _, rest, by_command = _taken_apart(text, escapes)
    seen = _seen(rest, escapes)
    if by_command or seen.is_open:
        return by_command
    if seen.last == ";":
        return True
    if seen.depth > 0:
        return False
    words = [word.upper() for word in re.findall(r"[A-Za-z]+", rest[seen.start :])[:2]]
    first = words[0] if words else ""
    if first in _ONE_LINE and not _INNER & set(words[1:]):
        return "\n" not in rest[seen.start :].strip()
    return bool(re.search(r"\n[ \t]*$", rest)) and runs_by_empty_line(rest, escapes=escapes)


def runs_by_empty_line(text: str, *, escapes: bool = False) -> bool:
    """Whether an empty line ends the statement at the end of the text, which changes nothing."""
    seen = _seen(text, escapes)
    words = [word.upper() for word in re.findall(r"[A-Za-z]+", text[seen.start :])]
    if not words or seen.is_open or seen.depth > 0:
        return False
    # Also behind WITH or EXPLAIN ANALYZE.
    changes = {"INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "COPY", "CREATE", "ALTER", "DROP"}
    return words[0] in _QUERIES | _ONE_LINE and not changes & set(words)


def inputs(text: str, *, escapes: bool = False) -> tuple[list[str], str]:
    r"""The commands and statements of a text, in order, and an unfinished statement to go on with.

    A command is a line of its own, and is taken out of the statement around it, which keeps all of
    its other lines and their ends. Whoever is stuck in a statement types ``\q``, ``exit`` or
    ``help``, and has the statement back at the next prompt; pasted text may hold several.
    """
    found, rest, by_command = _taken_apart(text, escapes)
    if by_command or not rest.strip():
        return found, rest if rest.strip() else ""
    return [*found, rest.strip()], ""


def _taken_apart(text: str, escapes: bool) -> tuple[list[str], str, bool]:
    """Commands and the statements that end before one, what is left, whether a command ends it."""
    found: list[str] = []
    lines: list[str] = []
    by_command = False
    end = len(text.rstrip())
    for each in _LINE.finditer(text):
        line, before = each[0], "".join(lines)
        if not line.strip():
            lines.append(line)
            continue
        # Inside a statement a word may be a column's name, save where Enter was just typed.
        may_be = each.end() >= end or line.lstrip()[0] == "\\" or not before.strip()
        by_command = may_be and _is_command(line) and not _seen(before, escapes).is_open
        if not by_command:
            lines.append(line)
            continue
        if _seen(before, escapes).last == ";":
            found.append(before.strip())
            lines = []
        found.append(line.strip())
    return found, "".join(lines), by_command


def _is_command(line: str) -> bool:
    stripped = line.strip()
    return bool(re.match(r"\\[A-Za-z?!]", stripped)) or is_word(stripped)


def _seen(text: str, escapes: bool) -> _Seen:
    seen, position = _Seen(), 0
    while found := _PIECE.match(text, position):
        position = found.end()
        kind = found.lastgroup
        if kind == "line":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end + 1
            continue
        if kind in ("quote", "dollar", "block"):
            end = _end(text, position, "*/" if kind == "block" else found[0], escapes)
            if end < 0:
                seen.is_open = True
                return seen
            position = end
        if kind is None or kind == "block":
            continue
        if seen.last == ";":
            seen.start = found.start()
        if found[0] == ";":
            seen.depth = 0
        seen.depth += (found[0] in "([{") - (found[0] in ")]}")
        seen.last = found[0]
    return seen


def _end(text: str, position: int, mark: str, escapes: bool) -> int:
    """The position after the next ``mark``; -1 if there is none."""
    escapes = escapes and mark in "'\""
    while (end := text.find(mark, position)) >= 0:
        before = text[position:end]
        if not escapes or (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return end + len(mark)
        position = end + 1
    return -1
