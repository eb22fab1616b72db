"""Scripts that complete ``icesql`` in bash, zsh and fish, made of the command line itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from icesql.arguments import COMMANDS, SHELLS, make_parser
from icesql.config import Settings
from icesql.manual.chapters import chapters

_FOLDERS: Final = {"--warehouse", "--tables-by-path", "--files", "--copy-to", "--confine"}
_FILES: Final = {"-f", "--output"}
_VALUES: Final = {
    "--dialect": (
        "duckdb",
        "spark",
        "databricks",
        "hive",
        "trino",
        "presto",
        "athena",
        "snowflake",
    ),
    "--set": tuple(f"{name}=" for name in Settings.__struct_fields__),
}


class _Option(Struct, frozen=True):
    """An option as help shows it; ``takes`` is "", "folder", "file", "word" or "value"."""

    names: tuple[str, ...]
    about: str
    takes: str
    words: tuple[str, ...] = ()


def completion_script(shell: str) -> str:
    """What the shell, one of ``SHELLS``, reads to complete the command."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _options(command: str | None) -> Iterator[_Option]:
    for action in make_parser(command)._actions:
        if action.help == argparse.SUPPRESS or not action.option_strings:
            continue
        names = tuple(action.option_strings)
        about = " ".join(str(action.help or "").replace("%%", "%").split())
        words = tuple(map(str, action.choices or ())) or _VALUES.get(names[-1], ())
        if action.nargs == 0:
            takes = ""
        elif words:
            takes = "word"
        elif names[-1] in _FOLDERS:
            takes = "folder"
        else:
            takes = "file" if names[-1] in _FILES else "value"
        yield _Option(names, about, takes, words)


def _words(command: str) -> tuple[str, ...]:
    """What may stand behind a command."""
    return {"cache": ("clear",), "completion": SHELLS, "help": tuple(chapters())}.get(command, ())


# ------------------------------------------------------------------ bash


def _bash() -> str:
    lines = [
        "# icesql's completion for bash",
        "_icesql() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        "    local command= word",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        f"        case $word in {'|'.join(COMMANDS)}) command=$word; break;; esac",
        "    done",
        "    case $before in",
    ]
    for each in _options(None):
        names = "|".join(each.names)
        match each.takes:
            case "word":
                space = "compopt -o nospace; " if each.words[0].endswith("=") else ""
                answer = f"{space}{_bash_words(each.words)}"
            case "folder":
                answer = 'COMPREPLY=($(compgen -d -- "$current"))'
            case "file":
                answer = 'COMPREPLY=($(compgen -f -- "$current"))'
            case "value":
                answer = "COMPREPLY=()"
            case _:
                continue
        lines.append(f"        {names}) {answer}; return;;")
    lines += ["    esac", "    case $command in"]
    for name in COMMANDS:
        options = [option for each in _options(name) for option in each.names]
        lines.append(f"        {name}) {_bash_either(_words(name), options)};;")
    first = [option for each in _options(None) for option in each.names]
    lines += [
        f"        *) {_bash_either(tuple(COMMANDS), first)};;",
        "    esac",
        "}",
        "complete -o default -F _icesql icesql",
    ]
    return "\n".join(lines) + "\n"


def _bash_either(words: tuple[str, ...], options: list[str]) -> str:
    """The options for what begins with a dash, else the words; files where there are none."""
    offered = _bash_words(words) if words else "COMPREPLY=()"
    return f"if [[ $current == -* ]]; then {_bash_words(tuple(options))}; else {offered}; fi"


def _bash_words(words: tuple[str, ...]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current"))'


# ------------------------------------------------------------------ zsh


def _zsh() -> str:
    lines = [
        "#compdef icesql",
        "",
        "_icesql() {",
        "  local command",
        "  local -a commands",
        "  commands=(",
    ]
    lines += [f"    {_zsh_quoted(f'{name}:{each.summary}')}" for name, each in COMMANDS.items()]
    lines += [
        "  )",
        f"  command=${{words[(r)({'|'.join(COMMANDS)})]}}",
        "  case $command in",
    ]
    for name in COMMANDS:
        lines += [f"    {name})", *_zsh_arguments(name), "      ;;"]
    lines += [
        "    *)",
        "      if [[ ${words[CURRENT]} != -* ]]; then",
        "        _describe command commands",
        "      else",
        *(f"  {line}" for line in _zsh_arguments(None)),
        "      fi",
        "      ;;",
        "  esac",
        "}",
        "",
        "compdef _icesql icesql",
    ]
    return "\n".join(lines) + "\n"


def _zsh_arguments(command: str | None) -> list[str]:
    specs = []
    for each in _options(command):
        about = each.about.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
        for name in each.names:
            spec = f"*{name}[{about}]"
            match each.takes:
                case "word":
                    spec += f":value:({' '.join(each.words)})"
                case "folder":
                    spec += ":folder:_files -/"
                case "file":
                    spec += ":file:_files"
                case "value":
                    spec += ":value: "
            specs.append(spec)
    if command is not None:
        words = _words(command)
        specs.append(f"*:word:({' '.join(words)})" if words else "*:word:_files")
    return [
        "      _arguments \\",
        *(f"        {_zsh_quoted(spec)} \\" for spec in specs[:-1]),
        f"        {_zsh_quoted(specs[-1])}",
    ]


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ------------------------------------------------------------------ fish


def _fish() -> str:
    lines = ["# icesql's completion for fish", "complete -c icesql -f"]
    names = " ".join(COMMANDS)
    none = f"not __fish_seen_subcommand_from {names}"
    for name, command in COMMANDS.items():
        lines.append(f"complete -c icesql -n '{none}' -a {name} -d {_fish_quoted(command.summary)}")
    lines += [_fish_option(none, each) for each in _options(None)]
    for name in COMMANDS:
        here = f"__fish_seen_subcommand_from {name}"
        lines += [_fish_option(here, each) for each in _options(name)]
        if words := _words(name):
            lines.append(f"complete -c icesql -n '{here}' -a '{' '.join(words)}'")
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, option: _Option) -> str:
    spelled = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )
    takes = {
        "": "",
        "value": " -x",
        "word": f" -x -a '{' '.join(option.words)}'",
        "folder": " -x -a '(__fish_complete_directories)'",
        "file": " -r -F",
    }[option.takes]
    return f"complete -c icesql -n '{condition}' {spelled}{takes} -d {_fish_quoted(option.about)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
