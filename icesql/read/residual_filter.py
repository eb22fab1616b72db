"""Evaluate a residual exactly on Arrow arrays: SQL's WHERE under IEEE zeros, column by column.

A leaf is false for NULL (IS NULL apart), comparisons are false for NaN, "<>" and NOT IN are true
for it. A leaf that names a transform is taken as true: the engine filters again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_TRUE,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
)
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import stored
from icesql.read.columns.values import one_value

_UNORDERED = (t.VariantType, t.GeometryType, t.GeographyType)


def evaluable(leaf: Leaf, schema: Schema) -> bool:
    """Whether a leaf can be decided on a column: an identity term outside lists and maps."""
    field_id = leaf.term.field_id
    if leaf.term.transform != "identity" or field_id not in schema.field_by_id:
        return False
    if schema.inside_repeated(field_id):
        return False
    type = schema.type_of(field_id)
    if leaf.operation in (Operation.IS_NULL, Operation.NOT_NULL):
        return True
    return isinstance(type, t.PrimitiveType) and not isinstance(type, _UNORDERED)


def matching(
    predicate: Predicate, column_of: Callable[[Leaf], tuple[pa.Array, t.IcebergType] | None]
) -> pa.Array | bool:
    """Which rows satisfy ``predicate``: a Boolean array without nulls, or one answer for all.

    ``column_of`` gives the column that a leaf names, None when the leaf cannot be decided.
    """
    match predicate:
        case And(left, right):
            return both(matching(left, column_of), matching(right, column_of))
        case Or(left, right):
            return _either(matching(left, column_of), matching(right, column_of))
        case Leaf():
            found = column_of(predicate)
            return True if found is None else _leaf(predicate, *found)
        case _:
            return predicate is ALWAYS_TRUE


def both(left: pa.Array | bool, right: pa.Array | bool) -> pa.Array | bool:
    """The rows of two masks, where True and False mean all rows and none."""
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return pc.and_(left, right)


def _either(left: pa.Array | bool, right: pa.Array | bool) -> pa.Array | bool:
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return pc.or_(left, right)


def _leaf(leaf: Leaf, array: pa.Array, type: t.IcebergType) -> pa.Array | bool:
    if isinstance(type, t.UnknownType):
        return leaf.operation is Operation.IS_NULL
    if isinstance(type, t.UUIDType):
        array = array.storage
    elif isinstance(type, t.FixedType) and not _fits(leaf.literal, type.length):
        # Bytes of another length are compared as bytes, and no fixed array can hold them.
        array, type = array.cast(pa.binary()), t.BinaryType()
    match leaf.operation:
        case Operation.IS_NULL:
            return array.is_null()
        case Operation.NOT_NULL:
            return array.is_valid()
        case Operation.IS_NAN | Operation.NOT_NAN:
            is_nan = leaf.operation is Operation.IS_NAN
            if not t.is_floating(type):
                return False if is_nan else array.is_valid()
            nan = pc.is_nan(array)
            return _known(nan if is_nan else pc.invert(nan))
        case Operation.IN:
            return _among(leaf, array, type)
        case Operation.NOT_IN:
            return pc.and_(array.is_valid(), pc.invert(_among(leaf, array, type)))
        case Operation.STARTS_WITH:
            return _known(_starts_with(array, leaf.literal))
        case Operation.NOT_STARTS_WITH:
            return _known(pc.invert(_starts_with(array, leaf.literal)))
        case _:
            return _known(_COMPARE[leaf.operation](array, _scalar(leaf.literal, type)))


_COMPARE: dict[Operation, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    Operation.LT: pc.less,
    Operation.LT_EQ: pc.less_equal,
    Operation.GT: pc.greater,
    Operation.GT_EQ: pc.greater_equal,
    Operation.EQ: pc.equal,
    Operation.NOT_EQ: pc.not_equal,
}


def _fits(literal: Any, length: int) -> bool:
    values = (literal,) if isinstance(literal, bytes) else literal or ()
    return all(len(value) == length for value in values)


def _among(leaf: Leaf, array: pa.Array, type: t.IcebergType) -> pa.Array:
    values = list(leaf.literal)
    if t.is_floating(type) and 0.0 in values:
        # Arrow's is_in compares bits, so both zeros are listed.
        values = [*(value for value in values if value != 0.0), 0.0, -0.0]
    literals = pa.concat_arrays([_stored(value, type) for value in values])
    return pc.is_in(array, value_set=literals, skip_nulls=True)


def _starts_with(array: pa.Array, prefix: Any) -> pa.Array:
    if isinstance(prefix, str):
        return pc.starts_with(array, prefix)
    return pc.equal(pc.binary_slice(array, 0, len(prefix)), pa.scalar(prefix, pa.binary()))


def _scalar(value: Any, type: t.IcebergType) -> pa.Scalar:
    return _stored(value, type)[0]


def _stored(value: Any, type: t.IcebergType) -> pa.Array:
    return stored(one_value(value, type))


def _known(answer: pa.Array) -> pa.Array:
    return answer.fill_null(False) if answer.null_count else answer
