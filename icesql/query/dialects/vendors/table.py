"""The tables of functions: ``grammar/trino_functions.txt`` and its like."""

from __future__ import annotations

import functools
import re
from typing import Final

from msgspec import Struct

from icesql.sql.grammar import folder

_LINE: Final = re.compile(r"(\w+)\(([^)]*)\) -> (\S+) (:=|=|@) (.+)")


class Row(Struct, frozen=True):
    """One form of a function: how many arguments of which kinds, and what it is in DuckDB.

    ``result`` is the kind of its value, ``$1`` that of the first argument. ``text`` is an
    expression with ``$1`` … for the arguments, or the name of a builder if ``built``. ``exact``
    keeps every function of it as it is written; otherwise conditions on it may prune.
    """

    name: str
    arguments: tuple[str, ...]
    repeats: bool
    result: str
    text: str
    exact: bool
    built: bool
    section: str

    def takes(self, count: int) -> bool:
        """Whether a call with so many arguments is of this form."""
        least = len(self.arguments)
        return count >= least if self.repeats else count == least

    def kind_of(self, index: int) -> str:
        """What the argument at ``index`` has to be; "any" for whatever it is."""
        return self.arguments[min(index, len(self.arguments) - 1)]


@functools.cache
def rows(dialect: str) -> dict[str, tuple[Row, ...]]:
    """The forms of each function of a dialect, by its name in lower case."""
    found: dict[str, tuple[Row, ...]] = {}
    section = ""
    for line in (folder() / f"{dialect}_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            row = _row(line, section)
            found[row.name] = (*found.get(row.name, ()), row)
    return found


def _row(line: str, section: str) -> Row:
    match = _LINE.fullmatch(line)
    assert match is not None, line
    name, arguments, result, how, text = match.groups()
    kinds = [each.strip() for each in arguments.split(",") if each.strip()]
    repeats = bool(kinds) and kinds[-1].endswith("...")
    kinds = [each.removesuffix("...") for each in kinds]
    return Row(name, tuple(kinds), repeats, result, text, how == "=", how == "@", section)
