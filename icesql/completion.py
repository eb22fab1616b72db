"""Scripts that complete ``icesql`` in bash, zsh and fish, made by shtab of the command line."""

from __future__ import annotations

import argparse
from typing import Any, Final

from icesql.arguments import COMMANDS, SHELLS, make_parser
from icesql.config import Settings
from icesql.manual.lookup import chapters

_FOLDERS: Final = {"--warehouse", "--tables-by-path", "--files", "--copy-to", "--confine"}
_FILES: Final = {"-f", "--output"}
_VALUES: Final = {
    "--dialect": (
        "duckdb", "spark", "databricks", "hive", "trino", "presto", "athena", "snowflake",
    ),
    "--set": tuple(f"{name}=" for name in Settings.__struct_fields__),
}  # fmt: skip

# A value, not a blank, follows the name of a setting.
_WITHOUT_BLANK: Final = """
_icesql() { _shtab_icesql "$@"; [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace; }
complete -o bashdefault -F _icesql icesql
"""


def completion_script(shell: str) -> str:
    """The text that the shell, one of ``SHELLS``, reads to complete the command."""
    import shtab

    parser = argparse.ArgumentParser("icesql", add_help=False)
    _copy_options(None, parser)
    commands = parser.add_subparsers(dest="command")
    words = {"cache": ("clear",), "completion": SHELLS, "help": tuple(chapters())}
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.summary, add_help=False)
        _copy_options(name, one)
        standing: Any = one.add_argument("words", nargs="*", choices=words.get(name))
        if name not in words:
            standing.complete = shtab.FILE
    script: str = shtab.complete(parser, shell)
    return script + _WITHOUT_BLANK if shell == "bash" else script


def _copy_options(command: str | None, parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the options that help shows for a command, with completions of values."""
    import shtab

    for action in make_parser(command)._actions:
        if action.help == argparse.SUPPRESS or not action.option_strings:
            continue
        name = action.option_strings[-1]
        copied: Any = parser._add_action(action)
        if name in _VALUES:
            copied.choices = _VALUES[name]
        elif name in _FOLDERS or name in _FILES:
            copied.complete = shtab.DIRECTORY if name in _FOLDERS else shtab.FILE
