"""The keys of groups and windows that DuckDB's parser reads alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from icesql.query.pushdown.same import mark_same

Node = Mapping[str, Any]
Same = Callable[["exp.Expr | None", "Node | None"], bool]


def mark_group_keys(node: exp.Select, found: Node, same: Same) -> None:
    """Mark the keys of a GROUP BY of one set."""
    group = node.args.get("group")
    others = found.get("group_expressions", ())
    if group is None or len(found.get("group_sets", ())) != 1:
        return
    if len(group.expressions) == len(others):
        for key, other in zip(group.expressions, others, strict=True):
            if same(key, other):
                mark_same(key)


def mark_window_keys(node: exp.Window, found: Node, same: Same) -> None:
    """Mark a window whose rows both divide alike; what it computes may differ."""
    parts, others = node.args.get("partition_by") or [], found.get("partitions", ())
    alike = found["class"] == "WINDOW" and len(parts) == len(others)
    if alike and all(same(*each) for each in zip(parts, others, strict=True)):
        mark_same(node)
