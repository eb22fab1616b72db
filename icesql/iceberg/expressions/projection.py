"""Project a predicate on columns to one on the partition values of a spec.

The inclusive projection is true for the partition of every row that satisfies the predicate;
where the strict projection is true for a partition, all of its rows satisfy the predicate. Both
are predicates whose terms are partition fields. Source: Java ``Projections``, Iceberg spec
"Scan Planning".

>>> partitions("ts < TIMESTAMP '2024-03-01 12:00:00'", "day", "ts")
may:  part <= 19783
must: part < 19783
>>> partitions("name = 'iceberg'", "truncate[3]", "name")
may:  part = 'ice'
must: false
>>> partitions("i <> 7", "bucket[16]", "i")
may:  true
must: part <> 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.bounds import scaled, unscaled
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    NEGATED,
    Leaf,
    Operation,
    Predicate,
    Term,
    negated,
    replace_leaves,
)
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
    parse_transform,
)


def inclusive(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """True for each partition of ``spec`` that can hold a row satisfying ``predicate``.

    Terms of the result have the partition field's id and name. Sources that ``schema`` lacks,
    and void, unknown and multi-argument transforms, project to nothing.
    """
    return replace_leaves(predicate, lambda leaf: inclusive_leaf(leaf, spec, schema))


def strict(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """True only for partitions of ``spec`` all of whose rows satisfy ``predicate``."""
    return replace_leaves(predicate, lambda leaf: strict_leaf(leaf, spec, schema))


def inclusive_leaf(leaf: Leaf, spec: PartitionSpec, schema: Schema) -> Predicate:
    """The inclusive projection of one leaf: the AND over its partition fields."""
    projected: Predicate = ALWAYS_TRUE
    for found in _projections(leaf, spec, schema, _inclusive_transform):
        projected = projected & found
    return projected


def strict_leaf(leaf: Leaf, spec: PartitionSpec, schema: Schema) -> Predicate:
    """The strict projection of one leaf: the OR over its partition fields."""
    projected: Predicate = ALWAYS_FALSE
    for found in _projections(leaf, spec, schema, _strict_transform):
        projected = projected | found
    return projected


_Project = Callable[[Leaf, Term, Transform, t.IcebergType], Predicate | None]


def _projections(
    leaf: Leaf, spec: PartitionSpec, schema: Schema, project: _Project
) -> Iterator[Predicate]:
    """The projection of ``leaf`` through each partition field of its column that has one."""
    source = schema.field_by_id.get(leaf.term.field_id)
    if source is None:
        return
    for each in spec.fields:
        if each.source_ids != (source.field_id,):
            continue
        transform = parse_transform(each.transform)
        if isinstance(transform, Void | UnknownTransform) or not transform.accepts(source.type):
            continue
        target = Term(each.field_id, each.name)
        if leaf.term.transform != "identity":
            # The predicate is on a transform of the column: the partition value decides if it has
            # the same transform, and nothing follows if it has another.
            if parse_transform(leaf.term.transform) == transform:
                yield Leaf(leaf.operation, target, leaf.literal)
            continue
        found = project(leaf, target, transform, source.type)
        if found is not None:
            yield found


# ------------------------------------------------------------------ inclusive


def _inclusive_transform(
    leaf: Leaf, target: Term, transform: Transform, source_type: t.IcebergType
) -> Predicate | None:
    match transform:
        case _ if leaf.operation in (Operation.IS_NULL, Operation.NOT_NULL):
            return Leaf(leaf.operation, target)
        case Identity():
            return Leaf(leaf.operation, target, leaf.literal)
        case Bucket() if leaf.operation not in (Operation.EQ, Operation.IN):
            return None
        case _:
            return _inclusive_value(leaf, target, transform, source_type)


def _inclusive_value(
    leaf: Leaf, target: Term, transform: Transform, source_type: t.IcebergType
) -> Predicate | None:
    """A comparison through a transform that makes one value of many: by rounding, or a hash."""

    def applied(value: Any, steps: int = 0) -> Any:
        return transform.apply(_step(value, steps, source_type), source_type)

    operation, literal = leaf.operation, leaf.literal
    # Writers up to Iceberg 0.10 rounded toward zero, one too high before 1970, so the projection
    # takes both values there. Days of dates were always right.
    corrects = isinstance(transform, TimeTransform) and not (
        transform.unit == "day" and isinstance(source_type, t.DateType)
    )
    wrapped = _wrapped_above(transform, source_type)
    match operation:
        case Operation.LT | Operation.LT_EQ:
            bound = applied(literal, -1 if operation is Operation.LT else 0)
            found = Leaf(Operation.LT_EQ, target, bound + 1 if corrects and bound < 0 else bound)
            # Java wraps around where truncation goes below the least value: those rows lie in a
            # partition above all others.
            return found if wrapped is None else found | Leaf(Operation.GT, target, wrapped)
        case Operation.GT | Operation.GT_EQ:
            steps = 1 if operation is Operation.GT else 0
            return Leaf(Operation.GT_EQ, target, applied(literal, steps))
        case Operation.EQ | Operation.IN:
            values = set(map(applied, literal if operation is Operation.IN else (literal,)))
            if wrapped is not None and min(values, default=0) < _least_value(source_type):
                return None
            if corrects:
                values |= {each + 1 for each in values if each < 0}
            return _one_of(target, values)
        case Operation.STARTS_WITH | Operation.NOT_STARTS_WITH if isinstance(transform, Truncate):
            return _inclusive_prefix(operation, target, literal, transform.width)
        case _:
            return None


def _inclusive_prefix(
    operation: Operation, target: Term, prefix: str, width: int
) -> Predicate | None:
    if len(prefix) == width:
        is_equal = operation is Operation.STARTS_WITH
        return Leaf(Operation.EQ if is_equal else Operation.NOT_EQ, target, prefix)
    if operation is Operation.NOT_STARTS_WITH and len(prefix) > width:
        return None
    # Of a longer prefix, the whole partition value is T(p); STARTS_WITH is how Java spells it.
    return Leaf(operation, target, prefix[:width])


# ------------------------------------------------------------------ strict


def _strict_transform(
    leaf: Leaf, target: Term, transform: Transform, source_type: t.IcebergType
) -> Predicate | None:
    """The dual of inclusive: true where no value of the partition can fail the leaf."""
    negation = Leaf(NEGATED[leaf.operation], leaf.term, leaf.literal)
    failing = _inclusive_transform(negation, target, transform, source_type)
    if failing is None:
        return None
    # No value can fail, but NULL satisfies no comparison.
    return Leaf(Operation.NOT_NULL, target) if failing is ALWAYS_FALSE else negated(failing)


# ------------------------------------------------------------------ literals


def _one_of(term: Term, values: Iterable[Any]) -> Predicate:
    """EQ for one value, IN for several, false for none."""
    literals = frozenset(values)
    match len(literals):
        case 0:
            return ALWAYS_FALSE
        case 1:
            return Leaf(Operation.EQ, term, *literals)
        case _:
            return Leaf(Operation.IN, term, literals)


def _step(value: Any, units: int, value_type: t.IcebergType) -> Any:
    """``value`` moved by the smallest units of its type, which text and bytes do not have.

    It may leave the type's range.
    """
    if not units or isinstance(value_type, t.StringType | t.BinaryType):
        return value
    if isinstance(value_type, t.DecimalType):
        return scaled(unscaled(value, value_type.scale) + units, value_type.scale)
    return value + units


def _least_value(source_type: t.IcebergType) -> int:
    """The least int or long."""
    return -(2**31) if isinstance(source_type, t.IntegerType) else -(2**63)


def _wrapped_above(transform: Transform, source_type: t.IcebergType) -> int | None:
    """The greatest proper partition value, if Java's truncation of the least value wraps.

    None when it cannot wrap: decimals, and widths that divide the least value.
    """
    if not isinstance(source_type, t.IntegerType | t.LongType):
        return None
    least = _least_value(source_type)
    if not isinstance(transform, Truncate) or not least % transform.width:
        return None
    return -least - 1 - (-least - 1) % transform.width
