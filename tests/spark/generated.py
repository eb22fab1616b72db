"""Statements drawn from the grammar's clauses and the function table, to run on both engines.

Arguments of a function are those of its example in the table, or expressions of the same kind over
the columns of ``all_types``; its rows include NULL, NaN, -0.0, empty strings and nested values.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Final

import sqlglot
from sqlglot import exp

from icesql.sql.grammar import functions
from tests.campaigns.grammar import Grammar

_AGGREGATE_NODES: Final = (exp.AggFunc, exp.Window, exp.Unnest, exp.Explode, exp.Grouping)


@functools.cache
def _scalar_functions() -> tuple[tuple[str, exp.Expr], ...]:
    found = []
    for row in functions():
        tree = sqlglot.parse_one(f"SELECT {row.example}", dialect="duckdb")
        assert isinstance(tree, exp.Select)
        plain = tree.args.get("from_") is None and tree.find(*_AGGREGATE_NODES) is None
        if plain and not row.result.startswith(("list", "struct", "any")):
            found.append((row.name, tree.selects[0]))
    return tuple(found)


def _kind_of_literal(node: exp.Expr) -> str | None:
    match node:
        case exp.Literal():
            if node.is_string:
                return "text"
            return "decimal" if "." in node.name else "integer"
        case exp.Cast() if isinstance(node.this, exp.Literal | exp.Neg):
            name = node.to.sql(dialect="duckdb").partition("(")[0]
            kinds = {"DATE": "date", "TIMESTAMP": "timestamp", "DOUBLE": "float"}
            return kinds.get(name)
        case _:
            return None


class Generator(Grammar):
    """Draws statements; equal seeds draw the same ones. ``drawn`` counts their kinds."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed), Path(__file__).with_suffix(".txt"))

    def statement(self) -> str:
        """The next statement."""
        made = self.text("statement")
        for word in ("NULL", "nan", "l[", "st.", "m['", "list", "IGNORE NULLS", "/ 0"):
            if word in made:
                self.drawn[word] += 1
        return made

    def _function(self) -> str:
        """A function of the table with other arguments than in its example."""
        name, node = self.chance.choice(_scalar_functions())
        node = node.copy()
        self.drawn[f"function {name}"] += 1
        call = next((each for each in node.walk() if isinstance(each, exp.Func)), None)
        target = call.this if call is not None else None
        if isinstance(target, exp.Expr) and self.chance.random() < 0.85:
            kind = _kind_of_literal(target)
            if kind is not None:
                target.replace(sqlglot.parse_one(self.text(kind), dialect="duckdb"))
        return str(node.sql(dialect="duckdb"))
