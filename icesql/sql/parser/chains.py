"""Columns that a function is called on: ``city.upper()`` is ``upper(city)`` to DuckDB.

sqlglot leaves their names as bare identifiers, as it does the schema of ``main.upper(city)``.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# Where the engine keeps its own functions; these names are schemas and databases before a call.
_SCHEMAS: Final = frozenset({"main", "system", "temp", "pg_catalog", "information_schema"})
_PARTS: Final = ("this", "table", "db", "catalog")


def name_columns(tree: exp.Expr) -> None:
    """Make columns of the names before such calls, in place."""
    for dot in list(tree.find_all(exp.Dot)):
        if not isinstance(dot.expression, exp.Func):
            continue
        names: list[exp.Expr] = []
        dots: list[exp.Expr] = []
        node = dot.this
        while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            names.append(node.expression)
            dots.append(node)
            node = node.this
        names.append(node)
        names.reverse()
        if not isinstance(node, exp.Identifier) or names[0].name.lower() in _SCHEMAS:
            continue
        top = dots[0] if dots else node
        parts = [name.copy() for name in names]
        made: exp.Expr = exp.Column(**dict(zip(_PARTS, reversed(parts[:4]), strict=False)))
        for part in parts[4:]:
            made = exp.Dot(this=made, expression=part)
        top.replace(made)
