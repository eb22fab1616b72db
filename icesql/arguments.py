"""The command line of ``icesql``, whose help and version import nothing else of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

# What ``repl.results`` writes; the last two are for files.
FORMATS: Final = (
    "table", "csv", "tsv", "json", "jsonl", "markdown", "html", "expanded", "parquet", "arrow",
)  # fmt: skip

# Of the doctor's findings, the heaviest first.
WEIGHTS: Final = ("high", "medium", "low")

_DESCRIPTION = """\
SQL with time travel on Apache Iceberg tables: query, write and maintain them.
Without -c or -f on a terminal: a shell. `icesql demo [DIR]`: a small warehouse to try it on.
"""

_EPILOGUE = """\
examples:
  icesql --warehouse ./warehouse -c "SELECT * FROM sales.orders LIMIT 10"
  icesql -c "SELECT count(*) FROM iceberg_scan('./table') VERSION AS OF 'v1'" --format csv
  icesql --warehouse ./warehouse -c "CALL system.rewrite_data_files('sales.orders')"
  icesql --catalog prod -f report.sql
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Asked for each argument, whether there is help to format or not; so it knows its width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width() - 2)


def _width() -> int:
    """Columns of the terminal, as ``shutil`` has them, which imports compressors."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; None is that of the process. Exits for help and misuse."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["help"]:
        return argparse.Namespace(command="help", words=words[1:], debug=False)
    parser = _parser()
    options = parser.parse_args(words)
    if options.command is None and options.directory is not None:
        parser.error(f"unexpected argument {options.directory!r}")
    if options.command is not None and (options.statements or options.file):
        parser.error(f"{options.command} takes neither -c nor -f")
    if options.overwrite and options.output in (None, "-"):
        parser.error("--overwrite goes with --output FILE")
    if options.command == "config" and options.directory is not None:
        parser.error(f"unexpected argument {options.directory!r}")
    if options.command not in ("config", "doctor") and options.no_ping:
        parser.error("--no-ping goes with config and doctor")
    if options.fail_on is not None and (options.command != "doctor" or options.directory is None):
        parser.error("--fail-on goes with doctor and a table")
    if options.command != "mcp" and options.http is not None:
        parser.error("--http goes with mcp")
    if options.command == "mcp" and (options.directory or options.output or options.format):
        parser.error("mcp takes no argument, --output or --format")
    if options.command == "cache" and options.directory not in (None, "clear"):
        parser.error(f"cache takes the word clear, not {options.directory!r}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="icesql",
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=_Formatter,
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["help", "demo", "cache", "config", "doctor", "mcp"],
        help="help [WORDS]: the manual, or what it says about them; "
        "demo: build and query a warehouse; cache: show what is kept of object stores; "
        "config: show what is in force, where it is from, and whether the catalogs answer; "
        "doctor: what ails a table, or the installation; "
        "mcp: serve agents over the Model Context Protocol, read-only",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        metavar="DIR",
        help="where demo puts its warehouse; for cache the word clear, which empties it; for "
        "doctor a table",
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
    where.add_argument(
        "--property",
        dest="properties",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="of the catalog and its store, such as s3.region=eu-west-1; may be repeated. Other "
        "users see a command line: secrets belong in .pyiceberg.yaml or the environment",
    )
    how = parser.add_argument_group("how to run it")
    how.add_argument(
        "--format", choices=FORMATS, help="of results (by the ending of --output, else table)"
    )
    how.add_argument(
        "-o", "--output", metavar="FILE", help="write the result to a file; - is standard output"
    )
    how.add_argument("--overwrite", action="store_true", help="replace the file of --output")
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
    how.add_argument("--verbose", action="store_true", help=argparse.SUPPRESS)
    how.add_argument(
        "-v",
        dest="variables",
        action=_VerboseOrVariable,
        nargs="?",
        default=[],
        metavar="NAME=VALUE",
        help="a variable: the value of $NAME in the statements, never text of SQL; may be "
        "repeated. Alone, as --verbose: rows, time and what each scan read, on stderr",
    )
    how.add_argument(
        "--continue-on-error", action="store_true", help="run the statements after one that fails"
    )
    _add_command_options(how)
    how.add_argument("--debug", action="store_true", help="errors with their traceback")
    _add_access(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="and exit")
    return parser


def _add_command_options(how: argparse._ArgumentGroup) -> None:
    """What goes with one of the commands alone."""
    how.add_argument(
        "--http", type=int, metavar="PORT", help="mcp over HTTP of this machine, not standard input"
    )
    how.add_argument("--no-ping", action="store_true", help="config asks no catalog")
    how.add_argument(
        "--fail-on",
        choices=WEIGHTS,
        help="doctor of a table exits with 1 where it finds something of this weight or a heavier "
        "one",
    )


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
        "--copy-to",
        action="append",
        metavar="ROOT",
        help="COPY may write files below this folder; may be repeated; "
        "anywhere if none of these options is given",
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


def access_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What the SQL may do, as ``connect`` takes it."""
    locked, catalogs, confine = options.locked, options.catalogs, options.confine
    given = {
        "service": options.service,
        "locked": _listed(locked) if isinstance(locked, str) else locked,
        "tables_by_path": options.tables_by_path,
        "catalogs": None if catalogs is None else _listed(catalogs),
        "files": options.files,
        "copy_to": options.copy_to,
        "confine": True if confine == [True] else confine,
        "read_only": options.read_only,
    }
    if not options.service and all(value in (None, False) for value in given.values()):
        given["copy_to"] = True  # whoever types the command may write files anyway
    return given


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


class _VerboseOrVariable(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if values is None:
            namespace.verbose = True
        elif "=" in values:
            namespace.variables = [*namespace.variables, values]
        else:
            parser.error(f"-v takes NAME=VALUE, not {values!r}; alone it stands behind the others")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from icesql import __version__

        print(f"icesql {__version__}")
        parser.exit()
