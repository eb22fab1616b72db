"""The command line of ``icesql``, whose help and version import nothing else of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from icesql.errors import near_or_all

# The formats that ``repl.results`` writes; the last two are for files.
FORMATS: Final = (
    "table", "csv", "tsv", "json", "jsonl", "markdown", "html", "expanded", "parquet", "arrow",
)  # fmt: skip

# The severities of the doctor's findings, the worst first.
WEIGHTS: Final = ("high", "medium", "low")


class Command:
    """A subcommand of ``icesql``: its purpose, its arguments, and its examples.

    ``takes`` is shown in its usage; ``most`` is the greatest number of words, None for any. A plain
    class: NamedTuple costs a millisecond of each start, and a dataclass more.
    """

    def __init__(
        self,
        summary: str,
        takes: str = "",
        most: int | None = 0,
        about: str = "",
        examples: tuple[str, ...] = (),
    ) -> None:
        self.summary, self.takes, self.most = summary, takes, most
        self.about, self.examples = about, examples


COMMANDS: Final[dict[str, Command]] = {
    "query": Command(
        "run statements",
        "[SQL ...]",
        None,
        "Runs statements and shows their rows: those of the command line, of -f FILE, or of "
        "standard input. `icesql -c SQL` does the same.",
        (
            "icesql query 'SELECT * FROM sales.orders LIMIT 10' --warehouse ./warehouse",
            "icesql query -f report.sql --catalog prod --format csv",
            "icesql query 'SELECT * FROM sales.orders' -o orders.parquet",
        ),
    ),
    "shell": Command(
        "start a shell",
        about="Reads statements at a prompt, with completion, history and a pager. `icesql` "
        "without statements does the same on a terminal.",
        examples=("icesql shell --warehouse ./warehouse",),
    ),
    "demo": Command(
        "build a small warehouse and query its past",
        "[DIR]",
        1,
        "DIR is a new folder (./icesql-demo). One that holds the demo is queried as it is.",
        ("icesql demo", "icesql demo /tmp/try"),
    ),
    "doctor": Command(
        "say what ails a table, or the installation",
        "[TABLE | --all]",
        1,
        "Of a table: what its metadata tells, with the statement that mends it and what that "
        "brings. --all: of every table of the catalog, the worst first. Without a table: the "
        "extras that are installed, Java, and whether the catalogs answer.",
        (
            "icesql doctor sales.orders --catalog prod",
            "icesql doctor sales.orders --fail-on high --format json",
            "icesql doctor --all --catalog prod --format html > lake.html",
            "icesql doctor --no-ping",
        ),
    ),
    "copy": Command(
        "copy a table to another place, or bring a copy up to date",
        "TABLE TO LOCATION [SINCE SNAPSHOT]",
        5,
        "Copies every file that a snapshot of the table names, with the paths of the new place. "
        "TABLE is a name or a path, LOCATION a folder or a prefix of a store. Again, only what is "
        "new is copied, also after a run that was killed; with SINCE (an id, or latest) what the "
        "copy's snapshots up to that one name is not looked at again.",
        (
            "icesql copy sales.orders TO s3://backup/orders --catalog prod --verify",
            "icesql copy sales.orders TO s3://backup/orders SINCE latest --catalog prod",
            "icesql copy s3://backup/orders TO ./warehouse/sales/orders",
        ),
    ),
    "restore": Command(
        "check a copy of a table, and give it a name in a catalog",
        "LOCATION [AS TABLE]",
        3,
        "Finds and reads what the copy at LOCATION names, without the table that it was made of, "
        "and shows what its branches and tags hold. With TABLE the catalog gets a table of it.",
        (
            "icesql restore s3://backup/orders",
            "icesql restore s3://backup/orders AS sales.orders_again --catalog prod",
        ),
    ),
    "undo": Command(
        "take the last commit to a table back",
        "TABLE",
        1,
        "Sets main, or --branch, to the snapshot before its last one. Shows what that commit did, "
        "to how many rows, when and by which engine, and asks; without a terminal it wants --yes. "
        "Columns and properties stay as they are, and nothing is deleted: it prints the statement "
        "that goes forward again. Again, it takes the commit before back.",
        (
            "icesql undo sales.orders --catalog prod",
            "icesql undo sales.orders --branch audit --yes --warehouse ./warehouse",
            "icesql undo sales.orders --catalog prod --snapshot 8124430912 --yes",
        ),
    ),
    "maintain": Command(
        "do what tables need: compact, convert deletes, expire and more",
        "[TABLE ... | --all]",
        None,
        "Of each table what it needs, by a policy file or by what its metadata tells: compaction, "
        "conversion of deletes by equality, manifests, statistics, expiry, orphans. A line for "
        "each table on standard error, the report on standard output. Exit codes: 0 all done or "
        "nothing to do, 1 a table failed or is damaged, 3 the budget ended it, 130 interrupted.",
        (
            "icesql maintain sales.orders --catalog prod --dry-run",
            "icesql maintain --all --catalog prod --policy lake.toml --budget 2h,500GB",
            "icesql maintain --all --warehouse ./warehouse --actions compact,manifests",
        ),
    ),
    "config": Command(
        "show what is in force, where it is from, and whether the catalogs answer",
        about="Every setting, restriction and property with its value and its origin, secrets "
        "masked.",
        examples=("icesql config", "icesql config --catalog prod --no-ping --format json"),
    ),
    "cache": Command(
        "show what is kept of object stores, or remove it",
        "[clear]",
        1,
        "The folder is the setting cache_directory.",
        ("icesql cache", "icesql cache clear"),
    ),
    "mcp": Command(
        "serve agents over the Model Context Protocol, read-only",
        about="On standard input and output, or over HTTP of this machine.",
        examples=(
            "icesql mcp --warehouse ./warehouse --set max_scan_bytes=10GB",
            "icesql mcp --catalog prod --http 8765",
        ),
    ),
    "help": Command(
        "show the manual, or what it says about words",
        "[WORDS ...]",
        None,
        "Without words the list of chapters; a chapter or a section by its name; else the section "
        "that says most about the words, and where there is more.",
        (
            "icesql help",
            "icesql help write",
            "icesql help orphan files",
            "icesql help all > icesql.md",
        ),
    ),
    "completion": Command(
        "print what completes this command in a shell of the system",
        "bash|zsh|fish",
        1,
        examples=(
            "icesql completion bash > ~/.local/share/bash-completion/completions/icesql",
            "icesql completion zsh > ~/.zfunc/_icesql    (a folder of $fpath)",
            "icesql completion fish > ~/.config/fish/completions/icesql.fish",
        ),
    ),
}
SHELLS: Final = ("bash", "zsh", "fish")
_EVERY: Final = frozenset(COMMANDS)
_RUN: Final = frozenset({"query", "shell"})
_CONNECT: Final = _RUN | {"doctor", "maintain", "config", "mcp", "copy", "restore", "undo"}
_LIMITED: Final = _RUN | {"config"}


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
            parser.error(f"-v takes NAME=VALUE, not {values!r}; alone it comes after the others")


class Option:
    """An option: the commands ``of`` that use it, its names, what it takes, and its help.

    It ``takes`` nothing as a switch. Options of one name in ``apart`` exclude each other, and
    ``given`` is what else argparse has to know. Plain for the reason that ``Command`` is.
    """

    def __init__(
        self,
        of: frozenset[str] | set[str],
        names: str,
        takes: str,
        help: str,
        apart: str = "",
        **given: Any,
    ) -> None:
        self.of, self.names, self.help, self.apart = of, names.split(), help, apart
        kind = {"metavar": takes} if takes else {"action": "store_true"}
        self.given = {**kind, **given}


# The options in the groups of the help. Every command accepts all; help shows those that it uses.
OPTIONS: Final[dict[str, tuple[Option, ...]]] = {
    "what to run": (
        Option(
            {"query"}, "-c", "SQL", "statements, separated by ';'; may be repeated", "statements",
            dest="statements", action="append",
        ),
        Option(
            {"query"}, "-f", "FILE", "a file of statements; - is stdin", "statements", dest="file"
        ),
    ),
    "where the tables are": (
        Option(_CONNECT, "--catalog", "NAME", "a catalog of .pyiceberg.yaml"),
        Option(_CONNECT, "--warehouse", "DIR", "a directory of tables"),
        Option(_CONNECT, "--uri", "URI", "a catalog, such as sqlite:///catalog.db"),
        Option(
            _CONNECT, "--property", "NAME=VALUE",
            "of the catalog and its store, such as s3.region=eu-west-1; may be repeated. Other "
            "users see a command line: secrets belong in .pyiceberg.yaml or the environment",
            dest="properties", action="append", default=[], type=_setting,
        ),
    ),
    "how to run it": (
        Option(
            _RUN | {"doctor", "maintain", "config", "copy", "restore"}, "--format", "NAME",
            f"of results (by the ending of --output, else table): {', '.join(FORMATS)}",
            choices=FORMATS,
        ),
        Option(
            {"query"}, "-o --output", "FILE", "write the result to a file; - is standard output"
        ),
        Option({"query"}, "--overwrite", "", "replace the file of --output"),
        Option(_RUN | {"mcp"}, "--dialect", "NAME", "of the SQL: spark, trino, … (icesql)"),
        Option(_CONNECT, "--timezone", "ZONE", "of the session (UTC)"),
        Option(
            _CONNECT | {"cache"}, "--set", "NAME=VALUE",
            "a setting, as SET does it; may be repeated",
            dest="settings", action="append", default=[], type=_setting,
        ),
        Option(_EVERY, "--verbose", "", argparse.SUPPRESS),
        Option(
            _RUN, "-v", "NAME=VALUE",
            "a variable: the value of $NAME in the statements, never text of SQL; may be "
            "repeated. Alone, as --verbose: rows, time and what each scan read, on stderr",
            dest="variables", action=_VerboseOrVariable, nargs="?", default=[],
        ),
        Option(
            {"query"}, "--continue-on-error", "", "run the statements after one that fails"
        ),
        Option(
            {"mcp"}, "--http", "PORT", "mcp over HTTP of this machine, not standard input", type=int
        ),
        Option({"config", "doctor"}, "--no-ping", "", "config asks no catalog"),
        Option({"doctor", "maintain"}, "--all", "", "every table of the catalog"),
        Option(
            {"doctor"}, "--fail-on", "{high,medium,low}",
            "doctor of tables exits with 1 where it finds something of this weight or a heavier "
            "one",
            choices=WEIGHTS,
        ),
        Option(
            {"copy"}, "--verify", "",
            "look for every file of the copy, and compare what the branches and tags hold",
        ),
        Option({"maintain"}, "--policy", "FILE", "what is done for which tables, in TOML"),
        Option(
            {"maintain"}, "--actions", "NAME,…",
            "in place of what the policy says: convert, compact, deletes, manifests, statistics, "
            "partition_statistics, expire, orphans",
        ),
        Option(
            {"maintain"}, "--dry-run", "", "show the statements that would run; change nothing"
        ),
        Option(
            {"maintain"}, "--budget", "TIME|SIZE",
            "begin no action after so long or so many bytes rewritten: 20min, 500GB, or both with "
            "a comma between",
        ),
        Option(
            {"maintain"}, "--history", "FILE",
            "what was finished, so that a run that was killed goes on "
            "(~/.local/state/icesql/maintain.jsonl)",
        ),
        Option({"undo"}, "--branch", "NAME", "the branch whose commit it is (main)"),
        Option(
            {"undo"}, "--snapshot", "ID",
            "the commit to take back: a conflict where it is not the last one any more",
            type=int,
        ),
        Option({"undo"}, "--yes", "", "take it back without a question"),
        Option(_EVERY, "--debug", "", "errors with their traceback"),
    ),
    "restrictions for untrusted SQL": (
        Option(_LIMITED, "--service", "", "the strict side of all below that is not given"),
        Option(
            _LIMITED, "--locked", "NAME,…",
            "settings that SET cannot change; without names, all",
            nargs="?", const=True,
        ),
        Option(
            _LIMITED, "--tables-by-path", "ROOT",
            "read tables by path below this folder or prefix only; may be repeated",
            "paths", action="append",
        ),
        Option(
            _LIMITED, "--no-tables-by-path", "", "read no table by its path",
            "paths", action="store_const", const=False, dest="tables_by_path",
        ),
        Option(
            _LIMITED, "--catalogs", "NAME,…",
            "catalogs that SQL may open beside its own; '' is none",
        ),
        Option(
            _LIMITED, "--files", "FOLDER",
            "CSV, JSON and Parquet files below this folder may be read, too; may be repeated. "
            "Without any of these options but this one, those below the current folder may",
            "files", action="append",
        ),
        Option(
            _LIMITED, "--no-files", "", "read no file that a statement names",
            "files", action="store_const", const=False, dest="files",
        ),
        Option(
            _LIMITED, "--copy-to", "ROOT",
            "COPY may write files below this folder; may be repeated; "
            "anywhere if none of these options is given",
            action="append",
        ),
        Option(
            _LIMITED, "--confine", "ROOT",
            "paths of tables lie below this folder or prefix; may be repeated; "
            "without one, below the table's own folder",
            nargs="?", const=True, action="append",
        ),
        Option(_LIMITED, "--read-only", "", "refuse changes", default=None),
    ),
}  # fmt: skip
_ALL_OPTIONS: Final = [each for group in OPTIONS.values() for each in group]
# Options without a value: they do not take the word that follows.
_SWITCHES: Final = {"--help", "-h", "--version"}.union(
    *(each.names for each in _ALL_OPTIONS if "metavar" not in each.given)
)

_DESCRIPTION = """\
SQL with time travel on Apache Iceberg tables: query, write and maintain them.
Without a command: as query, and on a terminal without statements as shell.
"""

_EXAMPLES: Final = (
    'icesql --warehouse ./warehouse -c "SELECT * FROM sales.orders LIMIT 10"',
    "icesql -c \"SELECT count(*) FROM iceberg_scan('./table') VERSION AS OF 'v1'\" --format csv",
    "icesql --warehouse ./warehouse -c \"CALL system.rewrite_data_files('sales.orders')\"",
    "icesql --catalog prod -f report.sql",
)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Given a width: argparse makes one per argument, and would import ``shutil`` for each."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width() - 2)


def _width() -> int:
    """Columns of the terminal, as ``shutil`` gives them; that module imports compressors."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; None is that of the process. Exits for help and misuse.

    ``command`` is one of ``COMMANDS``, or None; ``words`` are the positional arguments after it.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    place = _place_of_command(given)
    if place is None:
        parser = make_parser(None)
        options = parser.parse_args(given)
        options.command = None
        if options.words:
            _refuse(parser, options.words[0])
    else:
        command = given[place]
        parser = make_parser(command)
        options = parser.parse_intermixed_args([*given[:place], *given[place + 1 :]])
        options.command = command
        _check_words(parser, options)
    _check(parser, options)
    return options


def _place_of_command(given: Sequence[str]) -> int | None:
    """The first word that is neither an option nor the value of one, if it is a command."""
    for number, word in enumerate(given):
        before = given[number - 1] if number else ""
        if word == "--":
            return None
        takes = before.startswith("-") and "=" not in before and before not in _SWITCHES
        if not takes and not word.startswith("-"):
            return number if word in COMMANDS else None
    return None


def _refuse(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    if " " in word:
        parser.error(f"unexpected argument {word!r}; statements come after -c or query")
    parser.error(f"unknown command {word!r}; {near_or_all(word, COMMANDS)}")


def _check_words(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the number of a command's words, and their values."""
    command, words = options.command, options.words
    most = COMMANDS[command].most
    if most is not None and len(words) > most:
        parser.error(f"unexpected argument {words[most]!r}")
    if command == "cache" and words not in ([], ["clear"]):
        parser.error(f"cache takes the word clear, not {words[0]!r}")
    if command == "completion" and (not words or words[0] not in SHELLS):
        parser.error(f"completion takes one of {', '.join(SHELLS)}")
    if command in ("copy", "restore"):
        options.words = _copy_words(parser, command, words)
    if command == "undo" and not words:
        parser.error("undo takes the name of a table")
    if command == "query" and words:
        if options.statements or options.file:
            parser.error("use one of query, -c and -f for the statements")
        options.statements = words


def _copy_words(parser: argparse.ArgumentParser, command: str, words: list[str]) -> list[str]:
    """The arguments of copy (table, location, snapshot) and restore (location, table)."""
    linking = "to" if command == "copy" else "as"
    found = [*words[:1], *words[2 if words[1:2] and words[1].lower() == linking else 1 :]]
    since = command == "copy" and len(found) == 4 and found[2].lower() == "since"
    if since:
        del found[2]
    elif not (2 if command == "copy" else 1) <= len(found) <= 2:
        parser.error(f"{command} takes {COMMANDS[command].takes}")
    return found


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check options that require one another, or that only one command takes."""
    command = options.command
    if command not in (None, "query") and (options.statements or options.file):
        parser.error(f"{command} takes neither -c nor -f")
    if options.overwrite and options.output in (None, "-"):
        parser.error("--overwrite goes with --output FILE")
    if options.all and (command not in ("doctor", "maintain") or options.words):
        parser.error("--all goes with doctor and maintain, without a table")
    if options.fail_on is not None and (command != "doctor" or not (options.words or options.all)):
        parser.error("--fail-on goes with doctor and a table, or with --all")
    for each in _ALL_OPTIONS:
        key = each.names[0][2:].replace("-", "_")
        is_of_others = each.of.isdisjoint((command, "query"))
        if is_of_others and getattr(options, key) != parser.get_default(key):
            parser.error(f"{each.names[0]} goes with {' and '.join(sorted(each.of))}")
    if command == "maintain" and not (options.words or options.all):
        parser.error("maintain takes names of tables, or --all")
    if command == "maintain" and options.format not in (None, "table", "json"):
        parser.error("maintain shows its report as table (text) or json")
    if command == "mcp" and (options.output or options.format):
        parser.error("mcp takes no argument, --output or --format")


def make_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser of a command, for arguments without its name; None is icesql's own.

    Each accepts every option. Its help shows those that the command uses.
    """
    own = None if command is None else COMMANDS[command]
    usage = "icesql [COMMAND] [options]"
    if own is not None:
        usage = " ".join(filter(None, ("icesql", command, own.takes, "[options]")))
    parser = argparse.ArgumentParser(
        prog="icesql" if command is None else f"icesql {command}",
        usage=usage,
        description=_DESCRIPTION + _listed_commands() if own is None else _description(own),
        epilog=_epilog(_EXAMPLES if own is None else own.examples),
        formatter_class=_Formatter,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    for title, options in OPTIONS.items():
        group: Any = parser.add_argument_group(title)
        places = {"": group}
        for each in options:
            if each.apart not in places:
                places[each.apart] = group.add_mutually_exclusive_group()
            shown = each.help if command is None or command in each.of else argparse.SUPPRESS
            places[each.apart].add_argument(*each.names, help=shown, **each.given)
    parser.add_argument("--version", action=_Version, nargs=0, help="and exit")
    return parser


def _listed_commands() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {each.summary}" for name, each in COMMANDS.items()]
    return "\ncommands (icesql COMMAND --help tells more):\n" + "\n".join(lines)


def _description(command: Command) -> str:
    import textwrap

    text = f"{command.summary[0].upper()}{command.summary[1:]}. {command.about}".strip()
    return textwrap.fill(text, max(_width() - 2, 30))


def _epilog(examples: Sequence[str]) -> str:
    return "\n".join(["examples:", *(f"  {each}" for each in examples)])


def access_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The limits on SQL from the command line, as arguments of ``connect``; None if not given."""
    locked, catalogs, confine = options.locked, options.catalogs, options.confine
    return {
        "service": options.service,
        "locked": _listed(locked) if isinstance(locked, str) else locked,
        "tables_by_path": options.tables_by_path,
        "catalogs": None if catalogs is None else _listed(catalogs),
        "files": options.files,
        "copy_to": options.copy_to,
        "confine": True if confine == [True] else confine,
        "read_only": options.read_only,
    }


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from icesql import __version__

        print(f"icesql {__version__}")
        parser.exit()
