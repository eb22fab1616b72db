"""SHOW PROCEDURES."""

from __future__ import annotations

from typing import Any, Final

from icesql.maintain.procedures.declared import PROCEDURES
from icesql.query.like import is_like

_COLUMNS: Final = (
    ("procedure", "varchar"), ("signature", "varchar"), ("result", "varchar"),
    ("description", "varchar"),
)  # fmt: skip


def list_procedures(like: str | None) -> tuple[tuple[tuple[str, str], ...], list[tuple[Any, ...]]]:
    """The columns, and a row for each procedure whose name is like a pattern, in any case."""
    pattern = None if like is None else like.lower()
    return _COLUMNS, [
        (f"system.{name}", each.signature, each.result, each.about)
        for name, each in PROCEDURES.items()
        if pattern is None or is_like(name, pattern)
    ]
