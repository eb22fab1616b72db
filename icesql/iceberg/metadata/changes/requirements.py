"""Requirements: conditions of a table under which the updates of a change apply to it.

Source: Iceberg REST catalog specification, ``TableRequirement``; Java ``UpdateRequirements``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from icesql.frozen import Frozen
from icesql.iceberg.metadata.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshots,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
    kebab_case,
)
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata


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
