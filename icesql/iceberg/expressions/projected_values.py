"""Literals of projections: sets of partition values, steps of a type, and Java's wrap-around."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icesql.iceberg.decimals import scaled, unscaled
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term
from icesql.iceberg.transforms import Truncate
from icesql.iceberg.types import DecimalType, IcebergType, IntegerType, LongType


def one_of(term: Term, values: Iterable[Any]) -> Predicate:
    """EQ for one value, IN for several, false for none."""
    literals = frozenset(values)
    match len(literals):
        case 0:
            return ALWAYS_FALSE
        case 1:
            return Leaf(Operation.EQ, term, *literals)
        case _:
            return Leaf(Operation.IN, term, literals)


def none_of(term: Term, values: Iterable[Any]) -> Predicate:
    """NOT_EQ for one value, NOT_IN for several, NOT_NULL for none."""
    literals = frozenset(values)
    match len(literals):
        case 0:
            return Leaf(Operation.NOT_NULL, term)
        case 1:
            return Leaf(Operation.NOT_EQ, term, *literals)
        case _:
            return Leaf(Operation.NOT_IN, term, literals)


def step(value: Any, units: int, value_type: IcebergType) -> Any:
    """``value`` moved by the smallest units of its type; may leave the type's range."""
    if isinstance(value_type, DecimalType):
        return scaled(unscaled(value, value_type.scale) + units, value_type.scale)
    return value + units


def least_value(source_type: IcebergType) -> int:
    """The least int or long."""
    return -(2**31) if isinstance(source_type, IntegerType) else -(2**63)


def wrapped_above(transform: Truncate, source_type: IcebergType) -> int | None:
    """The greatest proper partition value, if Java's truncation of the least value wraps.

    None when it cannot wrap: decimals, and widths that divide the least value.
    """
    if (
        not isinstance(source_type, IntegerType | LongType)
        or not least_value(source_type) % transform.width
    ):
        return None
    greatest = -least_value(source_type) - 1
    return greatest - greatest % transform.width
