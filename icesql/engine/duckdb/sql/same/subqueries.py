"""Conditions on the rows of a subquery: ``x IN (SELECT …)``, ``EXISTS (…)``, ``x = (SELECT …)``.

The subquery itself is compared as every other SELECT; here is what stands around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

Node = Mapping[str, Any]
Same = Callable[["exp.Expr | None", "Node | None"], bool]


def same_around_subquery(node: exp.Expr, found: Node, same: Same) -> bool:
    """Whether two conditions ask the same of a subquery; ``same`` compares what else they hold."""
    match node:
        case exp.In() if node.args.get("query") is not None:
            return (
                _is_subquery(found, "ANY")
                and found.get("comparison_type") == "COMPARE_EQUAL"
                and same(node.this, found.get("child"))
            )
        case exp.Exists():
            return _is_subquery(found, "EXISTS")
        case exp.EQ(this=left, expression=right) if found.get("type") == "COMPARE_EQUAL":
            if isinstance(right, exp.Subquery):
                return _is_subquery(found["right"], "SCALAR") and same(left, found["left"])
            if isinstance(left, exp.Subquery):
                return _is_subquery(found["left"], "SCALAR") and same(right, found["right"])
    return False


def _is_subquery(found: Node | None, kind: str) -> bool:
    return (
        found is not None
        and found.get("class") == "SUBQUERY"
        and found.get("subquery_type") == kind
    )
