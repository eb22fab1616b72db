"""The backslash commands of the shell: text in, a ``Command`` value or its help out."""

from __future__ import annotations

import re
from typing import Final

from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.quoting import literal


class Command(Frozen):
    """One command as typed; ``argument`` is None without one."""

    name: str
    argument: str | None = None


class _Usage(Frozen):
    argument: str  # "" = takes none, "[x]" = may be left out, "x" = needed
    help: str
    sql: str = ""  # the statement that answers it, with {} for the argument
    bare: str = ""  # the same, without an argument


_FILES: Final = (
    "SELECT content, partition, record_count, file_size_in_bytes, file_path FROM {}.files"
)
COMMANDS: Final[dict[str, _Usage]] = {
    "d": _Usage("[TABLE]", "the tables, or the columns of one", "DESCRIBE {}", "SHOW TABLES"),
    "dt": _Usage(
        "[PATTERN]", "the tables, those LIKE a pattern", "SHOW TABLES LIKE {}", "SHOW TABLES"
    ),
    "dn": _Usage("", "the namespaces", "SHOW NAMESPACES"),
    "dv": _Usage("", "the views", "SHOW VIEWS"),
    "df": _Usage("[PATTERN]", "the functions", "SHOW FUNCTIONS LIKE {}", "SHOW FUNCTIONS"),
    "conninfo": _Usage("", "the catalog, engine and dialect of this shell"),
    "snapshots": _Usage("TABLE", "the history of a table as a graph"),
    "branches": _Usage("TABLE", "the branches of a table", "SHOW BRANCHES FROM {}"),
    "tags": _Usage("TABLE", "the tags of a table", "SHOW TAGS FROM {}"),
    "refs": _Usage("TABLE", "the branches and tags of a table", "SHOW REFS FROM {}"),
    "files": _Usage("TABLE", "the data files of a table", _FILES),
    "partitions": _Usage("TABLE", "the partitions of a table", "SHOW PARTITIONS FROM {}"),
    "diff": _Usage("TABLE A [B]", "the rows that differ between two versions"),
    "changes": _Usage("TABLE A [B]", "what commits did to the rows between two versions"),
    "undo": _Usage("TABLE", "take the last commit to a table back, after a question"),
    "at": _Usage("[TIME|REF|off]", "read every table as it was then, or at a branch or tag"),
    "explain": _Usage("[QUERY]", "how a query is run: this one, or the last"),
    "last": _Usage("", "what the last statement read"),
    "all": _Usage("", "run the last query again and show all of its rows"),
    "watch": _Usage("[SECONDS]", "run the last query again and again (2) until Ctrl-C"),
    "x": _Usage("[on|off|auto]", "a column a line; auto: where a table is too wide"),
    "pager": _Usage("[on|off]", "show what is longer than the screen in a pager"),
    "timing": _Usage("[on|off]", "show the time of each statement"),
    "format": _Usage("[NAME]", "how results are shown: table, csv, tsv, json, jsonl, markdown …"),
    "o": _Usage("[FILE]", "write the next result to a file, in the format of its ending"),
    "engine": _Usage("[NAME]", "where queries run: local, spark or auto"),
    "set": _Usage("[NAME [VALUE]]", "a variable, which statements use as $NAME"),
    "unset": _Usage("NAME", "forget a variable"),
    "i": _Usage("FILE", "run the statements of a file"),
    "e": _Usage("", "edit this statement, or the last one, in $EDITOR"),
    "s": _Usage("[FILE]", "the statements so far, on the screen or in a new file"),
    "!": _Usage("COMMAND", "run a command of the system"),
    "?": _Usage("[TOPIC]", "this help; of a topic, what the manual says (also: help TOPIC)"),
    "q": _Usage("", "leave (Ctrl-D does too)"),
}
_WORDS: Final = frozenset({"exit", "quit", "help", "?"})
# help merge, help(merge), help()
_HELP: Final = re.compile(r"help(?:\(([^()\n]*)\)|\s+([^;\n]+?))\s*;?", re.IGNORECASE)
# Other names of the commands, by psql and by habit.
_ALIASES: Final = {"help": "?", "h": "?", "quit": "q", "exit": "q", "w": "o", "l": "dn"}
# Commands of the shells of SQLite and DuckDB.
_DOTTED: Final[dict[str, str]] = {
    "tables": "dt", "schema": "schema", "exit": "q", "quit": "q", "help": "?", "mode": "format",
    "timer": "timing", "read": "i", "output": "o", "once": "o", "shell": "!", "system": "!",
    "databases": "dn", "schemas": "dn", "functions": "df", "history": "s",
}  # fmt: skip


def parse_command(text: str) -> Command:
    r"""The command in a line that starts with ``\``.

    Raises ProgrammingError for an unknown command or a missing or needless argument.
    """
    text = text.strip().removeprefix("\\")
    if text.startswith("!"):
        text = f"! {text[1:]}"
    name, *rest = text.split(maxsplit=1) or [""]
    argument = "".join(rest).strip()
    if name != "!":
        argument = argument.removesuffix(";").strip()
    name = name.rstrip(";")
    return _checked(_ALIASES.get(name, name), argument or None)


def _checked(name: str, argument: str | None) -> Command:
    usage = COMMANDS.get(name)
    if usage is None:
        hint = nearest(name, COMMANDS, "\\? lists the commands", "did you mean \\{}?")
        raise ProgrammingError(f"unknown command \\{name}; {hint}")
    if argument is None and usage.argument and not usage.argument.startswith("["):
        raise ProgrammingError(f"\\{name} needs a name: \\{name} {usage.argument}")
    if argument is not None and not usage.argument:
        raise ProgrammingError(f"\\{name} takes no argument")
    return Command(name, argument)


def in_words(text: str) -> Command | None:
    """The command in the form of other shells: exit, quit, help, .tables, .schema t.

    Raises ProgrammingError for one of these with a wrong argument.
    """
    text = text.strip().removesuffix(";").strip()
    if text.startswith("."):
        name, _, argument = text[1:].partition(" ")
        known = _DOTTED.get(name.lower())
        if known == "schema":
            return Command("schema", argument.strip()) if argument.strip() else Command("dt")
        if known is None:
            if not name.isalpha():
                return None  # .5 is a number
            raise ProgrammingError(f"unknown command .{name}; \\? lists the commands")
        return _checked(known, argument.strip() or None)
    if found := _HELP.fullmatch(text):
        return Command("?", (found[1] or found[2] or "").strip("'\" ") or None)
    word = text.lower()
    return Command(_ALIASES.get(word, word)) if word in _WORDS else None


def is_word(text: str) -> bool:
    """Whether the text is a command in a word, such as exit."""
    return text.rstrip("; ").lower() in _WORDS


def is_question(text: str) -> bool:
    """Whether the text opens the manual, as ``help merge`` does; no SQL begins like that."""
    return bool(_HELP.fullmatch(text.strip()))


def help_lines(columns: int) -> list[str]:
    """The commands and keys with their descriptions, as wide as the screen."""
    lines = [
        (f"\\{name} {usage.argument}".rstrip(), usage.help) for name, usage in COMMANDS.items()
    ]
    lines += [
        ("…;", "a statement ends with a semicolon and may span lines; an empty line runs a query"),
        ("Tab", "what may come next; → takes what is suggested from the history"),
        ("Ctrl-C", "stop the statement, keep the shell"),
    ]
    import textwrap

    width = max(len(left) for left, _ in lines)
    found = []
    for left, right in lines:
        first, *others = textwrap.wrap(right, max(columns - width - 5, 20))
        found.append(f"  {left:<{width}}  {first}")
        found += [f"  {'':<{width}}  {other}" for other in others]
    return found


def statement_of(command: Command) -> str | None:
    """The SQL that answers a command about tables; None for the others.

    Raises ProgrammingError for a missing version.
    """
    name, argument = command.name, command.argument
    if name == "schema":
        return f"SHOW CREATE TABLE {argument}"
    usage = COMMANDS[name]
    if argument is None:
        return usage.bare or usage.sql or None
    if name in ("diff", "changes"):
        table, *versions = argument.split()
        if not 1 <= len(versions) <= 2:
            raise ProgrammingError(f"\\{name} needs a table and versions: \\{name} TABLE A [B]")
        first, *last = map(_version, versions)
        if name == "diff":
            return f"DIFF {table} BETWEEN {first} AND {last[0] if last else literal('main')}"
        until = f" TO VERSION {last[0]}" if last else ""
        return f"SELECT * FROM {table} CHANGES FROM VERSION {first}{until}"
    wanted = _pattern(argument) if usage.argument == "[PATTERN]" else argument
    return usage.sql.replace("{}", wanted) or None


def _version(text: str) -> str:
    """A version: an id, a branch or a tag."""
    return text if text.removeprefix("-").isdigit() or text[:1] in "'\"" else literal(text)


def _pattern(text: str) -> str:
    """A LIKE pattern; ``*`` and ``?`` are wildcards, and a bare word matches anywhere."""
    text = text.strip("'").replace("*", "%").replace("?", "_")
    return literal(text if "%" in text or "_" in text else f"%{text}%")
