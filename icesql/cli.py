"""The ``icesql`` command: arguments in, rows on standard output, an exit code out.

Results go to standard output, everything else (notes, timing, errors) to standard error.
Exit codes: 0 all right, 1 a statement failed, 2 the command line is wrong, 130 interrupted.
Start-up is a feature: what a run does not need is not imported.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from icesql.config import unknown_variables
from icesql.errors import Error, InternalError, OperationalError, ProgrammingError
from icesql.repl.render import FORMATS, Style, row_line, write_result
from icesql.repl.single_floats import as_written
from icesql.repl.terminal import Messages, Output, cannot_write, one_line, say

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.dbapi.cursor import Cursor

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_DESCRIPTION = """\
SQL SELECT with time travel on Apache Iceberg tables.
Without -c or -f on a terminal: a shell. `icesql demo [DIR]`: a small warehouse to try it on.
"""

_EPILOGUE = """\
examples:
  icesql --warehouse ./warehouse -c "SELECT * FROM sales.orders LIMIT 10"
  icesql -c "SELECT count(*) FROM iceberg_scan('./table') VERSION AS OF 'v1'" --format csv
  icesql --catalog prod -f report.sql
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises for a failing statement."""
    _fill_closed_streams()
    with redirect_stderr(cast(TextIO, Messages(sys.stderr))):
        try:
            try:
                code = _run(_options(arguments))
            except SystemExit as end:  # argparse: help, version, a wrong command line
                code = end.code if isinstance(end.code, int) else USAGE
            Output(sys.stdout).flush()
        except BrokenPipeError:
            _abandon_output()  # the reader (`| head`) has what it wanted
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
    """Give the numbers of closed streams to nothing, before a file that is opened takes them."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(number)


def _abandon_output() -> None:
    """Python would write once more what could not be written: let it, into nothing."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None and options.directory is not None:
        parser.error(f"unexpected argument {options.directory!r}")
    if options.command is not None and (options.statements or options.file):
        parser.error(f"{options.command} takes neither -c nor -f")
    if options.command == "cache" and options.directory not in (None, "clear"):
        parser.error(f"cache takes the word clear, not {options.directory!r}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="icesql",
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["demo", "cache"],
        help="demo: build and query a warehouse; cache: show what is kept of object stores",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        metavar="DIR",
        help="where demo puts its warehouse; for cache the word clear, which empties it",
    )
    run = parser.add_argument_group("what to run")
    source = run.add_mutually_exclusive_group()
    source.add_argument(
        "-c",
        dest="statements",
        action="append",
        metavar="SQL",
        help="statements, separated by ';'; may be repeated",
    )
    source.add_argument("-f", dest="file", metavar="FILE", help="a file of statements; - is stdin")
    where = parser.add_argument_group("where the tables are")
    where.add_argument("--catalog", metavar="NAME", help="a catalog of .pyiceberg.yaml")
    where.add_argument("--warehouse", metavar="DIR", help="a directory of tables")
    where.add_argument("--uri", metavar="URI", help="a catalog, such as sqlite:///catalog.db")
    how = parser.add_argument_group("how to run it")
    how.add_argument("--format", default="table", choices=FORMATS, help="of results (table)")
    how.add_argument("--dialect", metavar="NAME", help="of the SQL: spark, trino, … (icesql)")
    how.add_argument("--timezone", metavar="ZONE", help="of the session (UTC)")
    how.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a setting, as SET does it; may be repeated",
    )
    how.add_argument(
        "-v", "--verbose", action="store_true", help="rows, time and what each scan read, on stderr"
    )
    how.add_argument("--debug", action="store_true", help="errors with their traceback")
    _add_access(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="and exit")
    return parser


def _add_access(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``connect`` that say what the SQL may do."""
    access = parser.add_argument_group("restrictions for untrusted SQL")
    access.add_argument(
        "--service", action="store_true", help="the strict side of all below that is not given"
    )
    access.add_argument(
        "--locked",
        nargs="?",
        const=True,
        metavar="NAME,…",
        help="settings that SET cannot change; without names, all",
    )
    paths = access.add_mutually_exclusive_group()
    paths.add_argument(
        "--tables-by-path",
        action="append",
        metavar="ROOT",
        help="read tables by path below this folder or prefix only; may be repeated",
    )
    paths.add_argument(
        "--no-tables-by-path", action="store_const", const=False, dest="tables_by_path"
    )
    access.add_argument(
        "--catalogs", metavar="NAME,…", help="catalogs that SQL may open beside its own; '' is none"
    )
    access.add_argument(
        "--files",
        action="append",
        metavar="ROOT",
        help="local files below this folder may be read; may be repeated",
    )
    access.add_argument(
        "--confine",
        nargs="?",
        const=True,
        action="append",
        metavar="ROOT",
        help="paths of tables lie below this folder or prefix; may be repeated; "
        "without one, below the table's own folder",
    )
    access.add_argument("--read-only", action="store_true", default=None, help="refuse changes")


def _access(options: argparse.Namespace) -> dict[str, Any]:
    """These arguments as ``connect`` takes them."""
    locked, catalogs, confine = options.locked, options.catalogs, options.confine
    return {
        "service": options.service,
        "locked": _listed(locked) if isinstance(locked, str) else locked,
        "tables_by_path": options.tables_by_path,
        "catalogs": None if catalogs is None else _listed(catalogs),
        "files": options.files,
        "confine": True if confine == [True] else confine,
        "read_only": options.read_only,
    }


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


class _Version(argparse.Action):
    """Prints the installed version; looked up only when asked, as it reads package metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"icesql {version('icesql')}")
        except PackageNotFoundError:
            print("icesql, run from a checkout")
        parser.exit()


# ------------------------------------------------------------------ running


def _run(options: argparse.Namespace) -> int:
    try:
        if options.command == "demo":
            from icesql import demo

            return demo.run(options.directory)
        if options.command == "cache":
            return _cache(options)
        script = _script(options)
        with _connect(options) as connection:
            if script is None:
                from icesql.repl.shell import Shell

                return Shell(connection, output_format=options.format).run()
            return _run_script(connection, script, options)
    except (BrokenPipeError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        if options.debug:
            import traceback

            say(traceback.format_exc())
        elif not isinstance(error, Error) or isinstance(error, InternalError):
            # Report a bug like any error, on standard error.
            say(f"error: {type(error).__name__}: {error}")
            say("this is a bug in icesql; --debug shows where")
        else:
            say(f"error: {error}")
        return FAILED


def _cache(options: argparse.Namespace) -> int:
    from icesql.config import Settings
    from icesql.storage.stores.cached import describe_cache

    settings = Settings.from_environment(os.environ)
    for name, value in options.settings:
        settings = settings.with_text(name, value)
    for line in describe_cache(settings, clear=options.directory == "clear"):
        Output(sys.stdout).write(f"{line}\n")
    return OK


def _script(options: argparse.Namespace) -> str | None:
    """The statements to run; None for the shell."""
    name = "-c" if options.statements else options.file or "-"
    if name == "-" and options.file is None and sys.stdin is not None and sys.stdin.isatty():
        return None
    try:
        if options.statements:
            return ";\n".join(map(_utf8, options.statements))
        if name != "-":
            return Path(name).read_text(encoding="utf-8")
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return _utf8(sys.stdin.read())
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
    if unknown:  # connect would say it again, with a line of this file
        import warnings

        warnings.simplefilter("ignore", icesql.Warning)
    return icesql.connect(
        options.catalog,
        uri=options.uri,
        warehouse=options.warehouse,
        dialect=options.dialect,
        timezone=options.timezone,
        settings=dict(options.settings),
        **_access(options),
    )


def _run_script(connection: Connection, script: str, options: argparse.Namespace) -> int:
    number = 1  # of the statement that runs
    try:
        cursors = connection.execute_script(script)
        while (cursor := next(cursors, None)) is not None:
            if number > 1 and cursor.description and options.format in ("table", "markdown"):
                Output(sys.stdout).write("\n")
            _show(cursor, options)
            number += 1
    except Error as error:
        if options.file in (None, "-") or options.debug or isinstance(error, InternalError):
            raise
        say(f"error: {_place(script, number, error, options)}: {error}")
        return FAILED
    return OK


def _place(script: str, number: int, error: Error, options: argparse.Namespace) -> str:
    """Where in a file the error is: its line, if it knows one, else that of its statement."""
    from icesql.sql.parse import split_statements

    line: int | None = getattr(error, "line", None)
    try:
        texts = split_statements(script, dialect=options.dialect)
    except Error:  # a quote that is not closed
        return f"{options.file}, line {line}" if line is not None else str(options.file)
    lines, position = [], 0
    for text in texts:
        start = script.index(text, position)
        lines.append(script.count("\n", 0, start) + 1)
        position = start + len(text)
    if line is None:
        line = lines[number - 1]
    elif number == 1:
        # Nothing has run if one of the statements does not parse.
        number = max(1, sum(each <= line for each in lines))
    return f"{options.file}, line {line}, statement {number} of {len(texts)}"


def _show(cursor: Cursor, options: argparse.Namespace) -> None:
    for note in cursor.notes:
        say(f"note: {one_line(note)}")
    count = None
    out = Output(sys.stdout, options.format)
    if cursor.description:
        from icesql.dbapi.cursor import result_types

        gc.enable()
        rows = as_written(cursor, result_types(cursor))
        count = write_result(out, options.format, cursor.description, rows, _style(out))
    if options.verbose:
        from icesql.repl.render import scan_lines

        out.flush()
        if count is not None:
            say(row_line(count, cursor.elapsed))
        for line in scan_lines(cursor.scan_reports):
            say(line)


def _style(out: Output) -> Style:
    return Style(colour=out.isatty() and "NO_COLOR" not in os.environ)
