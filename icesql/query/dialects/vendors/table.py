"""The tables of functions: ``grammar/trino_functions.txt`` and its like."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from msgspec import Struct
from sqlglot import exp

from icesql.query.dialects.templates import name_apart
from icesql.sql.grammar import folder
from icesql.sql.parser.dialect import parse_tokens, reading, subscript_base, tokenize
from icesql.sql.parser.own_calls import hide_calls, show_calls

_LINE: Final = re.compile(r"(\w+)\(([^)]*)\) -> (\S+) (:=|=|@) (.+)")
_DOLLAR: Final = re.compile(r"\$(\d)")
GAP: Final = re.compile(r"_gap(\d)")


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


def template(text: str, *, exact: bool = True) -> exp.Expr:
    """An expression in DuckDB's spelling, its ``$1`` columns that ``GAP`` matches; a fresh copy."""
    return _read(text, exact).copy()


@functools.lru_cache(1_000)
def _read(text: str, exact: bool) -> exp.Expr:
    dialect = reading(None)
    # A dollar begins a quote in DuckDB's spelling, so a gap is read as a name.
    source = "SELECT " + _DOLLAR.sub(r"_gap\1", text)
    tokens = tokenize(source, dialect)
    tree: Any = parse_tokens(hide_calls(tokens, dialect) if exact else tokens, source, dialect)[0]
    show_calls(tree)
    found: exp.Expr = tree.expressions[0]
    for bracket in found.find_all(exp.Bracket):
        bracket.set("offset", subscript_base(dialect))
    for node in found.walk():
        # Its places are those of the template, not of the user's text.
        node.meta.clear()
    return found.pop()


def filled(text: str, *arguments: exp.Expr, exact: bool = True) -> exp.Expr:
    """``text`` with ``arguments`` in its gaps."""
    tree = template(text, exact=exact)
    name_apart(tree, arguments)
    for gap in [each for each in tree.find_all(exp.Column) if GAP.fullmatch(each.name)]:
        argument = _in_parentheses(arguments[int(gap.name[4:]) - 1].copy(), gap)
        if gap is tree:
            return argument
        gap.replace(argument)
    return tree


_AROUND: Final = (exp.Binary, exp.Unary, exp.Cast, exp.Between, exp.In, exp.Bracket, exp.Dot)
_LOOSE: Final = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Case, exp.Interval, exp.Lambda)


def _in_parentheses(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    """The node, in parentheses where an operator of the template could regroup it."""
    loose = isinstance(node, _LOOSE) and not isinstance(node, exp.Paren | exp.Dot)
    return exp.Paren(this=node) if loose and isinstance(place.parent, _AROUND) else node
