"""Backslash commands of the shell that do not run a statement of SQL; ``icesql undo TABLE``."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icesql.config import setting_text
from icesql.errors import Error, ProgrammingError, similar_names
from icesql.manual.lookup import manual
from icesql.manual.screen import laid_out
from icesql.quoting import literal
from icesql.repl.commands import Command, help_lines, statement_of
from icesql.repl.results import TEXT_FORMATS, format_for
from icesql.repl.table_history import history_lines, travel
from icesql.scan.report import scan_lines

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.repl.shell import Shell
    from icesql.session.outcome import Outcome


# ------------------------------------------------------------------ undo


def undo(
    connection: Connection,
    table: str,
    say: Callable[[str], object],
    *,
    branch: str | None = None,
    head: int | None = None,
    agreed: bool = False,
) -> bool:
    """Set a branch, main without one, to the parent of its head; False if the user declines.

    ``say`` is called with each line about the changes that are undone. ``head`` is the snapshot to
    undo, None for any. With ``agreed`` no confirmation is needed. Raises CommitConflictError if the
    branch is at another snapshot than ``head``, or than the one that was shown; ProgrammingError if
    there is no terminal for the confirmation, and what CALL raises.
    """
    from msgspec.structs import replace

    from icesql.context import QueryContext
    from icesql.sql.writes.procedure_calls import CallProcedure

    ref = (branch or "").replace('"', '""')
    name = f'{table}."branch_{ref}"' if branch not in (None, "main") else table
    session = connection._session

    def run(call: CallProcedure) -> Outcome:
        return session.execute(call, QueryContext.begin(connection.settings))

    with session.without_secrets():
        (call,) = session.parse("CALL system.rollback_to_snapshot(?, -1)", [name])
        assert isinstance(call, CallProcedure)
        look = run(replace(call, explain=True, head=head))
        assert look.result is not None
        found = next(int(row[2]) for row in look.result.fetch(None) if row[1] == "snapshot")
        for note in look.notes:
            for line in note.split("; "):
                say(line)
        if not agreed and not _agrees(found):
            say("nothing was changed")
            return False
        run(replace(call, head=found))
    say(f"done: {table} is as it was before snapshot {found}")
    return True


def _agrees(head: int) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise ProgrammingError(
            "nothing was changed: there is no terminal to ask on; --yes takes it back, with "
            f"--snapshot {head} only while that is the last commit"
        )
    try:
        return input("take it back? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


# ------------------------------------------------------------------ commands


# Variables of the shell and of ``-v NAME=VALUE``: values of parameters, never text of SQL.

_WORDS = {"true": True, "false": False, "null": None}


def variable_name(text: str) -> str:
    """The name, if ``$NAME`` can be written in SQL. Raises ProgrammingError."""
    if not re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII):
        raise ProgrammingError(f"{text!r} is no name of a variable; use letters, digits and _")
    return text


def variable_value(text: str) -> Any:
    """A number, true, false or null as such, anything else as a text; quotes make it a text."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)", text, re.ASCII):
        return Decimal(text)
    return _WORDS.get(text.lower(), text)


def variable(text: str) -> tuple[str, Any]:
    """``NAME=VALUE`` in parts. Raises ProgrammingError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ProgrammingError(f"{text!r} is not NAME=VALUE")
    return variable_name(name.strip()), variable_value(value)


# Where in a file of statements an error is.


def place_in_file(
    file: str, script: str, number: int, error: Error, dialect: str | None = None
) -> str:
    """``file:line``, which editors open: that of the error, if it knows it, else of its statement.

    ``number`` counts statements from 1.
    """
    from icesql.sql.parse import split_statements

    line: int | None = getattr(error, "line", None)
    try:
        placed = split_statements(script, dialect=dialect)
    except Error:  # a quote that is not closed
        return f"{file}:{line}" if line is not None else file
    lines = [script.count("\n", 0, start) + 1 for start, _ in placed]
    if line is None:
        line = lines[number - 1]
    elif number == 1:
        # Nothing has run if one of the statements does not parse.
        number = max(1, sum(each <= line for each in lines))
    return f"{file}:{line}, statement {number} of {len(placed)}"


# Commands that do more than SQL can, and so evade the limits of a restricted connection.
_OUTSIDE = frozenset({"!", "e", "i", "o", "s", "pager"})


def run_command(shell: Shell, command: Command) -> bool:
    """Run a command; False when it ends the shell. Raises icesql's errors and KeyboardInterrupt."""
    if command.name in _OUTSIDE and shell.is_restricted:
        raise ProgrammingError(f"\\{command.name} is refused: this shell is restricted")
    statement = statement_of(command)
    match command:
        case Command("q"):
            return False
        case Command("?", None):
            shell.tell(help_lines(shell.display.columns()))
        case Command("?", str(topic)):
            shell.tell(laid_out(manual(topic), shell.display.columns(), colour=False))
        case Command("snapshots", str(table)):
            shell.tell(history_lines(shell.connection, table, shell.display.columns()))
        case Command("undo", str(table)):
            name = table.removesuffix("--yes").rstrip()
            undo(shell.connection, name, shell.say, agreed=name != table)
            shell.names.forget()
        case Command("at", argument):
            travel(shell, argument)
        case Command("conninfo"):
            _tell_connection(shell)
        case Command("last"):
            if not shell.reports:
                shell.say("the last statement read no table")
            for report in shell.reports:
                for line in scan_lines(report):
                    shell.say(line)
        case Command("explain", query):
            shell.run_sql(f"EXPLAIN {query or shell.last_statement()}", kept=False)
        case Command("all"):
            shell.run_sql(shell.last_statement(), everything=True)
        case Command("watch", seconds):
            _watch(shell, seconds)
        case Command("engine", None):
            shell.say(f"engine is {shell.connection.settings.engine}")
        case Command("engine", name):
            shell.run_sql(f"SET engine = {literal(name or '')}", kept=False)
        case Command("set" | "unset"):
            _set(shell, command)
        case Command("i", str(path)):
            _run_file(shell, path)
        case Command("e"):
            _edit(shell)
        case Command("s", path):
            _tell_history(shell, path)
        case Command("!", str(text)):
            # Safe: the text is what the person at this prompt typed after \\!, whose own shell it
            # is. No SQL, row, path, script or message comes here (\\i and -f run SQL alone), and a
            # restricted shell has refused the command above.
            subprocess.run(text, shell=True, check=False)
        case _ if statement is not None:
            shell.run_sql(statement, kept=command.name in ("diff", "changes", "files"))
        case _:
            _switch(shell, command)
    return True


# ------------------------------------------------------------------ how results are shown


def _switch(shell: Shell, command: Command) -> None:
    display, argument = shell.display, command.argument
    match command.name:
        case "timing":
            display.timing = _on(command, display.timing)
            shell.say(f"timing is {setting_text(display.timing)}")
        case "pager":
            display.paged = _on(command, display.paged)
            shell.say(f"the pager is {setting_text(display.paged)}")
        case "x":
            words = ("on", "off", "auto")
            if argument is not None and argument not in words:
                raise ProgrammingError(f"\\x is on, off or auto, not {argument!r}")
            display.expanded = argument or ("off" if display.expanded == "on" else "on")
            shell.say(f"expanded display is {display.expanded}")
        case "format" if argument is None:
            shell.say(f"format is {display.format}; there are: {', '.join(TEXT_FORMATS)}")
        case "format":
            if argument not in TEXT_FORMATS:
                near = similar_names(argument or "", TEXT_FORMATS) or TEXT_FORMATS
                raise ProgrammingError(f'unknown format "{argument}"; try {", ".join(near)}')
            display.format = argument
        case "o":
            if argument is not None:
                format_for(argument, None)  # raises before anything is changed
            shell.next_file = argument
            message = "results are shown" if argument is None else f"the next result: {argument}"
            shell.say(message)


def _on(command: Command, now: bool) -> bool:
    match command.argument:
        case None:
            return not now
        case "on" | "off" as word:
            return word == "on"
        case other:
            raise ProgrammingError(f"\\{command.name} is on or off, not {other!r}")


# ------------------------------------------------------------------ the shell itself


def _tell_connection(shell: Shell) -> None:
    connection, settings = shell.connection, shell.connection.settings
    own = connection.catalog
    rows = [
        ("catalog", "none; iceberg_scan('path') reads tables" if own is None else own.name),
        ("kind", "" if own is None else own.kind),
        ("engine", settings.engine),
        ("dialect", shell.dialect),
        ("time zone", settings.timezone),
        ("reads at", shell.travels_to() or "now"),
        ("changes", "refused" if connection.access.read_only else "allowed"),
    ]
    for name, value in rows:
        if value:
            shell.say(f"{name + ':':<11}{value}")


def _watch(shell: Shell, argument: str | None) -> None:
    try:
        seconds = float(argument or 2)
        if not 0.1 <= seconds <= 86_400:
            raise ValueError
    except ValueError:
        raise ProgrammingError(f"\\watch takes seconds, not {argument!r}") from None
    text = shell.last_statement()
    try:
        while True:
            shell.say(f"{time.strftime('%H:%M:%S')}, every {seconds:g} s; Ctrl-C ends it")
            if not shell.run_sql(text, everything=True):
                return
            time.sleep(seconds)
    except KeyboardInterrupt:  # while it sleeps
        shell.say("")  # the terminal has written ^C at the margin


def _set(shell: Shell, command: Command) -> None:
    name, _, value = (command.argument or "").partition(" ")
    if not name:
        for each, given in shell.variables.items():
            shell.say(f"{each} = {given!r}")
        return
    variable_name(name)
    if command.name == "unset":
        if shell.variables.pop(name, shell) is shell:
            raise ProgrammingError(f"there is no variable {name}")
    elif not value.strip():
        shell.say(f"{name} = {shell.variables[name]!r}" if name in shell.variables else
                  f"{name} is not set; \\set {name} VALUE sets it")  # fmt: skip
    else:
        shell.variables[name] = variable_value(value.strip())


def _run_file(shell: Shell, path: str) -> None:
    try:
        script = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProgrammingError(f"cannot read {path}: {reason}") from error
    shell.ran = 0
    try:
        if not shell.run_sql(script, kept=False):
            shell.connection._session.fail_transaction()
    except Error as error:
        shell.connection._session.fail_transaction()
        place = place_in_file(path, script, shell.ran + 1, error, shell.dialect or None)
        raise ProgrammingError(f"{place}: {error}") from error


def _edit(shell: Shell) -> None:
    import tempfile

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="icesql-") as folder:
        path = Path(folder) / "statement.sql"
        path.write_text((shell.prefill or shell.last_text).rstrip() + "\n", encoding="utf-8")
        path.chmod(0o600)
        try:
            done = subprocess.run([*shlex.split(command), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise ProgrammingError(f"cannot run {command}: {error}; set EDITOR") from error
        if done.returncode == 0:
            shell.prefill = path.read_text(encoding="utf-8", errors="replace").strip()


def _tell_history(shell: Shell, path: str | None) -> None:
    texts = shell.history()
    if path is None:
        for text in texts[-100:]:
            shell.say(text)
        return
    from icesql.storage.new_files import OutputFile

    with OutputFile(path) as file:
        file.write("".join(f"{text}\n" for text in texts).encode())
    shell.say(f"written to {path}")
