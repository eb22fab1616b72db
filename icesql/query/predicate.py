"""Turn a SQL condition into an Iceberg predicate that is implied by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.context import QueryContext
    from icesql.iceberg.types import NestedField


def to_predicate(
    condition: exp.Expression,
    resolve: Callable[[exp.Column], NestedField | None],
    context: QueryContext,
) -> Predicate:
    """A predicate that holds for every row for which ``condition`` is true."""
    return ALWAYS_TRUE
