"""The interactive shell: read a statement, run it, show its rows and what was read for them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ThreadedAutoSuggest
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory, ThreadedHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from icesql.config import state_file
from icesql.context import Variables
from icesql.errors import (
    CommitStateUnknownError,
    Error,
    ProgrammingError,
    QueryCancelledError,
)
from icesql.repl.commands import in_words, parse_command
from icesql.repl.completion_names import ConnectionSource, Names
from icesql.repl.display import Display
from icesql.repl.preferences import ShellPreferences
from icesql.repl.progress import ProgressLine, stopped_text
from icesql.repl.prompt import (
    HistoryFile,
    SqlCompleter,
    holds_secret,
    inputs,
    is_complete,
    runs_by_empty_line,
)
from icesql.repl.render import row_line
from icesql.repl.results import format_for, save
from icesql.repl.run_command import run_command
from icesql.repl.signals import unwind_between_callbacks
from icesql.repl.terminal import Output, draws_lines, one_line, spelled_out, to_margin
from icesql.scan.report import scan_line
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.dbapi.cursor import Cursor
    from icesql.scan.report import ScanReport

# The keys of the prompt, and the grey hint behind the cursor about them.

_GREY: Final = "fg:ansibrightblack"


def key_bindings(*, dialect: str) -> KeyBindings:
    """Enter runs a complete statement; ``dialect`` as in ``is_complete``."""
    bindings = KeyBindings()

    @Condition
    def complete() -> bool:
        return is_complete(get_app().current_buffer.text, dialect=dialect)

    @bindings.add("enter", filter=complete)
    def _run(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.rstrip()  # the empty line that ran it is no part of the history
        if text != buffer.text:
            buffer.text = text
        buffer.cursor_position = len(text)
        buffer.validate_and_handle()

    return bindings


def hint(is_asking: Callable[[], bool], *, dialect: str) -> AfterInput:
    """The grey hint behind an empty line, and while a catalog is listing its names."""

    def words() -> StyleAndTextTuples:
        app = get_app()
        if app.is_done:
            return []
        text = app.current_buffer.text
        if is_asking():
            return [(_GREY, "  the catalog has not answered yet …")]
        # Long texts are not parsed on every key.
        if not text.endswith("\n") or len(text) > 10_000 or not text.strip():
            return []
        ends = runs_by_empty_line(text, dialect=dialect)
        return [(_GREY, "an empty line runs it, so does ;" if ends else "; runs it")]

    return AfterInput(words)


_FIRST_KEYS_SECONDS = 0.2
_CONTINUATION = "   ...> "


class Shell:
    """A prompt on one connection; ``run`` returns the exit code of the command.

    ``variables`` are the parameters of every statement, ``reports`` the scans of the last one,
    ``ran`` counts statements that ended, ``next_file`` is the file for the next result,
    ``prefill`` is the text that the next prompt begins with, ``last_text`` the last statement as
    typed, and ``names`` are those for completion.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        output_format: str | None = None,
        preferences: ShellPreferences | None = None,
        dialect: str = "",
        variables: dict[str, Any] | None = None,
        out: TextIO | None = None,
        session_options: dict[str, Any] | None = None,
    ) -> None:
        wanted = preferences or ShellPreferences()
        self.connection, self.dialect = connection, dialect
        self.display = Display(
            out or sys.stdout,
            output_format or wanted.format,
            wanted.expanded,
            wanted.pager and not self.is_restricted,
            wanted.timing,
            wanted.rows,
        )
        self.variables = Variables(variables or {})
        self.reports: list[ScanReport] = []
        self.ran = 0
        self.next_file: str | None = None
        self.prefill = ""
        self.last_text = ""
        self.names = Names(ConnectionSource(connection, dialect, files=not self.is_restricted))
        self._history = _history()
        self._spelling = dialect.lower() or "duckdb"
        completer = SqlCompleter(self.names)
        self._session: PromptSession[str] = PromptSession(
            message=self._prompt,
            multiline=True,
            prompt_continuation=lambda width, line, soft: _CONTINUATION,
            history=self._history,
            lexer=PygmentsLexer(SqlLexer),
            completer=completer,  # it has a thread of its own: a catalog may take its time
            complete_while_typing=False,
            input_processors=[hint(lambda: completer.is_asking, dialect=self._spelling)],
            auto_suggest=ThreadedAutoSuggest(AutoSuggestFromHistory())
            if wanted.suggestions
            else None,
            editing_mode=EditingMode.VI if wanted.keys == "vi" else EditingMode.EMACS,
            # An editor can run commands, and so can a pager: a restricted shell has neither.
            enable_open_in_editor=not self.is_restricted,
            tempfile_suffix=".sql",
            key_bindings=key_bindings(dialect=self._spelling),
            **(session_options or {}),
        )

    # ------------------------------------------------------------------ at the prompt

    def _prompt(self) -> str:
        """The prompt, which shows the version or time that tables are read at."""
        at = self.travels_to()
        # As in psql: an open transaction is a star, one that failed an exclamation mark.
        transaction = self.connection._session.state.transaction
        mark = "" if transaction is None else "!" if transaction.is_failed else "*"
        name = f"icesql{mark}"
        return f"{name} @ {one_line(at)}> " if at else f"{name}> "

    def travels_to(self) -> str:
        """The ref and time that tables are read at; "" for the present."""
        settings = self.connection.settings
        return ", ".join(filter(None, (settings.snapshot_ref, settings.snapshot_time)))

    def run(self) -> int:
        """Read and run statements until ``\\q`` or Ctrl-D."""
        self.say("icesql · SQL on Iceberg tables · \\? for help, \\q to leave")
        warming = threading.Thread(target=_warm_up, name="icesql-warm-up", daemon=True)
        warming.start()
        unwind_between_callbacks(lambda: self._session.app.loop)
        while True:
            try:
                prefill, self.prefill = self.prefill, ""
                text = self._session.prompt(default=prefill)
                # Ctrl-C while two threads import one module may leave it locked forever.
                warming.join()
            except KeyboardInterrupt:
                continue  # Ctrl-C at the prompt drops the line being typed
            except EOFError:
                return 0
            if holds_secret(text):
                self.say("note: this is not kept in the history, it seems to hold a secret")
            if text.strip() and not self.handle(text):
                return 0

    def handle(self, text: str) -> bool:
        """Run the typed text; False when it ends the shell. Errors are shown, not raised."""
        found, self.prefill = inputs(text, dialect=self._spelling)
        return all(map(self._handle, found))

    def _handle(self, text: str) -> bool:
        try:
            if text.startswith("\\"):
                return run_command(self, parse_command(text))
            command = in_words(text)
            if command is not None:
                return run_command(self, command)
            self.run_sql(text)
        except Error as error:
            self.say(f"error: {error}")
            if error.topic and draws_lines(self.display.out):
                self.say(f"more about it: help {error.topic}")
        except KeyboardInterrupt:
            self.connection.cancel()
            to_margin()
            self.say("cancelled")
        return True

    # ------------------------------------------------------------------ statements

    def run_sql(self, text: str, *, kept: bool = True, everything: bool = False) -> bool:
        """Run statements and show their results; ``kept`` makes it the last statement.

        If a kept statement fails, an open transaction fails, too; a statement of a command has no
        such effect. False when it was cancelled.
        """
        if kept:
            self.last_text = text
        progress = ProgressLine(sys.stderr)
        if draws_lines(sys.stderr):
            self.connection.progress = progress
            progress.watch()
        number, is_done = 0, False
        try:
            for cursor in self.connection.execute_script(text, self.variables or None):
                self._show(cursor, progress.hush, everything=everything)
                self.ran += 1
                number += 1
                progress.begin()
            is_done = True
        except CommitStateUnknownError:
            to_margin()
            raise
        except (QueryCancelledError, KeyboardInterrupt) as error:
            progress.hush()
            to_margin()
            self.connection.cancel()
            cause = str(error) or "cancelled"
            self.say(stopped_text(cause, progress, text, number, self.dialect or None))
            return False
        finally:
            progress.end()
            self.connection.progress = None
            if kept and not is_done:
                self.connection._session.fail_transaction()
        self.names.forget()
        return True

    def last_statement(self) -> str:
        """The last query, without its semicolon. Raises ProgrammingError where there is none."""
        if not self.last_text.strip():
            raise ProgrammingError("no statement was run yet")
        return self.last_text.strip().removesuffix(";").rstrip()

    def _show(self, cursor: Cursor, clear: Callable[[], None], *, everything: bool) -> None:
        for note in cursor.notes:
            self.say(f"note: {one_line(note)}")
        self.reports = cursor.scan_reports
        if cursor.message or not cursor.description:
            self.say(cursor.message or "ok")
            return
        path, self.next_file = self.next_file, None
        if path is None:
            shown = self.display.show(cursor, clear, everything=everything)
            if shown.more:
                most = "" if shown.counted else "more than "
                self.say(f"… {most}{shown.more:,} more, \\all shows them")
            count, counted = shown.count, shown.counted
        else:
            count, counted = self._save(cursor, path), True
            clear()
            self.say(f"written to {one_line(path)}")
        line = row_line(count, cursor.elapsed if self.display.timing else None)
        self.say(line if counted else f"(more than {line[1:]}")
        self.reports = cursor.scan_reports
        for report in self.reports:
            self.say(scan_line(report))

    def _save(self, cursor: Cursor, path: str) -> int:
        from icesql.storage.new_files import OutputFile

        with OutputFile(path) as file:
            return save(cursor, format_for(path, None), path, file)

    # ------------------------------------------------------------------ what commands need

    @property
    def is_restricted(self) -> bool:
        """Whether SQL is restricted, in which case files and shell commands are refused too."""
        access = self.connection.access
        return bool(access.locked) or not access.is_open

    def history(self) -> list[str]:
        """The typed texts of all shells, oldest first."""
        return list(self._history.load_history_strings())[::-1]

    def say(self, text: str) -> None:
        """Print a line that is safe for a terminal and has no secrets."""
        out = Output(self.display.out)
        out.write(_harmless(text) + "\n")
        self.display.out.flush()

    def tell(self, lines: Iterable[str]) -> None:
        """Print lines, in the pager where the screen is too small for them."""
        harmless = list(map(_harmless, lines))
        if not self.display.page_lines(harmless):
            self.say("\n".join(harmless))


def _harmless(text: str) -> str:
    return spelled_out(redact_urls(text))


def _warm_up() -> None:
    """Import the modules that the first statement needs, while it is being typed."""
    time.sleep(_FIRST_KEYS_SECONDS)  # the prompt comes first
    import icesql.sql.parse  # noqa: F401


def _history() -> History:
    path = state_file("history")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Statements can hold personal data: only this user may read them.
        path.touch(mode=0o600)
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return ThreadedHistory(HistoryFile(path))
