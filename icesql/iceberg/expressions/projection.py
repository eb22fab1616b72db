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
from icesql.iceberg.decimals import scaled, unscaled
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
        case Bucket():
            return _equality(leaf, target, transform, source_type)
        case Truncate() if isinstance(source_type, t.StringType | t.BinaryType):
            return _inclusive_text(leaf, target, transform, source_type)
        case Truncate():
            return _inclusive_number(leaf, target, transform, source_type)
        case TimeTransform():
            return _inclusive_time(leaf, target, transform, source_type)
        case _:
            return None


def _equality(
    leaf: Leaf, target: Term, transform: Transform, source_type: t.IcebergType
) -> Predicate | None:
    """EQ and IN through any transform: equal values have equal partitions."""
    match leaf.operation:
        case Operation.EQ:
            return Leaf(Operation.EQ, target, transform.apply(leaf.literal, source_type))
        case Operation.IN:
            return _one_of(target, (transform.apply(each, source_type) for each in leaf.literal))
        case _:
            return None


def _inclusive_text(
    leaf: Leaf, target: Term, transform: Truncate, source_type: t.IcebergType
) -> Predicate | None:
    literal = leaf.literal
    match leaf.operation:
        case Operation.LT | Operation.LT_EQ:
            return Leaf(Operation.LT_EQ, target, literal[: transform.width])
        case Operation.GT | Operation.GT_EQ:
            return Leaf(Operation.GT_EQ, target, literal[: transform.width])
        case Operation.STARTS_WITH if len(literal) == transform.width:
            return Leaf(Operation.EQ, target, literal)
        case Operation.STARTS_WITH if len(literal) < transform.width:
            return Leaf(Operation.STARTS_WITH, target, literal)
        case Operation.STARTS_WITH:
            # The whole partition value is T(p) then; STARTS_WITH is how Java spells it.
            return Leaf(Operation.STARTS_WITH, target, literal[: transform.width])
        case Operation.NOT_STARTS_WITH if len(literal) == transform.width:
            return Leaf(Operation.NOT_EQ, target, literal)
        case Operation.NOT_STARTS_WITH if len(literal) < transform.width:
            return Leaf(Operation.NOT_STARTS_WITH, target, literal)
        case _:
            return _equality(leaf, target, transform, source_type)


def _inclusive_number(
    leaf: Leaf, target: Term, transform: Truncate, source_type: t.IcebergType
) -> Predicate | None:
    def truncated(steps: int) -> Any:
        return transform.apply(_step(leaf.literal, steps, source_type), source_type)

    wrapped = _wrapped_above(transform, source_type)
    match leaf.operation:
        case Operation.LT | Operation.LT_EQ:
            found = Leaf(
                Operation.LT_EQ, target, truncated(-1 if leaf.operation is Operation.LT else 0)
            )
            # Java wraps around where truncation goes below the least value: those rows lie in a
            # partition above all others.
            return found if wrapped is None else found | Leaf(Operation.GT, target, wrapped)
        case Operation.GT:
            return Leaf(Operation.GT_EQ, target, truncated(1))
        case Operation.GT_EQ:
            return Leaf(Operation.GT_EQ, target, truncated(0))
        case Operation.EQ | Operation.IN:
            literals = leaf.literal if leaf.operation is Operation.IN else (leaf.literal,)
            found_values = [transform.apply(each, source_type) for each in literals]
            if wrapped is not None and min(found_values, default=0) < _least_value(source_type):
                return None
            return _one_of(target, found_values)
        case _:
            return None


def _inclusive_time(
    leaf: Leaf, target: Term, transform: TimeTransform, source_type: t.IcebergType
) -> Predicate | None:
    # Writers up to Iceberg 0.10 rounded toward zero, one too high before 1970, so the projection
    # takes both values there. Days of dates were always right.
    corrects = _was_rounded_to_zero(transform, source_type)

    def project(steps: int) -> int:
        value: int = transform.apply(leaf.literal + steps, source_type)
        return value

    match leaf.operation:
        case Operation.LT | Operation.LT_EQ:
            unit = project(-1 if leaf.operation is Operation.LT else 0)
            return Leaf(Operation.LT_EQ, target, unit + (corrects and unit < 0))
        case Operation.GT:
            return Leaf(Operation.GT_EQ, target, project(1))
        case Operation.GT_EQ:
            return Leaf(Operation.GT_EQ, target, project(0))
        case Operation.EQ | Operation.IN:
            literals = leaf.literal if leaf.operation is Operation.IN else (leaf.literal,)
            return _one_of(target, _units(literals, transform, source_type))
        case _:
            return None


def _units(
    literals: Iterable[int], transform: TimeTransform, source_type: t.IcebergType
) -> Iterator[int]:
    """The units of the literals, with the next one where old writers rounded up."""
    for each in literals:
        unit = transform.apply(each, source_type)
        yield unit
        if unit < 0 and _was_rounded_to_zero(transform, source_type):
            yield unit + 1


def _was_rounded_to_zero(transform: TimeTransform, source_type: t.IcebergType) -> bool:
    return not (transform.unit == "day" and isinstance(source_type, t.DateType))


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
    """``value`` moved by the smallest units of its type; may leave the type's range."""
    if isinstance(value_type, t.DecimalType):
        return scaled(unscaled(value, value_type.scale) + units, value_type.scale)
    return value + units


def _least_value(source_type: t.IcebergType) -> int:
    """The least int or long."""
    return -(2**31) if isinstance(source_type, t.IntegerType) else -(2**63)


def _wrapped_above(transform: Truncate, source_type: t.IcebergType) -> int | None:
    """The greatest proper partition value, if Java's truncation of the least value wraps.

    None when it cannot wrap: decimals, and widths that divide the least value.
    """
    if (
        not isinstance(source_type, t.IntegerType | t.LongType)
        or not _least_value(source_type) % transform.width
    ):
        return None
    greatest = -_least_value(source_type) - 1
    return greatest - greatest % transform.width
