"""The interactive shell: read a statement, run it, show its rows and what was read for them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer, PygmentsLexer

from icesql.errors import Error, ProgrammingError, QueryCancelledError, similar_names
from icesql.repl.commands import (
    Command,
    help_text,
    in_words,
    is_complete,
    parse_command,
    statement_of,
)
from icesql.repl.completer import Names, SqlCompleter
from icesql.repl.progress import ProgressLine
from icesql.repl.render import Style, row_line
from icesql.repl.results import TEXT_FORMATS, format_for, save, show
from icesql.repl.terminal import Output, one_line, spelled_out
from icesql.scan.report_text import scan_line
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.dbapi.cursor import Cursor

_PROMPT, _CONTINUATION = "icesql> ", "   ...> "


class Shell:
    """A prompt on one connection; ``run`` returns the exit code of the command."""

    def __init__(
        self,
        connection: Connection,
        *,
        output_format: str = "table",
        out: TextIO | None = None,
        session_options: dict[str, Any] | None = None,
    ) -> None:
        self._connection = connection
        self._format = output_format
        self._out = out or sys.stdout
        self._timing = True
        # Where the next result goes, None for the screen.
        self._path: str | None = None
        self._names = Names(connection)
        self._session: PromptSession[str] = PromptSession(
            message=self._prompt,
            multiline=True,
            prompt_continuation=lambda width, line, soft: _CONTINUATION,
            history=_history(),
            lexer=_lexer(),
            completer=SqlCompleter(self._names),
            complete_while_typing=False,
            complete_in_thread=True,  # a catalog may take its time
            key_bindings=_key_bindings(),
            enable_history_search=True,
            **(session_options or {}),
        )

    def _prompt(self) -> str:
        """The prompt, which says if tables are read as they were at a time."""
        time = self._connection.settings.snapshot_time
        return _PROMPT if time is None else f"icesql @ {time}> "

    def run(self) -> int:
        """Read and run statements until ``\\q`` or Ctrl-D."""
        self._say("icesql · SQL on Iceberg tables · \\? for help, \\q to leave")
        while True:
            try:
                text = self._session.prompt()
            except KeyboardInterrupt:
                continue  # Ctrl-C at the prompt drops the line being typed
            except EOFError:
                return 0
            if text.strip() and not self.handle(text):
                return 0

    def handle(self, text: str) -> bool:
        """Run one input; False when it asks to leave. Errors are shown, not raised."""
        try:
            if text.lstrip().startswith("\\"):
                return self._obey(parse_command(text))
            command = in_words(text)
            if command is not None:
                return self._obey(command)
            self._execute(text)
        except Error as error:
            self._say(f"error: {error}")
        except KeyboardInterrupt:
            self._connection.cancel()
            self._say("cancelled")
        return True

    def _obey(self, command: Command) -> bool:
        statement = statement_of(command)
        match command:
            case Command("q"):
                return False
            case Command("?"):
                self._say(help_text())
            case Command("timing", argument):
                self._timing = _switched(self._timing, argument)
                self._say(f"timing is {'on' if self._timing else 'off'}")
            case Command("format", None):
                self._say(f"format is {self._format}; there are: {', '.join(TEXT_FORMATS)}")
            case Command("format", str(name)):
                if name not in TEXT_FORMATS:
                    near = similar_names(name, TEXT_FORMATS) or TEXT_FORMATS
                    raise ProgrammingError(f'unknown format "{name}"; try {", ".join(near)}')
                self._format = name
            case Command("o", path):
                if path is not None:
                    format_for(path, None)  # refuses an ending before anything is kept
                self._path = path
                self._say("results are shown" if path is None else f"the next result: {path}")
            case _ if statement is not None:
                self._execute(statement)
        return True

    def _execute(self, text: str) -> None:
        progress = ProgressLine(sys.stderr)
        self._connection.progress = progress if sys.stderr.isatty() else None
        try:
            for cursor in self._connection.execute_script(text):
                progress.clear()
                self._show(cursor, progress.clear)
        except QueryCancelledError as error:
            progress.clear()
            self._say(str(error))
        finally:
            progress.clear()
            self._connection.progress = None
        self._names.forget()

    def _show(self, cursor: Cursor, clear: Callable[[], None]) -> None:
        for note in cursor.notes:
            self._say(f"note: {one_line(note)}")
        if cursor.message or not cursor.description:
            self._say(cursor.message or "ok")
            return
        width = shutil.get_terminal_size().columns if self._out.isatty() else None
        colour = self._out.isatty() and "NO_COLOR" not in os.environ
        out, style = Output(self._out, self._format), Style(width, colour)
        path, self._path = self._path, None
        if path is None:
            count = show(cursor, self._format, out, style, clear)
        else:
            count = self._save(cursor, path)
            clear()
            self._say(f"written to {one_line(path)}")
        self._say(row_line(count, cursor.elapsed if self._timing else None))
        for report in cursor.scan_reports:
            self._say(scan_line(report))

    def _save(self, cursor: Cursor, path: str) -> int:
        from icesql.storage.output_file import OutputFile

        with OutputFile(path) as file:
            return save(cursor, format_for(path, None), path, file)

    def _say(self, text: str) -> None:
        out = Output(self._out)
        out.write(spelled_out(redact_urls(text)) + "\n")
        self._out.flush()


def _switched(now: bool, argument: str | None) -> bool:
    match argument:
        case None:
            return not now
        case "on" | "off":
            return argument == "on"
        case _:
            raise ProgrammingError(f"\\timing is on or off, not {argument!r}")


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @Condition
    def complete() -> bool:
        return is_complete(get_app().current_buffer.text)

    @bindings.add("enter", filter=complete)
    def _run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _lexer() -> Lexer:
    from pygments.lexers.sql import SqlLexer

    return PygmentsLexer(SqlLexer)


def history_path() -> Path:
    """Where the shell keeps its history: ``$XDG_STATE_HOME/icesql/history``."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "icesql" / "history"


def _history() -> History:
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Statements can hold personal data: nobody else may read them.
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
