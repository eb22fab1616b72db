"""The text of a condition for EXPLAIN and messages; long conditions show their first parts."""

from __future__ import annotations

from itertools import islice
from typing import Final

from sqlglot import exp

_MOST_NODES: Final = 1_000
_MOST_PARTS: Final = 5


def short_sql(node: exp.Expr) -> str:
    """The SQL of ``node`` in DuckDB's dialect, shortened if it is long."""
    try:
        if _is_small(node):
            return node.sql(dialect="duckdb")
        if isinstance(node, exp.And | exp.Or):
            parts = list(node.flatten(unnest=False))
            word = " AND " if isinstance(node, exp.And) else " OR "
            first = word.join(_part(each) for each in parts[:_MOST_PARTS])
            return f"{first}{word}… and {len(parts) - _MOST_PARTS:,} more"
    except RecursionError:
        pass
    return _part(node)


def _part(node: exp.Expr) -> str:
    kind = type(node).__name__.upper()
    return node.sql(dialect="duckdb") if _is_small(node) else f"a long {kind}"


def _is_small(node: exp.Expr) -> bool:
    return next(islice(node.walk(), _MOST_NODES, None), None) is None
