"""The updates of a change of table metadata, and its requirements, as REST catalogs take them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from icesql.frozen import Frozen
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, SortOrder, TableMetadata
from icesql.iceberg.metadata.writing import (
    ref_json,
    schema_json,
    snapshot_json,
    sort_order_json,
    spec_json,
)
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema

# A placeholder for the id of the schema, spec or order that an earlier update just added.
LAST_ADDED: Final = -1


def kebab_case(name: str) -> str:
    """The name of a class with lower-case words and dashes.

    >>> kebab_case("SetCurrentSchema")
    'set-current-schema'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Update(Frozen, tag_field="action", tag=kebab_case, rename="kebab"):
    """Its JSON in a request has the name of the class as action, and the fields."""


class AssignUuid(Update):
    """Give the table its uuid, once."""

    uuid: str


class UpgradeFormatVersion(Update):
    """Raise the format version; nothing else is rewritten."""

    format_version: int


class AddSchema(Update):
    """Add a schema; one that is there already, under any id, is used again."""

    schema: Schema


class SetCurrentSchema(Update):
    """Make a schema the current one."""

    schema_id: int = LAST_ADDED


class AddPartitionSpec(Update, tag="add-spec"):
    """Add a partition spec; one that is there already is used again."""

    spec: PartitionSpec


class SetDefaultSpec(Update):
    """Make a partition spec the one that writers use."""

    spec_id: int = LAST_ADDED


class AddSortOrder(Update):
    """Add a sort order; one that is there already is used again."""

    order: SortOrder


class SetDefaultSortOrder(Update, rename={"order_id": "sort-order-id"}):
    """Make a sort order the one that writers use."""

    order_id: int = LAST_ADDED


class SetLocation(Update):
    """Where new files of the table go."""

    location: str


class SetProperties(Update):
    """Set properties, keeping the others."""

    properties: Mapping[str, str]


class RemoveProperties(Update, rename={"names": "removals"}):
    """Remove properties; those that are not there do not matter."""

    names: tuple[str, ...]


class AddSnapshot(Update):
    """Add a snapshot, which no ref points at yet."""

    snapshot: Snapshot


class SetSnapshotRef(Update):
    """Point a branch or tag at a snapshot, making it where it is not there."""

    name: str
    ref: SnapshotRef


class RemoveSnapshotRef(Update, rename={"name": "ref-name"}):
    """Remove a branch or tag."""

    name: str


class RemoveSnapshots(Update):
    """Remove snapshots, with the refs that point at them and their statistics."""

    snapshot_ids: tuple[int, ...]


class SetStatistics(Update):
    """Set the statistics file of a snapshot; ``file`` is its JSON in table metadata."""

    file: Mapping[str, Any]


class RemoveStatistics(Update):
    """Remove the statistics file of a snapshot."""

    snapshot_id: int


class SetPartitionStatistics(Update):
    """Set the partition statistics file of a snapshot; ``file`` is its JSON in table metadata."""

    file: Mapping[str, Any]


class RemovePartitionStatistics(Update):
    """Remove the partition statistics file of a snapshot."""

    snapshot_id: int


class RemovePartitionSpecs(Update):
    """Remove partition specs that no file uses; never the default one."""

    spec_ids: tuple[int, ...]


class RemoveSchemas(Update):
    """Remove schemas that no snapshot uses; never the current one."""

    schema_ids: tuple[int, ...]


def update_json(update: Update) -> dict[str, Any]:
    """An update as a REST catalog takes it.

    >>> update_json(SetCurrentSchema(2))
    {'action': 'set-current-schema', 'schema-id': 2}
    """
    action = {"action": update.__struct_config__.tag}
    match update:
        case AddSchema(schema):
            highest = max(schema.field_by_id, default=0)
            return {**action, "schema": schema_json(schema), "last-column-id": highest}
        case AddPartitionSpec(spec):
            return {**action, "spec": spec_json(spec)}
        case AddSortOrder(order):
            return {**action, "sort-order": sort_order_json(order)}
        case SetProperties(properties):
            return {**action, "updates": dict(properties)}
        case AddSnapshot(snapshot):
            return {**action, "snapshot": snapshot_json(snapshot)}
        case SetSnapshotRef(name, ref):
            return {**action, "ref-name": name, **ref_json(ref)}
        case SetStatistics(file):
            return {**action, "snapshot-id": file["snapshot-id"], "statistics": dict(file)}
        case SetPartitionStatistics(file):
            return {**action, "partition-statistics": dict(file)}
        case _:
            found: dict[str, Any] = msgspec.to_builtins(update)
            return found


# ------------------------------------------------------------------ requirements
# Source: Iceberg REST catalog specification, ``TableRequirement``; Java ``UpdateRequirements``.


class Requirement(Frozen, tag_field="type", tag=kebab_case, rename="kebab"):
    """Its JSON in a request has the name of the class as type, and the fields."""


class AssertCreate(Requirement):
    """There is no such table."""


class AssertTableUuid(Requirement):
    """The table has this uuid: it is not another one of its name."""

    uuid: str


class AssertRefSnapshotId(Requirement, rename={"name": "ref", "snapshot_id": "snapshot-id"}):
    """A ref points at this snapshot; None: there is no such ref."""

    name: str
    snapshot_id: int | None


class AssertLastAssignedFieldId(Requirement, rename={"field_id": "last-assigned-field-id"}):
    """No column was added meanwhile."""

    field_id: int


class AssertCurrentSchemaId(Requirement, rename={"schema_id": "current-schema-id"}):
    """The current schema is this one."""

    schema_id: int


class AssertLastAssignedPartitionId(Requirement, rename={"field_id": "last-assigned-partition-id"}):
    """No partition field was added meanwhile."""

    field_id: int


class AssertDefaultSpecId(Requirement, rename={"spec_id": "default-spec-id"}):
    """The default partition spec is this one."""

    spec_id: int


class AssertDefaultSortOrderId(Requirement, rename={"order_id": "default-sort-order-id"}):
    """The default sort order is this one."""

    order_id: int


def requirements_for(
    base: TableMetadata | None, updates: Sequence[Update]
) -> tuple[Requirement, ...]:
    """The requirements of ``updates`` that were made from ``base``; None creates the table.

    Beyond Java, removing snapshots asserts every ref, so that none that was set meanwhile loses its
    snapshot; removing schemas and specs asserts main, too, adding a snapshot asserts the schema
    that its files were compared with, and names of columns and of partition fields are compared.
    """
    if base is None:
        return (AssertCreate(),)
    found: dict[Requirement, None] = {}
    if base.table_uuid is not None:
        found[AssertTableUuid(base.table_uuid)] = None
    for update in updates:
        found.update(dict.fromkeys(_needed(base, update)))
    return tuple(found)


def _needed(base: TableMetadata, update: Update) -> Iterator[Requirement]:
    match update:
        case SetSnapshotRef(name):
            yield _ref(base, name)
        case AddSnapshot() | SetCurrentSchema():
            # An empty table that is replaced by another keeps its uuid and has no ref to compare.
            yield AssertCurrentSchemaId(base.current_schema_id)
        case AddSchema():
            yield AssertLastAssignedFieldId(base.last_column_id)
            yield AssertLastAssignedPartitionId(base.last_partition_id)
        case AddPartitionSpec():
            yield AssertLastAssignedPartitionId(base.last_partition_id)
            yield AssertCurrentSchemaId(base.current_schema_id)
        case SetDefaultSpec():
            yield AssertDefaultSpecId(base.default_spec_id)
        case SetDefaultSortOrder():
            yield AssertDefaultSortOrderId(base.default_sort_order_id)
        case RemovePartitionSpecs():
            yield AssertDefaultSpecId(base.default_spec_id)
            yield from _branches(base)
        case RemoveSchemas():
            yield AssertCurrentSchemaId(base.current_schema_id)
            yield from _branches(base)
        case RemoveSnapshots():
            yield from (_ref(base, name) for name in base.refs)


def _ref(base: TableMetadata, name: str) -> AssertRefSnapshotId:
    ref = base.refs.get(name)
    return AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)


def _branches(base: TableMetadata) -> Iterator[Requirement]:
    """No writer committed by an old schema or spec meanwhile; beyond Java, also to main."""
    for name in {MAIN: None, **base.refs}:
        ref = base.refs.get(name)
        if ref is None or ref.kind == "branch":
            yield _ref(base, name)


def requirement_json(requirement: Requirement) -> dict[str, Any]:
    """A requirement as a REST catalog takes it.

    >>> requirement_json(AssertRefSnapshotId("main", None))
    {'type': 'assert-ref-snapshot-id', 'ref': 'main', 'snapshot-id': None}
    """
    found: dict[str, Any] = msgspec.to_builtins(requirement)
    return found
