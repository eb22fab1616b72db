"""Partition specs and sort orders by columns' names: new ones, and changes of a table's spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from icesql.errors import ProgrammingError, TypeMismatchError, nearest
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.rules import check_partition_names
from icesql.iceberg.metadata.table_metadata import UNSORTED, SortField, SortOrder
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

# ------------------------------------------------------------------ new specs
# Source: Iceberg spec, "Partitioning" and "Sorting"; Java ``PartitionSpec.Builder``.


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


# ------------------------------------------------------------------ changes of a spec


# No field has this id.
_NEW: Final = 0


class SpecHistory(Frozen):
    """The source of a new spec: the default spec, all others, and the ids in use."""

    format_version: int
    schema: Schema
    spec: PartitionSpec
    specs: Mapping[int, PartitionSpec]
    last_partition_id: int


def changed_spec(
    history: SpecHistory,
    *,
    add: Sequence[PartitionRequest] = (),
    drop: Sequence[str | PartitionRequest] = (),
) -> PartitionSpec:
    """The default spec without some fields, with others after those that stay.

    ``drop`` names fields by their name or by their source and transform. From format version 2 on a
    field that any spec had gets its id again; in version 1 a dropped field becomes void at its
    place.

    Raises ProgrammingError, ColumnNotFoundError, TypeMismatchError.
    """
    gone = {_dropped(history, each).field_id for each in drop}
    kept: list[PartitionField] = []
    for field in history.spec.fields:
        if field.field_id not in gone:
            kept.append(field)
        elif history.format_version == 1:
            kept.append(replace(field, transform="void"))
    next_id = history.last_partition_id
    for request in add:
        made = _made(history, request)
        if made.field_id in gone:
            # Dropped and added in one change: it stays what it was.
            old = next(each for each in history.spec.fields if each.field_id == made.field_id)
            kept = [each for each in kept if each.field_id != old.field_id]
            kept.append(old if request.name is None else replace(old, name=request.name))
            continue
        if made.field_id == _NEW:
            next_id += 1
            made = replace(made, field_id=next_id)
        kept = _making_room(history, kept, made)
        live = [each for each in kept if parse_transform(each.transform) != parse_transform("void")]
        check_partition_field(history.schema, live, made)
        kept.append(made)
    names = [each.name.lower() for each in kept]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise ProgrammingError(f'two partition fields would be called "{twice}"')
    return PartitionSpec(1 + max(history.specs), tuple(kept))


def _made(history: SpecHistory, request: PartitionRequest) -> PartitionField:
    """The field of a request, with its id and name where a spec of the table had it."""
    source, transform = source_of(history.schema, request.source, request.transform)
    name = request.name or default_name(
        history.schema.name_by_id[source.field_id], transform, numbered=True
    )
    made = PartitionField((source.field_id,), _NEW, str(transform), name)
    if history.format_version == 1:
        return made
    for spec_id in sorted(history.specs, reverse=True):
        for field in history.specs[spec_id].fields:
            same = field.source_ids == made.source_ids
            if same and parse_transform(field.transform) == transform:
                # Reuse the old name, too, unless the request gives one.
                return replace(made, field_id=field.field_id, name=request.name or field.name)
    return made


def _making_room(
    history: SpecHistory, kept: Sequence[PartitionField], made: PartitionField
) -> list[PartitionField]:
    """In version 1 a void field gives up its name to a new one."""
    return [
        replace(each, name=f"{each.name}_{each.field_id}")
        if each.transform == "void" and each.name == made.name and history.format_version == 1
        else each
        for each in kept
    ]


def _dropped(history: SpecHistory, wanted: str | PartitionRequest) -> PartitionField:
    for field in history.spec.fields:
        if isinstance(wanted, str):
            if field.name == wanted:
                return field
            continue
        source, transform = source_of(history.schema, wanted.source, wanted.transform)
        same = field.source_ids == (source.field_id,)
        if same and parse_transform(field.transform) == transform:
            return field
    if isinstance(wanted, str):
        raise _missing(history, wanted)
    raise _missing(history, f"{wanted.transform}({wanted.source})")


def _missing(history: SpecHistory, name: str) -> ProgrammingError:
    names = [each.name for each in history.spec.fields]
    hint = nearest(name, names, f"; there are {', '.join(names) or 'none'}")
    return ProgrammingError(f'the table is not partitioned by "{name}"{hint}')
