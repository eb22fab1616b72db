"""The backslash commands of the shell: text in, a ``Command`` value or its help out."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from icesql.errors import ProgrammingError, similar_names


class Command(Struct, frozen=True):
    """One command as typed; ``argument`` is None without one."""

    name: str
    argument: str | None = None


class _Usage(Struct, frozen=True):
    argument: str  # "" = takes none, "[x]" = may be left out, "x" = needed
    help: str


COMMANDS: Final[dict[str, _Usage]] = {
    "d": _Usage("[TABLE]", "the tables, or the columns of one"),
    "dv": _Usage("", "the views"),
    "snapshots": _Usage("TABLE", "the snapshots of a table"),
    "refs": _Usage("TABLE", "the branches and tags of a table"),
    "timing": _Usage("[on|off]", "show the time of each statement"),
    "format": _Usage("[NAME]", "how results are shown: table, csv, tsv, json, jsonl, markdown"),
    "o": _Usage("[FILE]", "write the next result to a file, in the format of its ending"),
    "?": _Usage("", "this help"),
    "q": _Usage("", "leave (Ctrl-D does too)"),
}


def parse_command(text: str) -> Command:
    r"""The command in a line that starts with ``\``.

    Raises ProgrammingError for an unknown command or a missing or needless argument.
    """
    name, _, rest = text.strip().removeprefix("\\").partition(" ")
    argument = rest.strip().removesuffix(";").strip() or None
    name = {"help": "?", "quit": "q"}.get(name.rstrip(";"), name.rstrip(";"))
    usage = COMMANDS.get(name)
    if usage is None:
        near = similar_names(name, COMMANDS)
        hint = f"did you mean \\{near[0]}?" if near else "\\? lists the commands"
        raise ProgrammingError(f"unknown command \\{name}; {hint}")
    if argument is None and usage.argument and not usage.argument.startswith("["):
        raise ProgrammingError(f"\\{name} needs a name: \\{name} {usage.argument}")
    if argument is not None and not usage.argument:
        raise ProgrammingError(f"\\{name} takes no argument")
    return Command(name, argument)


def in_words(text: str) -> Command | None:
    """The command that people type as a word to other shells: exit, quit, help."""
    word = text.strip().removesuffix(";").strip().lower()
    return {"exit": Command("q"), "quit": Command("q"), "help": Command("?")}.get(word)


def help_text() -> str:
    """The commands and keys, one a line."""
    lines = [
        (f"\\{name} {usage.argument}".rstrip(), usage.help) for name, usage in COMMANDS.items()
    ]
    lines += [
        ("…;", "a statement ends with a semicolon and may span lines"),
        ("Tab", "what may come next"),
        ("Ctrl-C", "stop the statement, keep the shell"),
    ]
    width = max(len(left) for left, _ in lines)
    return "\n".join(f"  {left:<{width}}  {right}" for left, right in lines)


def statement_of(command: Command) -> str | None:
    """The SQL that answers a command about tables; None for the others."""
    match command:
        case Command("d", None):
            return "SHOW TABLES"
        case Command("d", table):
            return f"DESCRIBE {table}"
        case Command("dv"):
            return "SHOW VIEWS"
        case Command("snapshots", table):
            return f"SHOW SNAPSHOTS FROM {table}"
        case Command("refs", table):
            return f"SHOW REFS FROM {table}"
        case _:
            return None


def is_complete(text: str) -> bool:
    r"""Whether Enter should run the text: a command, or a statement ended by ``;``.

    A semicolon inside quotes or a comment ends nothing.
    """
    stripped = text.strip()
    if not stripped or stripped[0] in "\\." or in_words(text) is not None:
        return True
    last = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character in "'\"`":
            end = text.find(character, position + 1)
        elif text.startswith("--", position):
            end = text.find("\n", position)
            if end < 0:
                return last == ";"
            position = end + 1
            continue
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            if end < 0:
                return False
            position = end + 2
            continue
        else:
            if not character.isspace():
                last = character
            position += 1
            continue
        if end < 0:
            return False
        last, position = character, end + 1
    return last == ";"
