"""The function table of the dialect: what runs on every engine, read from ``grammar/``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from msgspec import Struct

from icesql.sql.grammar import folder

if TYPE_CHECKING:
    from sqlglot import exp


class Function(Struct, frozen=True):
    """A row of the table: an example in the dialect's spelling and its value as the shell shows it.

    ``result`` is the declared type of the result; ``$1`` is that of the first argument.
    """

    name: str
    result: str
    example: str
    value: str


@functools.cache
def functions() -> tuple[Function, ...]:
    """Every row, in the order of the file."""
    rows = []
    for line in (folder() / "functions.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, result, example, value = line.split(" | ", 3)
            rows.append(Function(name, result, example, value))
    return tuple(rows)


@functools.cache
def function_keys() -> frozenset[str]:
    """The ``function_key`` of each function of the table."""
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
    """The identity of a function in a tree: several spellings of one function share it."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return type(node).__name__
