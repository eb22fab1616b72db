"""DuckDB's own tree of a condition or column, kept beside its node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.sql.trees import exp

# In ``meta`` of the node.
KEY: Final = "engine_node"


class EngineNode:
    """A node of DuckDB's tree.

    ``sql_place`` turns a place that DuckDB names into one of the user's SQL. Copies of the sqlglot
    node share it.
    """

    __slots__ = ("sql_place", "value")

    def __init__(self, value: Mapping[str, Any], sql_place: Callable[[int], int]) -> None:
        self.value, self.sql_place = value, sql_place

    def __deepcopy__(self, memo: Any) -> EngineNode:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Conditions are pruned by where the text was read; elsewhere nobody asks for it.
        return _nothing, ()


def _nothing() -> None:
    return None


def set_engine_node(
    node: exp.Expr, value: Mapping[str, Any], sql_place: Callable[[int], int]
) -> None:
    """Keep ``value``, of which ``node`` was made, beside it."""
    node.meta[KEY] = EngineNode(value, sql_place)


def engine_node(node: exp.Expr) -> EngineNode | None:
    """The tree that ``set_engine_node`` kept beside a node, or beside the original of a copy."""
    found: EngineNode | None = node.meta.get(KEY)
    return found
