"""Answer what metadata alone can answer, without starting an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """One result row; ``names`` are the output columns, all of type long."""

    names: tuple[str, ...]
    row: tuple[Any, ...]


def answer_from_metadata(bound: BoundQuery, context: QueryContext) -> MetadataAnswer | None:
    """The answer, None when an engine has to work it out."""
    return None
