"""The prompt: Enter runs a text or begins another line; completions; the history of typed texts."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from icesql.errors import SqlSyntaxError
from icesql.repl.commands import is_question, is_word
from icesql.repl.completion_names import Lookup, Names
from icesql.repl.suggestions import suggestions, word_at
from icesql.repl.terminal import spelled_out
from icesql.sql.lexer import CLOSING, OPENING, WORD, tokens_in
from icesql.storage.credentials import is_secret, redact_urls

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


# ------------------------------------------------------------------ completions in the background


_STEP_SECONDS: Final = 0.05
_SHOWN_AFTER: Final = 0.4
_LONGEST_WAIT: Final = 60.0


class SqlCompleter(Completer):
    """Completions at the cursor, best first; the text behind the cursor counts as well.

    ``is_asking`` is true while completions are awaited and none has arrived.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self.is_asking = False

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """The suggestions at the cursor, best first."""
        before = document.text_before_cursor
        word = word_at(before)
        for each in suggestions(before, self._names, document.text_after_cursor):
            about = spelled_out(each.about or each.kind).replace("\n", " ")
            yield Completion(each.text, -len(word), display_meta=about)

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same, waiting for a slow catalog until the text changes.

        The thread is not one of the event loop's, which would wait for it when the prompt ends.
        """
        began = time.monotonic()
        shown: set[str] = set()
        try:
            while True:
                given_up = self._names.given_up
                started = time.monotonic()
                completion = Lookup(lambda: list(self.get_completions(document, event)))
                while not completion.done.is_set():
                    # A search of the cached names takes less than a step.
                    is_slow = time.monotonic() - started > _STEP_SECONDS
                    await asyncio.sleep(_STEP_SECONDS if is_slow else 0.002)
                    waited = time.monotonic() - began
                    if not _still_typed(document) or waited > _LONGEST_WAIT:
                        return
                    self._show(waited > _SHOWN_AFTER)
                for each in completion.found:
                    if each.text not in shown:
                        shown.add(each.text)
                        yield each
                if self._names.given_up == given_up:
                    break  # complete; otherwise a response may have arrived meanwhile
        finally:
            self._show(False)

    def _show(self, is_asking: bool) -> None:
        if self.is_asking != is_asking:
            self.is_asking = is_asking
            app = get_app_or_none()
            if app is not None:
                app.invalidate()


def _still_typed(document: Document) -> bool:
    app = get_app_or_none()
    return app is None or app.current_buffer.document == document


# ------------------------------------------------------------------ the file of typed texts
# Shells share the file, and secrets stay out of it. Its form is that of prompt-toolkit's
# ``FileHistory``: a comment with the time, then each line of the text with a plus in front.


# The bytes of it that are read: some ten thousand statements. It is searched on every key.
_MOST_BYTES: Final = 2 << 20
# A text as the file has it.
_KEPT: Final = re.compile(r"^\+.*(?:\n\+.*)*+", re.MULTILINE)
_WORDS: Final = r"passw|passphrase|\bpwd\b|secret|credential|token"
# name = 'value', 'name' = 'value', name => 'value', "name": "value", SET name TO 'value'
_GIVEN: Final = re.compile(
    r"(?<![\w.-])(?P<quote>['\"]?)(?P<name>[\w.-]++)(?P=quote)(?:\s*(?:=>?|:|\bto\b)\s*|\s+)['\"](?!['\"])",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(
    r"\s*(?:\\set|set)\s+(?P<name>[\w.-]+)\s*(?:=|\s)\s*\S", re.IGNORECASE
)


def holds_secret(text: str) -> bool:
    """Whether a statement seems to hold a password, a token or a key of a store.

    A column may be called ``key``; a name with a dot or a hyphen is a property, not a column.
    """
    if redact_urls(text) != text:
        return True
    named = [*_GIVEN.finditer(text), *filter(None, [_VARIABLE.match(text)])]
    return any(_names_secret(found["name"]) for found in named)


def _names_secret(name: str) -> bool:
    if "." in name or "-" in name:
        return is_secret(name)
    return bool(re.search(_WORDS, name, re.IGNORECASE)) and is_secret(name)


class HistoryFile(History):
    """The history of all shells of a user; an unreadable file is an empty history.

    A text that begins with a blank, as in other shells, or holds a secret is kept until this shell
    ends, and never written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The texts, newest first."""
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _MOST_BYTES, 0))
                data = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return []
        if size > _MOST_BYTES:  # the first text may have lost its beginning
            _, _, data = data.partition("\n#")
        return [each[1:].replace("\n+", "\n") for each in _KEPT.findall(data)[::-1]]

    def store_string(self, string: str) -> None:
        """Append a text in one write, so that lines of several open shells do not mix."""
        if string[:1].isspace() or holds_secret(string):
            return
        text = f"\n# {datetime.now()}\n" + "".join(f"+{line}\n" for line in string.split("\n"))
        with suppress(OSError):  # a full disk is no reason not to run a statement
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, text.encode("utf-8", "replace"))
            finally:
                os.close(descriptor)
