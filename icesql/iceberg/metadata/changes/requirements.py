"""Requirements: conditions of a table under which the updates of a change apply to it.

Source: Iceberg REST catalog specification, ``TableRequirement``; Java ``UpdateRequirements``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata


class AssertCreate(Struct, frozen=True):
    """There is no such table."""


class AssertTableUuid(Struct, frozen=True):
    """The table has this uuid: it is not another one of its name."""

    uuid: str


class AssertRefSnapshotId(Struct, frozen=True):
    """A ref points at this snapshot; None: there is no such ref."""

    name: str
    snapshot_id: int | None


class AssertLastAssignedFieldId(Struct, frozen=True):
    """No column was added meanwhile."""

    field_id: int


class AssertCurrentSchemaId(Struct, frozen=True):
    """The current schema is this one."""

    schema_id: int


class AssertLastAssignedPartitionId(Struct, frozen=True):
    """No partition field was added meanwhile."""

    field_id: int


class AssertDefaultSpecId(Struct, frozen=True):
    """The default partition spec is this one."""

    spec_id: int


class AssertDefaultSortOrderId(Struct, frozen=True):
    """The default sort order is this one."""

    order_id: int


Requirement = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def requirements_for(
    base: TableMetadata | None, updates: Sequence[u.Update], *, replaces: bool = False
) -> tuple[Requirement, ...]:
    """The requirements of ``updates`` that were made from ``base``; None creates the table.

    With ``replaces``, REPLACE TABLE, only the uuid and the last ids have to be the same. Beyond
    Java, removing snapshots asserts every ref, so that none that was set meanwhile loses its
    snapshot; removing schemas and specs asserts main, too, adding a snapshot asserts the schema
    that its files were compared with, and names of columns and of partition fields are compared.
    """
    if base is None:
        return (AssertCreate(),)
    found: dict[Requirement, None] = {}
    if base.table_uuid is not None:
        found[AssertTableUuid(base.table_uuid)] = None
    refs_of_change: set[str] = set()
    for update in updates:
        for each in _needed(base, update, refs_of_change, replaces):
            found[each] = None
    return tuple(found)


def _needed(
    base: TableMetadata, update: u.Update, refs_of_change: set[str], replaces: bool
) -> Iterator[Requirement]:
    match update:
        case u.SetSnapshotRef(name) if name not in refs_of_change and not replaces:
            refs_of_change.add(name)
            yield _ref(base, name)
        case u.AddSnapshot() if not replaces:
            # An empty table that is replaced by another keeps its uuid and has no ref to compare.
            yield AssertCurrentSchemaId(base.current_schema_id)
        case u.AddSchema():
            yield AssertLastAssignedFieldId(base.last_column_id)
            yield AssertLastAssignedPartitionId(base.last_partition_id)
        case u.AddPartitionSpec():
            yield AssertLastAssignedPartitionId(base.last_partition_id)
            yield from () if replaces else (AssertCurrentSchemaId(base.current_schema_id),)
        case u.SetCurrentSchema() if not replaces:
            yield AssertCurrentSchemaId(base.current_schema_id)
        case u.SetDefaultSpec() if not replaces:
            yield AssertDefaultSpecId(base.default_spec_id)
        case u.SetDefaultSortOrder() if not replaces:
            yield AssertDefaultSortOrderId(base.default_sort_order_id)
        case u.RemovePartitionSpecs():
            yield AssertDefaultSpecId(base.default_spec_id)
            yield from _branches(base)
        case u.RemoveSchemas():
            yield AssertCurrentSchemaId(base.current_schema_id)
            yield from _branches(base)
        case u.RemoveSnapshots():
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
    match requirement:
        case AssertCreate():
            return {"type": "assert-create"}
        case AssertTableUuid(uuid):
            return {"type": "assert-table-uuid", "uuid": uuid}
        case AssertRefSnapshotId(name, snapshot_id):
            return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}
        case AssertLastAssignedFieldId(field_id):
            return {
                "type": "assert-last-assigned-field-id",
                "last-assigned-field-id": field_id,
            }
        case AssertCurrentSchemaId(schema_id):
            return {"type": "assert-current-schema-id", "current-schema-id": schema_id}
        case AssertLastAssignedPartitionId(field_id):
            return {
                "type": "assert-last-assigned-partition-id",
                "last-assigned-partition-id": field_id,
            }
        case AssertDefaultSpecId(spec_id):
            return {"type": "assert-default-spec-id", "default-spec-id": spec_id}
        case AssertDefaultSortOrderId(order_id):
            return {"type": "assert-default-sort-order-id", "default-sort-order-id": order_id}


def unmet(requirement: Requirement, table: TableMetadata | None) -> str | None:
    """The reason why a requirement does not hold of a table, None if it holds."""
    if isinstance(requirement, AssertCreate):
        return None if table is None else "the table was created meanwhile"
    if table is None:
        return "the table is gone"
    match requirement:
        case AssertTableUuid(uuid):
            same = table.table_uuid is None or table.table_uuid.lower() == uuid.lower()
            return None if same else "the table was replaced by another one of its name"
        case AssertRefSnapshotId(name):
            return None if _ref(table, name) == requirement else f"ref {name!r} was changed"
        case AssertLastAssignedFieldId(field_id):
            return None if table.last_column_id == field_id else "a column was added"
        case AssertCurrentSchemaId(schema_id):
            return None if table.current_schema_id == schema_id else "the schema was changed"
        case AssertLastAssignedPartitionId(field_id):
            return None if table.last_partition_id == field_id else "a partition field was added"
        case AssertDefaultSpecId(spec_id):
            return None if table.default_spec_id == spec_id else "the partitioning was changed"
        case AssertDefaultSortOrderId(order_id):
            same = table.default_sort_order_id == order_id
            return None if same else "the sort order was changed"
