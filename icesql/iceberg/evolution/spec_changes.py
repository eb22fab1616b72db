"""Change how new files of a table are partitioned; old files keep their spec.

Source: Iceberg spec, "Partition Evolution"; Java ``BaseUpdatePartitionSpec``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.iceberg.new_spec import (
    PartitionRequest,
    check_partition_field,
    default_name,
    source_of,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform

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
