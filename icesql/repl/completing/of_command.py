r"""Completions in a command that begins with a backslash."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from icesql.repl.commands import COMMANDS
from icesql.repl.completing.names import Known, Names
from icesql.repl.results import TEXT_FORMATS

_SWITCH: Final = ("on", "off")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "x": ("on", "off", "auto"),
    "timing": _SWITCH,
    "pager": _SWITCH,
    "engine": ("local", "spark", "auto"),
    "format": TEXT_FORMATS,
}
_HELP: Final = frozenset({"?", "h", "help"})
_FILES: Final = frozenset({"i", "o", "s"})
_TIMES: Final = (Known("off", "tables as they are"), Known("'yesterday 12:00'", "a time"))
# ``\at`` takes a branch or tag: those of this many tables are offered.
_MOST_TABLES: Final = 8


def as_command(text: str) -> str | None:
    r"""The text before the cursor as a command; ``help mer`` is one, and None is SQL."""
    text = text.lstrip()
    if re.match(r"help\s", text, re.IGNORECASE):
        return f"\\{text}"
    return text if text.startswith("\\") else None


def word_of_command(text: str) -> str:
    """The piece of a command, at its end, that a suggestion replaces."""
    name, space, argument = text.partition(" ")
    if not space:
        return name
    if name[1:] in _FILES:
        return argument.lstrip()
    return argument.rpartition(" ")[2]


def of_command(text: str, names: Names) -> tuple[str, str, Iterable[Known]]:
    """The typed part of a word, the kind of name that fits there, and its suggestions."""
    name, space, argument = text.removeprefix("\\").partition(" ")
    word = word_of_command(text)
    if not space:
        return word, "command", [Known(f"\\{each}", COMMANDS[each].help) for each in COMMANDS]
    before = argument.lstrip().removesuffix(word).split()
    if name in _FILES:
        return word, "file", map(Known, names.source.paths(word))
    if name == "at" and not before:
        return word, "time", (*_TIMES, *_refs(names))
    if name in _HELP and not before:
        return word, "value", _topics()
    if name in _WORDS and not before:
        return word, "value", map(Known, _WORDS[name])
    if name not in COMMANDS or "TABLE" not in COMMANDS[name].argument:
        return word, "", ()
    if not before:
        return word, "table", map(Known, names.known("tables"))
    if name in ("diff", "changes"):
        return word, "version", names.known("versions", before[0])
    return word, "", ()


def _topics() -> Iterable[Known]:
    """The chapters of the manual."""
    from icesql.manual.chapters import chapter_title, chapters

    return [Known(topic, chapter_title(topic)) for topic in chapters()]


def _refs(names: Names) -> Iterable[Known]:
    """Branches and tags of the first tables, without main."""
    found: dict[str, str] = {}
    for table in names.known("tables")[:_MOST_TABLES]:
        for each in names.known("versions", table):
            if each.about in ("branch", "tag") and each.text != "'main'":
                name = each.text[1:-1].replace("''", "'")
                found.setdefault(name, f"{each.about} of {table}")
    return [Known(name, about) for name, about in found.items()]
