"""Evaluate a predicate on one row or one partition tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    COMPARISONS,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
)
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.transforms import parse_transform
from icesql.iceberg.types import IcebergType


def evaluate(
    predicate: Predicate,
    value_of: Callable[[int], Any],
    type_of: Callable[[int], IcebergType] | None = None,
) -> bool:
    """Whether a row satisfies ``predicate``; ``value_of`` returns its values by field id.

    NULL and NaN behave as in the predicate module. ``type_of`` is needed only for terms that
    transform their column; without it ``value_of`` must return the transformed value.
    """
    match predicate:
        case Leaf(operation, term, literal):
            value = value_of(term.field_id)
            if term.transform != "identity" and type_of is not None:
                value = parse_transform(term.transform).apply(value, type_of(term.field_id))
            return matches(operation, literal, value)
        case And(left, right):
            return evaluate(left, value_of, type_of) and evaluate(right, value_of, type_of)
        case Or(left, right):
            return evaluate(left, value_of, type_of) or evaluate(right, value_of, type_of)
        case _ if predicate is ALWAYS_TRUE:
            return True
        case _ if predicate is ALWAYS_FALSE:
            return False
        case _:
            raise TypeError(f"not a predicate: {predicate!r}")


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
