"""The ``icesql`` command: arguments in, rows on standard output, an exit code out.

Results go to standard output, everything else (notes, timing, errors) to standard error.
Exit codes: 0 all right, 1 a statement failed, 2 the command line is wrong, 3 maintenance was ended
by its budget, 130 interrupted.
Start-up is a feature: modules that a run does not need are not imported.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from icesql.arguments import access_arguments, read_arguments
from icesql.errors import (
    Error,
    InternalError,
    OperationalError,
    ProgrammingError,
    json_document,
)
from icesql.repl.terminal import (
    Messages,
    Output,
    cannot_write,
    coloured,
    draws_lines,
    one_line,
    say,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from icesql.dbapi.connection import Connection
    from icesql.dbapi.cursor import Cursor
    from icesql.health.finding import CatalogDiagnosis
    from icesql.health.runs import TableReport
    from icesql.repl.preferences import ConfigFile
    from icesql.repl.results import File, Screen

_MARK: Final = "\ufeff"  # of UTF-8, as editors on Windows write it
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises for a failing statement."""
    _fill_closed_streams()
    with redirect_stderr(cast(TextIO, Messages(sys.stderr))):
        try:
            try:
                code = _run(read_arguments(arguments))
            except SystemExit as end:  # argparse: help, version, a wrong command line
                if (number := getattr(end, "number", None)) is not None:  # of a signal
                    os.kill(os.getpid(), number)  # its sender sees that it has ended the process
                code = end.code if isinstance(end.code, int) else USAGE
            Output(sys.stdout).flush()
        except BrokenPipeError:
            _abandon_output()  # the reader (`| head`) has closed the pipe
            return OK
        except (OperationalError, OSError) as error:  # the help, or the end of a result
            say(f"error: {error if isinstance(error, Error) else cannot_write(error)}")
            _abandon_output()
            return FAILED
        except KeyboardInterrupt:
            say("interrupted")
            return INTERRUPTED
        return code


def _fill_closed_streams() -> None:
    """Open the null device for closed standard streams, before other files get their numbers."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(number)


def _abandon_output() -> None:
    """Redirect output to the null device: Python flushes it again at exit after a failed write."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ------------------------------------------------------------------ running


def _say_error(options: argparse.Namespace, error: BaseException, place: str = "") -> None:
    """Print an error on standard error: a line of text, or of JSON with ``--format json``."""
    own = isinstance(error, Error) and not isinstance(error, InternalError)
    text = f"{error}" if own else f"{type(error).__name__}: {error}"
    if options.format != "json":
        say(f"error: {place}: {text}" if place else f"error: {text}")
        return
    import json

    at = getattr(error, "position", None) or (getattr(error, "line", None), None)
    found = {"type": type(error).__name__, "message": text, "line": at[0], "column": at[1]}
    said = {"error": {key: each for key, each in {**found, "place": place or None}.items() if each}}
    say(json.dumps(said, ensure_ascii=False))


def _run(options: argparse.Namespace) -> int:
    if options.debug:
        os.environ["ICESQL_TRACEBACK"] = "1"
    try:
        match options.command:
            case "help":
                return _help(options)
            case "completion":
                from icesql.completion import completion_script

                Output(sys.stdout).write(completion_script(options.words[0]))
                return OK
            case "demo":
                from icesql.demo import run_demo

                run_demo(_word(options), Output(sys.stdout))
                return OK
            case "cache":
                return _cache(options)
            case "config":
                return _config(options)
            case "mcp":
                return _mcp(options)
            case "doctor":
                return _doctor(options)
            case "maintain":
                return _maintain(options)
            case "undo":
                return _undo(options)
        script = _relocation(options) or _script(options)
        _add_config(options)
        return _run_on_connection(script, options)
    except (BrokenPipeError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        if options.debug:
            import traceback

            say(traceback.format_exc())
            return FAILED
        _say_error(options, error)  # a bug, too, on standard error
        if not isinstance(error, Error) or isinstance(error, InternalError):
            say("this is a bug in icesql; --debug shows where")
        elif error.topic and sys.stderr.isatty() and options.format != "json":
            say(f"more about it: icesql help {error.topic}")
        return FAILED


def _run_on_connection(script: str | None, options: argparse.Namespace) -> int:
    """Run a script, or the shell; however it ends, the end commits nothing."""
    from icesql.repl.signals import raise_swallowed, unwind_on_signals

    raise_swallowed()
    if script is None or re.search(r"\b(BEGIN|START)\b", script, re.IGNORECASE):
        unwind_on_signals()  # other scripts have no transaction
    connection = _connect(options)
    try:
        if script is not None:
            return _run_script(connection, script, options)
        from icesql.repl.shell import Shell

        gc.enable()  # a session may be long
        code = Shell(
            connection,
            output_format=options.format,
            preferences=options.shell,
            dialect=options.dialect or "",
            variables=_variables(options),
        ).run()
        return FAILED if _rolled_back(connection) else code
    except BrokenPipeError:
        if not _rolled_back(connection):
            raise
        _abandon_output()
        return FAILED
    finally:
        _rolled_back(connection)
        connection.close()


def _rolled_back(connection: Connection) -> bool:
    """Roll back an open transaction; if it had changes, print a note and return True."""
    transaction = connection._session.state.transaction
    is_lost = transaction is not None and transaction.has_changes
    connection.rollback()
    if is_lost:
        say("error: a transaction was open at the end and was rolled back; COMMIT applies one")
    return is_lost


def _word(options: argparse.Namespace) -> str | None:
    """The word after a command that takes one at most."""
    return options.words[0] if options.words else None


def _help(options: argparse.Namespace) -> int:
    """Show a text of the manual: laid out on a terminal, as Markdown elsewhere."""
    from icesql.manual.lookup import manual

    text, out = manual(" ".join(options.words)), Output(sys.stdout)
    if not out.isatty():
        out.write(f"{text}\n")
        return OK
    from icesql.manual.screen import laid_out
    from icesql.repl.display import Display

    display = Display(sys.stdout)
    lines = laid_out(text, display.columns(), colour=coloured(sys.stdout))
    if not display.page_lines(lines):
        out.styled("\n".join(lines) + "\n")
    return OK


def _cache(options: argparse.Namespace) -> int:
    from icesql.config import Settings
    from icesql.storage.cache import describe_cache

    settings = Settings.from_environment(os.environ)
    for name, value in options.settings:
        settings = settings.with_text(name, value)
    for line in describe_cache(settings, clear=options.words == ["clear"]):
        Output(sys.stdout).write(f"{line}\n")
    return OK


def _config(options: argparse.Namespace) -> int:
    from icesql.config import unknown_variables
    from icesql.config_report import COLUMNS, config_report
    from icesql.repl.preferences import read_config
    from icesql.repl.results import show_texts

    for each in unknown_variables(os.environ):
        say(f"warning: {each}")
    file = read_config(os.environ)
    _add_places(options, file)
    rows, answered = config_report(options, access_arguments(options), file)
    output_format = options.format or "table"
    show_texts(COLUMNS, rows, output_format, Output(sys.stdout, output_format))
    return OK if answered else FAILED


def _doctor(options: argparse.Namespace) -> int:
    from icesql.repl.results import show_texts

    output_format = options.format or "table"
    out = Output(sys.stdout, output_format)
    table = _word(options)
    if table is None and not options.all:
        from icesql.installation import COLUMNS, installation

        show_texts(COLUMNS, list(installation()), output_format, out)
        return OK if options.no_ping else _config(options)
    from icesql.health.finding import CatalogDiagnosis

    _add_config(options)
    options.read_only = True
    with _connect(options) as connection:
        gc.enable()  # many manifests leave much behind
        found = connection.doctor(table) if table is not None else _whole_catalog(connection)
    if output_format == "json":
        text = json_document(found.to_dict(), indent=2)
    elif output_format == "html":
        from icesql.storage.credentials import redact_urls

        place = redact_urls(options.warehouse or options.uri or options.catalog or "")
        place = os.path.abspath(place) if os.path.isdir(place) else place
        text = found.page(place) if isinstance(found, CatalogDiagnosis) else found._repr_html_()
    else:
        text = str(found)
    out.write(f"{text}\n")
    unread = isinstance(found, CatalogDiagnosis) and found.errors
    heavy = options.fail_on is not None and found.is_as_heavy_as(options.fail_on)
    return FAILED if unread or heavy else OK


def _whole_catalog(connection: Connection) -> CatalogDiagnosis:
    """The diagnosis of all tables, with a progress line on a terminal."""
    if not draws_lines(sys.stderr):
        return connection.doctor()
    from icesql.repl.progress import ProgressLine

    line = ProgressLine(sys.stderr)
    connection.progress = line
    line.watch()
    try:
        return connection.doctor()
    finally:
        line.end()
        connection.progress = None


def _relocation(options: argparse.Namespace) -> str | None:
    """The CALL statement of the commands copy and restore; None for other commands."""
    if options.command not in ("copy", "restore"):
        return None
    names = ("table", "location", "since") if options.command == "copy" else ("location", "table")
    texts = [word.replace("'", "''") for word in options.words]
    given = [f"{name} => '{text}'" for name, text in zip(names, texts, strict=False)]
    if options.verify:
        given.append("verify => true")
    options.dialect = None  # the texts are quoted as in the default dialect
    return f"CALL system.{options.command}_table({', '.join(given)})"


def _maintain(options: argparse.Namespace) -> int:
    from icesql.config import state_file
    from icesql.health.policy import read_policy

    def tell(table: TableReport, number: int, count: int) -> None:
        say(f"[{number:,}/{count:,}] {table.line}")

    _add_config(options)
    if options.read_only is None:
        options.read_only = False  # whoever types this command wants changes
    history = options.history
    if history is None and (options.policy is None or read_policy(options.policy).history is None):
        history = str(state_file("maintain.jsonl"))
    with _connect(options) as connection:
        gc.enable()  # many manifests leave much behind
        done = connection.maintain(
            None if options.all else options.words,
            policy=options.policy,
            actions=options.actions.split(",") if options.actions else None,
            budget=options.budget,
            history=history,
            dry_run=options.dry_run,
            tell=tell,
        )
    for each in done.warnings:
        say(f"warning: {each}")
    if options.format == "json":
        text = json_document(done.to_dict(), indent=2)
    else:
        text = str(done)
    Output(sys.stdout).write(f"{text}\n")
    return done.exit_code


def _undo(options: argparse.Namespace) -> int:
    from icesql.repl.run_command import undo

    _add_config(options)
    if options.read_only is None:
        options.read_only = False  # whoever types this command wants a change
    options.dialect = None
    out = Output(sys.stdout)
    with _connect(options) as connection:
        done = undo(
            connection,
            options.words[0],
            lambda line: out.write(f"{one_line(line)}\n"),
            branch=options.branch,
            head=options.snapshot,
            agreed=options.yes,
        )
    return OK if done else FAILED


def _mcp(options: argparse.Namespace) -> int:
    """Serve agents, with the strict value of each option that the command line does not set."""
    try:
        from icesql.mcp.server import serve
    except ImportError as error:
        from icesql.errors import MissingExtraError

        raise MissingExtraError("icesql mcp", extra="mcp") from error
    options.service = options.read_only = True
    given = dict(options.settings)
    options.settings = list({"query_timeout": "60", **given}.items())
    with _connect(options) as connection:
        gc.enable()  # the start is over, and a server lives long
        serve(connection, options.http)
    return OK


def _add_config(options: argparse.Namespace) -> None:
    """Set options that the configuration file has and the command line does not."""
    from icesql.config import config_path

    options.shell = None
    path = config_path(os.environ)
    if not path or ("ICESQL_CONFIG" not in os.environ and not os.path.exists(path)):
        return  # most people have none
    from icesql.repl.preferences import read_config

    config = read_config(os.environ)
    _add_places(options, config)
    for name in ("dialect", "timezone"):
        if getattr(options, name) is None:
            setattr(options, name, config.connect.get(name))
    options.settings = [*config.settings.items(), *options.settings]
    options.shell = config.shell


def _add_places(options: argparse.Namespace, config: ConfigFile) -> None:
    if options.catalog is options.uri is options.warehouse is None:
        for name in ("catalog", "uri", "warehouse"):
            setattr(options, name, config.connect.get(name))


def _variables(options: argparse.Namespace) -> dict[str, Any]:
    from icesql.repl.run_command import variable

    return dict(map(variable, options.variables))


def _script(options: argparse.Namespace) -> str | None:
    """The statements to run; None for the shell."""
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if options.command == "shell":
        if not terminal:
            say(
                "icesql shell: standard input is no terminal; icesql query reads statements from it"
            )
            raise SystemExit(USAGE)
        return None
    name = "-c" if options.statements else options.file or "-"
    if name == "-" and options.file is None and terminal:
        if options.command == "query":
            say("icesql query: no statement; write one behind it, or -f FILE")
            raise SystemExit(USAGE)
        return None
    try:
        if options.statements:
            return ";\n".join(map(_utf8, options.statements))
        if name != "-":
            with open(name, encoding="utf-8-sig") as file:  # Windows puts a mark in front
                return file.read()
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return _utf8(sys.stdin.read()).removeprefix(_MARK)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        say(f"icesql: cannot read {name}: {reason}")
        raise SystemExit(USAGE) from None


def _utf8(text: str) -> str:
    """Text whose bytes Python could not read in the locale's encoding, read as UTF-8."""
    if text.isascii() or not any("\udc80" <= each <= "\udcff" for each in text):
        return text
    return text.encode(sys.getfilesystemencoding(), "surrogateescape").decode("utf-8")


def _connect(options: argparse.Namespace) -> Connection:
    import icesql
    from icesql.access import of_command
    from icesql.config import unknown_variables

    for name in ("catalog", "warehouse", "uri"):
        with suppress(UnicodeDecodeError):  # a name of other bytes is the system's to judge
            if (given := getattr(options, name)) and (text := _utf8(given)) != given:
                raise ProgrammingError(
                    f"--{name} {text} cannot be opened in a locale of "
                    f"{sys.getfilesystemencoding()} names; set PYTHONUTF8=1"
                )
    unknown = unknown_variables(os.environ)
    for each in unknown:
        say(f"warning: {each}")
    if unknown:  # connect would warn again, with a line of this file
        import warnings

        warnings.simplefilter("ignore", icesql.Warning)
    return icesql.connect(
        options.catalog,
        uri=options.uri,
        warehouse=options.warehouse,
        properties=dict(options.properties),
        dialect=options.dialect,
        timezone=options.timezone,
        settings=dict(options.settings),
        **of_command(access_arguments(options)),
    )


def _run_script(connection: Connection, script: str, options: argparse.Namespace) -> int:
    from icesql.repl.results import File, Screen, format_for

    name, path = format_for(options.output, options.format), options.output
    if path in (None, "-"):
        return _run_statements(connection, script, options, Screen(name))
    with File(name, path, overwrite=options.overwrite) as target:
        code = _run_statements(connection, script, options, target)
        if code == OK:
            target.finish()
    return code


def _run_statements(
    connection: Connection, script: str, options: argparse.Namespace, target: Screen | File
) -> int:
    if options.continue_on_error:
        return _run_each(connection, script, options, target)
    number = 1  # of the statement that runs
    try:
        cursors = connection.execute_script(script, _parameters(options))
        while (cursor := next(cursors, None)) is not None:
            _show(cursor, options, target)
            number += 1
    except Error as error:
        if options.file in (None, "-") or options.debug or isinstance(error, InternalError):
            raise
        from icesql.repl.run_command import place_in_file

        place = place_in_file(options.file, script, number, error, options.dialect)
        _say_error(options, error, place)
        return FAILED
    return FAILED if _rolled_back(connection) else OK


def _parameters(options: argparse.Namespace) -> dict[str, Any] | None:
    if not options.variables:
        return None
    from icesql.context import Variables

    return Variables(_variables(options))


def _run_each(
    connection: Connection, script: str, options: argparse.Namespace, target: Screen | File
) -> int:
    """Run every statement of a script, also after one that failed."""
    from icesql.sql.parse import split_statements

    name = "-c" if options.statements else options.file or "-"
    name = "standard input" if name == "-" else name
    code = OK
    statements = split_statements(script, dialect=options.dialect)
    for number, (start, text) in enumerate(statements, 1):
        # At its position in the script, so that errors show lines and columns of the script.
        first = script.count("\n", 0, start)
        placed = "\n" * first + " " * (start - script.rfind("\n", 0, start) - 1) + text
        try:
            for cursor in connection.execute_script(placed, _parameters(options)):
                _show(cursor, options, target)
        except InternalError:
            raise
        except Error as error:
            line = getattr(error, "line", None) or first + 1
            _say_error(options, error, f"{name}:{line}, statement {number}")
            connection._session.fail_transaction()
            code = FAILED
    return FAILED if _rolled_back(connection) else code


def _show(cursor: Cursor, options: argparse.Namespace, target: Screen | File) -> None:
    for note in cursor.notes:
        say(f"note: {one_line(note)}")
    count = None
    if cursor.description:
        gc.enable()
        count = target.take(cursor)
    if options.verbose:
        from icesql.repl.render import row_line
        from icesql.scan.report import scan_line

        if count is not None:
            say(row_line(count, cursor.elapsed))
        for report in cursor.scan_reports:
            say(scan_line(report))
