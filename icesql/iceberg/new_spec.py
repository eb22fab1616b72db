"""Partition specs and sort orders from columns by name, as statements request them.

Source: Iceberg spec, "Partitioning" and "Sorting"; Java ``PartitionSpec.Builder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from icesql.errors import ProgrammingError, TypeMismatchError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.sort_order import UNSORTED, SortField, SortOrder
from icesql.iceberg.partition_names import check_partition_names
from icesql.iceberg.partitioning import FIRST_FIELD_ID, PartitionField, PartitionSpec
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


class PartitionRequest(Frozen):
    """One partition field to make: a transform, as metadata spells it, of a column by full name."""

    source: str
    transform: str = "identity"
    name: str | None = None


class SortRequest(Frozen):
    """One key of a sort order to make; by default nulls come first ascending, last descending."""

    source: str
    transform: str = "identity"
    direction: Literal["asc", "desc"] = "asc"
    null_order: Literal["nulls-first", "nulls-last"] | None = None


def new_spec(schema: Schema, requests: Sequence[PartitionRequest]) -> PartitionSpec:
    """Spec 0 of a new table, its fields numbered from 1000.

    Raises ColumnNotFoundError, TypeMismatchError for a transform that does not take the type of
    its column, ProgrammingError for two fields of one name, or two redundant ones.
    """
    fields: list[PartitionField] = []
    for number, each in enumerate(requests):
        source, transform = source_of(schema, each.source, each.transform)
        name = each.name or default_name(schema.name_by_id[source.field_id], transform)
        made = PartitionField((source.field_id,), FIRST_FIELD_ID + number, str(transform), name)
        check_partition_field(schema, fields, made)
        fields.append(made)
    return PartitionSpec(0, tuple(fields))


def default_name(source: str, transform: Transform, *, numbered: bool = False) -> str:
    """The name of a partition field that was given none.

    ``numbered`` names have the width of the transform in them, as those that are added later.
    """
    match transform:
        case Bucket(buckets):
            return f"{source}_bucket_{buckets}" if numbered else f"{source}_bucket"
        case Truncate(width):
            return f"{source}_trunc_{width}" if numbered else f"{source}_trunc"
        case TimeTransform(unit):
            return f"{source}_{unit}"
        case Void():
            return f"{source}_null"
        case _:
            return source


def check_partition_field(
    schema: Schema, others: Sequence[PartitionField], field: PartitionField
) -> None:
    """Raise ProgrammingError where a field cannot be in one spec with ``others``.

    Raise TypeMismatchError for values that are not written into manifests.
    """
    transform = parse_transform(field.transform)
    source = schema.field_by_id[field.source_id]
    if isinstance(source.type, t.FixedType) and isinstance(transform, Identity):
        raise TypeMismatchError(
            f'a table cannot be partitioned by the values of "{source.name}" of type '
            f"{source.type}, which Iceberg's libraries store in different ways; bucket[N] can"
        )
    check_partition_names([schema], [PartitionSpec(0, (field,))])
    for each in others:
        if each.name.lower() == field.name.lower():
            raise ProgrammingError(f'two partition fields are called "{field.name}"')
        if each.source_ids != field.source_ids:
            continue
        other = parse_transform(each.transform)
        both_times = isinstance(other, TimeTransform) and isinstance(transform, TimeTransform)
        if other == transform or both_times:
            raise ProgrammingError(
                f'partition fields "{each.name}" and "{field.name}" are redundant: '
                f"{other} and {transform} of one column"
            )


def new_sort_order(schema: Schema, requests: Sequence[SortRequest], order_id: int = 1) -> SortOrder:
    """A sort order of these keys; order 0 without any. Raises as ``new_spec`` does."""
    if not requests:
        return UNSORTED
    fields = []
    for each in requests:
        source, transform = source_of(schema, each.source, each.transform)
        nulls = each.null_order or ("nulls-first" if each.direction == "asc" else "nulls-last")
        fields.append(SortField((source.field_id,), str(transform), each.direction, nulls))
    return SortOrder(order_id, tuple(fields))


def source_of(schema: Schema, name: str, text: str) -> tuple[t.NestedField, Transform]:
    """A column by name, and a transform that takes it. Raises as ``new_spec`` does."""
    source = schema.find_field(name, case_sensitive=False)
    transform = parse_transform(text)
    if isinstance(transform, UnknownTransform):
        raise ProgrammingError(
            f"there is no partition transform {text!r}; there are identity, bucket[N], "
            "truncate[W], year, month, day, hour and void"
        )
    if schema.inside_repeated(source.field_id):
        raise TypeMismatchError(f'"{name}" is inside a list or map and cannot be transformed')
    if not isinstance(source.type, t.PrimitiveType) or not transform.accepts(source.type):
        raise TypeMismatchError(f'{transform} does not take column "{name}" of type {source.type}')
    return source, transform
