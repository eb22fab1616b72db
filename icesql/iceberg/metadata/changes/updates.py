"""Updates: the single changes of table metadata, as REST catalogs take them.

Source: Iceberg REST catalog specification, ``TableUpdate``; Java ``MetadataUpdate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from icesql.iceberg.metadata.json_writer import (
    ref_json,
    schema_json,
    snapshot_json,
    sort_order_json,
    spec_json,
)
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.sort_order import SortOrder
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema

# A placeholder for the id of the schema, spec or order that an earlier update just added.
LAST_ADDED: Final = -1


class AssignUuid(Struct, frozen=True):
    """Give the table its uuid, once."""

    uuid: str


class UpgradeFormatVersion(Struct, frozen=True):
    """Raise the format version; nothing else is rewritten."""

    format_version: int


class AddSchema(Struct, frozen=True):
    """Add a schema; one that is there already, under any id, is used again."""

    schema: Schema


class SetCurrentSchema(Struct, frozen=True):
    """Make a schema the current one."""

    schema_id: int = LAST_ADDED


class AddPartitionSpec(Struct, frozen=True):
    """Add a partition spec; one that is there already is used again."""

    spec: PartitionSpec


class SetDefaultSpec(Struct, frozen=True):
    """Make a partition spec the one that writers use."""

    spec_id: int = LAST_ADDED


class AddSortOrder(Struct, frozen=True):
    """Add a sort order; one that is there already is used again."""

    order: SortOrder


class SetDefaultSortOrder(Struct, frozen=True):
    """Make a sort order the one that writers use."""

    order_id: int = LAST_ADDED


class SetLocation(Struct, frozen=True):
    """Where new files of the table go."""

    location: str


class SetProperties(Struct, frozen=True):
    """Set properties, keeping the others."""

    properties: Mapping[str, str]


class RemoveProperties(Struct, frozen=True):
    """Remove properties; those that are not there do not matter."""

    names: tuple[str, ...]


class AddSnapshot(Struct, frozen=True):
    """Add a snapshot, which no ref points at yet."""

    snapshot: Snapshot


class SetSnapshotRef(Struct, frozen=True):
    """Point a branch or tag at a snapshot, making it where it is not there."""

    name: str
    ref: SnapshotRef


class RemoveSnapshotRef(Struct, frozen=True):
    """Remove a branch or tag."""

    name: str


class RemoveSnapshots(Struct, frozen=True):
    """Remove snapshots, with the refs that point at them and their statistics."""

    snapshot_ids: tuple[int, ...]


class SetStatistics(Struct, frozen=True):
    """Set the statistics file of a snapshot; ``file`` is its JSON in table metadata."""

    file: Mapping[str, Any]


class RemoveStatistics(Struct, frozen=True):
    """Remove the statistics file of a snapshot."""

    snapshot_id: int


class SetPartitionStatistics(Struct, frozen=True):
    """Set the partition statistics file of a snapshot; ``file`` is its JSON in table metadata."""

    file: Mapping[str, Any]


class RemovePartitionStatistics(Struct, frozen=True):
    """Remove the partition statistics file of a snapshot."""

    snapshot_id: int


class RemovePartitionSpecs(Struct, frozen=True):
    """Remove partition specs that no file uses; never the default one."""

    spec_ids: tuple[int, ...]


class RemoveSchemas(Struct, frozen=True):
    """Remove schemas that no snapshot uses; never the current one."""

    schema_ids: tuple[int, ...]


Update = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshotRef
    | RemoveSnapshots
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
)


def update_json(update: Update) -> dict[str, Any]:
    """An update as a REST catalog takes it.

    >>> update_json(SetCurrentSchema(2))
    {'action': 'set-current-schema', 'schema-id': 2}
    """
    match update:
        case AssignUuid(uuid):
            return {"action": "assign-uuid", "uuid": uuid}
        case UpgradeFormatVersion(version):
            return {"action": "upgrade-format-version", "format-version": version}
        case AddSchema(schema):
            highest = max(schema.field_by_id, default=0)
            return {
                "action": "add-schema",
                "schema": schema_json(schema),
                "last-column-id": highest,
            }
        case SetCurrentSchema(schema_id):
            return {"action": "set-current-schema", "schema-id": schema_id}
        case AddPartitionSpec(spec):
            return {"action": "add-spec", "spec": spec_json(spec)}
        case SetDefaultSpec(spec_id):
            return {"action": "set-default-spec", "spec-id": spec_id}
        case AddSortOrder(order):
            return {"action": "add-sort-order", "sort-order": sort_order_json(order)}
        case SetDefaultSortOrder(order_id):
            return {"action": "set-default-sort-order", "sort-order-id": order_id}
        case SetLocation(location):
            return {"action": "set-location", "location": location}
        case SetProperties(properties):
            return {"action": "set-properties", "updates": dict(properties)}
        case RemoveProperties(names):
            return {"action": "remove-properties", "removals": [*names]}
        case _:
            return _of_snapshots(update)


def _of_snapshots(update: Update) -> dict[str, Any]:
    match update:
        case AddSnapshot(snapshot):
            return {"action": "add-snapshot", "snapshot": snapshot_json(snapshot)}
        case SetSnapshotRef(name, ref):
            return {"action": "set-snapshot-ref", "ref-name": name, **ref_json(ref)}
        case RemoveSnapshotRef(name):
            return {"action": "remove-snapshot-ref", "ref-name": name}
        case RemoveSnapshots(snapshot_ids):
            return {"action": "remove-snapshots", "snapshot-ids": [*snapshot_ids]}
        case SetStatistics(file):
            snapshot_id = file["snapshot-id"]
            return {
                "action": "set-statistics",
                "snapshot-id": snapshot_id,
                "statistics": dict(file),
            }
        case RemoveStatistics(snapshot_id):
            return {"action": "remove-statistics", "snapshot-id": snapshot_id}
        case SetPartitionStatistics(file):
            return {"action": "set-partition-statistics", "partition-statistics": dict(file)}
        case RemovePartitionStatistics(snapshot_id):
            return {"action": "remove-partition-statistics", "snapshot-id": snapshot_id}
        case RemovePartitionSpecs(spec_ids):
            return {"action": "remove-partition-specs", "spec-ids": [*spec_ids]}
        case RemoveSchemas(schema_ids):
            return {"action": "remove-schemas", "schema-ids": [*schema_ids]}
        case _:
            raise TypeError(f"{update!r} is no update of table metadata")
