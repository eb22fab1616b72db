"""Gives conditions and columns what DuckDB reads in their places, to be made when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from icesql.engine.duckdb.sql.same.expressions import conjunction, flat, flat_conjunction
from icesql.query.pushdown.same import Reading, set_reading

if TYPE_CHECKING:
    from icesql.query.pushdown.computed.expression import Expression

Node = Mapping[str, Any]


def set_readings(node: exp.Expr, found: Node, place: Callable[[int], int]) -> None:
    """Each part of an AND gets what DuckDB reads there, which need not be the same."""
    parts = flat(node) if conjunction(node) == "CONJUNCTION_AND" else [node.unnest()]
    others = flat_conjunction(found, "CONJUNCTION_AND")
    if len(parts) == len(others):
        for part, other in zip(parts, others, strict=True):
            read_later(part, other, place)


def read_later(node: exp.Expr, found: Node, place: Callable[[int], int]) -> None:
    """``node`` gets the reading of ``found``."""

    def make() -> Expression | None:
        from icesql.engine.duckdb.sql.same.reading import convert

        return convert(node, found, place)

    set_reading(node, Reading(make))
