"""The function tables of the dialects, read from ``grammar/``."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from icesql.frozen import Frozen
from icesql.sql.grammar import lines, sections

if TYPE_CHECKING:
    from sqlglot import exp

SPARK: Final = "spark"
# The dialects that have a function table.
TRANSLATED: Final = frozenset({SPARK, "trino", "snowflake"})
_ROW: Final = re.compile(r"([\w|]+)\((.*?)\) -> (\S.*?) (:?=|@) (.+)")


class TableRow(Frozen):
    """One form of a function, as a line of the file.

    ``sign`` is ``=``, ``:=`` for an expression that conditions prune by, or ``@`` if ``text`` is
    the name of a builder of the expression. ``section`` is scalar, aggregate or window.
    """

    name: str
    takes: str
    gives: str
    sign: str
    text: str
    section: str


def table_rows(dialect: str) -> tuple[TableRow, ...]:
    """Return the table of a dialect in ``TRANSLATED``, in the order of the file."""
    return _table_of(dialect)[0]


def function_names(dialect: str) -> frozenset[str]:
    """Return the functions of a dialect in ``TRANSLATED``, in lower case."""
    return _table_of(dialect)[1]


@functools.cache
def _table_of(dialect: str) -> tuple[tuple[TableRow, ...], frozenset[str]]:
    """Return the rows, and the names of all functions, including those that code translates."""
    rows: list[TableRow] = []
    by_code: set[str] = set()
    for section, listed in sections(f"{dialect}_functions.txt").items():
        for line in listed:
            if section == "code":
                by_code.update(line.split())
                continue
            parsed = _ROW.fullmatch(line)
            if parsed is None:
                raise ValueError(f"not a row of the function table: {line}")
            names, takes, gives, sign, text = parsed.groups()
            rows += [TableRow(name, takes, gives, sign, text, section) for name in names.split("|")]
    return tuple(rows), frozenset({row.name for row in rows} | by_code)


# icesql's own function table: the functions of every engine, read from ``grammar/``.


class Function(Frozen):
    """A row of the table: an example in the dialect's spelling and its value as the shell shows it.

    ``result`` is the declared result type; ``$1`` is the type of the first argument.
    """

    name: str
    result: str
    example: str
    value: str


@functools.cache
def functions() -> tuple[Function, ...]:
    """Return every row, in the order of the file."""
    return tuple(Function(*line.split(" | ", 3)) for line in lines("functions.txt"))


@functools.cache
def function_keys() -> frozenset[str]:
    """Return the ``function_key`` of each function of the table."""
    import sqlglot
    from sqlglot import exp

    found = set()
    for row in functions():
        tree = sqlglot.parse_one(f"SELECT {row.example}", dialect="duckdb")
        assert isinstance(tree, exp.Select)
        node = next(each for each in tree.selects[0].walk() if isinstance(each, exp.Func))
        while isinstance(node, exp.Cast) and isinstance(node.this, exp.Func):
            node = node.this
        found.add(function_key(node))
    return frozenset(found)


def function_key(node: exp.Func) -> str:
    """Return the identity of a function in a tree: all spellings of a function share it."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return type(node).__name__
