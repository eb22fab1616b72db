"""What may come next at the cursor: keywords, tables, columns and backslash commands.

Three steps: which kinds may come here, which names are of that kind, in what order.
``suggestions`` is a function of text and names alone; prompt-toolkit sees only its outcome.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from icesql.errors import Error
from icesql.repl.commands import COMMANDS
from icesql.sql.grammar import completions, keywords

_WORD: Final = re.compile(r'[\w."]*$')
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*$")
_TABLE_AFTER: Final = frozenset(
    {"FROM", "JOIN", "DESCRIBE", "DESC", "SNAPSHOTS", "TABLE", "DIFF", "SUMMARY", "BLAME"}
)
_TABLES_NAMED: Final = re.compile(
    r'\b(?:from|join|diff|blame)\s+([\w."]+)'
    r"(?:\s+(?:as\s+)?(?!on\b|where\b|join\b|between\b|keyed\b)([a-z_]\w*))?",
    re.IGNORECASE,
)


class Suggestion(Struct, frozen=True):
    """One completion: ``text`` replaces the word at the cursor."""

    text: str
    kind: str  # "table", "catalog", "column", "keyword" or "command"


class Source(Protocol):
    """Where names come from; a connection is one."""

    def tables(self, catalog: str | None = None) -> list[str]:
        """Full names of the tables, as SQL would name them."""

    def catalogs(self) -> list[str]:
        """Names of the catalogs."""

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table."""


class _Asked:
    """What a source is being asked for, in a thread of its own."""

    def __init__(self, ask: Callable[[], list[str]]) -> None:
        self.names: list[str] = []
        self.done = threading.Event()
        threading.Thread(target=self._run, args=(ask,), name="icesql-names", daemon=True).start()

    def _run(self, ask: Callable[[], list[str]]) -> None:
        with suppress(Error):
            self.names = ask()
        self.done.set()


class Names:
    """Names asked for once and kept until ``forget``; a catalog that fails offers none.

    One that does not answer within ``patience`` seconds offers none for now: what it says later
    is there the next time.
    """

    def __init__(self, source: Source, patience: float = 0.5) -> None:
        self._source, self._patience = source, patience
        self._asked: dict[tuple[str, str], _Asked] = {}

    def tables(self, catalog: str | None = None) -> list[str]:
        """Names of all tables, of the connection's own catalog or another one."""
        source = self._source
        if catalog is None:
            return self._known(("tables", ""), source.tables)
        return self._known(("tables", catalog), lambda: source.tables(catalog))

    def catalogs(self) -> list[str]:
        """Names of all catalogs."""
        return self._known(("catalogs", ""), self._source.catalogs)

    def columns(self, table: str) -> list[str]:
        """Names of the columns of ``table``, or none when it cannot be opened."""
        return self._known(("columns", table), lambda: self._source.columns(table))

    def _known(self, key: tuple[str, str], ask: Callable[[], list[str]]) -> list[str]:
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = _Asked(ask)
        asked.done.wait(self._patience)
        return asked.names

    def forget(self) -> None:
        """Ask again next time: a statement may have changed what there is."""
        self._asked = {}


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
        offered = _table_suggestions(word, names)
        if last == "DIFF":
            offered.append(Suggestion("SUMMARY", "keyword"))
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


def _table_suggestions(word: str, names: Names) -> list[Suggestion]:
    """Tables of the connection's catalog; others by name, and their tables behind it."""
    offered = [Suggestion(name, "table") for name in names.tables()]
    first, dot, _ = word.partition(".")
    for name in names.catalogs():
        if dot and first.lower() == name.lower():
            offered += [Suggestion(table, "table") for table in names.tables(name)]
        elif not dot:
            offered.append(Suggestion(f"{name}.", "catalog"))
    return offered


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
