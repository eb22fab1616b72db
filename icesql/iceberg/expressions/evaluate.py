"""Evaluate a predicate on one row or one partition tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icesql.iceberg.expressions.predicate import COMPARISONS, Operation, Predicate, holds
from icesql.iceberg.manifest.partition_values import UNSTORED


def evaluate(predicate: Predicate, value_of: Callable[[int], Any]) -> bool:
    """Whether a row satisfies ``predicate``; ``value_of`` returns its values by field id.

    NULL and NaN behave as in the predicate module. Of a term that transforms its column it returns
    the transformed value.
    """
    return holds(
        predicate, lambda leaf: matches(leaf.operation, leaf.literal, value_of(leaf.term.field_id))
    )


def matches(operation: Operation, literal: Any, value: Any) -> bool:
    """Whether one value satisfies one comparison; both in the internal form.

    UNSTORED, an unknown partition value, may satisfy any.
    """
    if value is None:
        return operation is Operation.IS_NULL
    if value is UNSTORED:
        return True
    match operation:
        case Operation.IS_NULL:
            return False
        case Operation.NOT_NULL:
            return True
        case Operation.IS_NAN:
            return bool(value != value)
        case Operation.NOT_NAN:
            return bool(value == value)
        case Operation.IN:
            return value in literal
        case Operation.NOT_IN:
            return value not in literal
        case Operation.STARTS_WITH:
            return bool(value.startswith(literal))
        case Operation.NOT_STARTS_WITH:
            return not value.startswith(literal)
        case _:
            return bool(COMPARISONS[operation](value, literal))
