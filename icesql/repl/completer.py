"""What may come next at the cursor: keywords, tables, columns and backslash commands.

Three steps: which kinds may come here, which names are of that kind, in what order.
``suggestions`` is a function of text and names alone; prompt-toolkit sees only its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from msgspec import Struct
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from icesql.errors import Error
from icesql.repl.commands import COMMANDS
from icesql.sql.grammar import completions, keywords

_WORD: Final = re.compile(r'[\w."]*$')
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*$")
_TABLE_AFTER: Final = frozenset({"FROM", "JOIN", "DESCRIBE", "DESC", "SNAPSHOTS", "TABLE"})
_TABLES_NAMED: Final = re.compile(
    r'\b(?:from|join)\s+([\w."]+)(?:\s+(?:as\s+)?(?!on\b|where\b|join\b)([a-z_]\w*))?',
    re.IGNORECASE,
)


class Suggestion(Struct, frozen=True):
    """One completion: ``text`` replaces the word at the cursor."""

    text: str
    kind: str  # "table", "column", "keyword" or "command"


class Source(Protocol):
    """Where names come from; a connection is one."""

    def tables(self) -> list[str]:
        """Full names of the tables, as SQL would name them."""

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table."""


class Names:
    """Names asked for once and kept until ``forget``; a catalog that fails offers none."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def tables(self) -> list[str]:
        """Names of all tables, or none when the catalog does not answer."""
        if self._tables is None:
            try:
                self._tables = self._source.tables()
            except Error:
                self._tables = []
        return self._tables

    def columns(self, table: str) -> list[str]:
        """Names of the columns of ``table``, or none when it cannot be opened."""
        if table not in self._columns:
            try:
                self._columns[table] = self._source.columns(table)
            except Error:
                self._columns[table] = []
        return self._columns[table]

    def forget(self) -> None:
        """Ask again next time: a statement may have changed what there is."""
        self._tables = None
        self._columns.clear()


def suggestions(text: str, names: Names) -> list[Suggestion]:
    """What may replace the word that ``text`` (everything before the cursor) ends with."""
    if text.lstrip().startswith("\\"):
        return _command_suggestions(text.lstrip(), names)
    found = _WORD.search(text)
    word = found[0] if found else ""
    before = text[: len(text) - len(word)]
    last = (re.findall(r"\w+", before) or [""])[-1].upper()
    after_comma = before.rstrip().endswith(",")
    if last in _TABLE_AFTER and not after_comma:
        offered = [Suggestion(name, "table") for name in names.tables()]
    else:
        words, may_be_name = completions(before.rpartition(";")[2])
        # Text that the grammar cannot follow still gets help: every keyword and column.
        columns = _column_suggestions(text, word, names) if may_be_name or not words else ()
        offered = [*columns, *(Suggestion(each, "keyword") for each in words or keywords())]
    return _matching(word, offered)


def _command_suggestions(text: str, names: Names) -> list[Suggestion]:
    name, space, argument = text.removeprefix("\\").partition(" ")
    if not space:
        return _matching("\\" + name, [Suggestion("\\" + each, "command") for each in COMMANDS])
    if "TABLE" in COMMANDS[name].argument if name in COMMANDS else False:
        return _matching(argument.strip(), [Suggestion(each, "table") for each in names.tables()])
    return []


def _column_suggestions(text: str, word: str, names: Names) -> Iterator[Suggestion]:
    qualifier, dot, _ = word.rpartition(".")
    for table, alias in _TABLES_NAMED.findall(text.rpartition(";")[2]):
        short = alias or table.rpartition(".")[2]
        if dot and qualifier.lower() not in (short.lower(), table.lower()):
            continue
        for column in names.columns(table):
            yield Suggestion(f"{qualifier}.{quoted(column)}" if dot else quoted(column), "column")


def quoted(name: str) -> str:
    """The name as SQL spells it: in double quotes unless it is a plain word."""
    return name if _PLAIN_NAME.match(name) else '"' + name.replace('"', '""') + '"'


def _matching(word: str, offered: Iterable[Suggestion]) -> list[Suggestion]:
    wanted = word.lower().lstrip('"')
    starts, holds = [], []
    seen = set()
    for suggestion in offered:
        # A name that would steer the terminal is not put on it.
        if suggestion.text in seen or not suggestion.text.isprintable():
            continue
        seen.add(suggestion.text)
        text = suggestion.text.lower().lstrip('"')
        if text.startswith(wanted):
            starts.append(suggestion)
        elif suggestion.kind == "table" and f".{wanted}" in text:
            holds.append(suggestion)  # `orders` finds sales.orders
    return starts + holds


class SqlCompleter(Completer):
    """``suggestions`` for prompt-toolkit."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """The suggestions at the cursor, best first."""
        text = document.text_before_cursor
        found = _WORD.search(text)
        word = found[0] if found else ""
        if text.lstrip().startswith("\\") and " " not in text.lstrip():
            word = text.lstrip()
        for suggestion in suggestions(text, self._names):
            yield Completion(suggestion.text, -len(word), display_meta=suggestion.kind)
