"""Tables of metadata without data files: the input of planning, one manifest at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from icesql.catalog.open import open_table
from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
from icesql.scan.plan import ScanPlan, TableScan
from icesql.scan.planner import plan
from tests.writer.manifests import write_manifest, write_manifest_list

SEQUENCE_NUMBER = 1000
EXISTING, ADDED, DELETED = 0, 1, 2
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2


def column(
    field_id: int, name: str, kind: Any = "long", *, required: bool = False
) -> dict[str, Any]:
    return {"id": field_id, "name": name, "type": kind, "required": required}


def data_file(path: str, partition: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    """A manifest entry; ``others`` are fields of the data_file record, maps as dicts.

    ``status``, ``sequence_number`` and ``snapshot_id`` are the entry's own.
    """
    entry = {
        "status": others.pop("status", ADDED),
        "snapshot_id": others.pop("snapshot_id", None),
        "sequence_number": others.pop("sequence_number", None),
        "file_sequence_number": None,
    }
    record: dict[str, Any] = {
        "content": DATA,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": partition or {},
        "record_count": 10,
        "file_size_in_bytes": 1000,
        "block_size_in_bytes": 0,
    }
    for name, value in others.items():
        if isinstance(value, dict):
            value = [{"key": key, "value": each} for key, each in value.items()]
        record[name] = value
    return {**entry, "data_file": record}


def equality_deletes(path: str, ids: list[int], **others: Any) -> dict[str, Any]:
    return data_file(path, content=EQUALITY_DELETES, equality_ids=ids, **others)


def position_deletes(path: str, **others: Any) -> dict[str, Any]:
    return data_file(path, content=POSITION_DELETES, **others)


def id_bounds(low: int, high: int, field_id: int = 1) -> dict[str, Any]:
    return {
        "lower_bounds": {field_id: low.to_bytes(8, "little", signed=True)},
        "upper_bounds": {field_id: high.to_bytes(8, "little", signed=True)},
        "null_value_counts": {field_id: 0},
        "value_counts": {field_id: 10},
    }


class MetadataOnly:
    """One snapshot, grown manifest by manifest; ``table()`` writes and opens it."""

    def __init__(self, folder: Path, **table: Any) -> None:
        self.folder = folder
        self.fields = table.get("fields", [column(1, "id"), column(2, "region", "string")])
        self.specs = table.get("specs", {0: []})
        self.version = table.get("version", 2)
        self.properties = table.get("properties", {})
        self.partition_types = {"identity": "string", "void": "string", "bucket[4]": "int"}
        self.manifests: list[dict[str, Any]] = []
        (folder / "metadata").mkdir(parents=True)

    def manifest(
        self,
        *entries: dict[str, Any],
        spec_id: int = 0,
        sequence_number: int = 1,
        partitions: list[dict[str, Any]] | None = None,
        **listed: Any,
    ) -> str:
        """Write a manifest of these entries; ``listed`` overrides its entry in the list."""
        content = 0 if entries[0]["data_file"]["content"] == 0 else 1
        number = len(self.manifests)
        path = (
            self.folder / "metadata" / f"{number:08d}-0000-4000-8000-{number:012d}-m{number}.avro"
        )
        spec = {"spec-id": spec_id, "fields": self.specs[spec_id]}
        write_manifest(
            str(path),
            self.version,
            [
                {**entry, "snapshot_id": entry["snapshot_id"] or (7 if self.version == 1 else None)}
                for entry in entries
            ],
            schema=self._schema(),
            spec=spec,
            partition_fields=[
                {
                    "id": field["field-id"],
                    "name": field["name"],
                    "type": self.partition_types[field["transform"]],
                    "required": False,
                }
                for field in spec["fields"]
            ],
            content=content,
        )
        described: dict[str, Any] = {
            "manifest_path": str(path),
            "manifest_length": path.stat().st_size,
            "partition_spec_id": spec_id,
            "content": content,
            "sequence_number": sequence_number,
            "min_sequence_number": sequence_number,
            "added_snapshot_id": 7,
            "partitions": partitions,
        }
        for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
            of_status = [entry["data_file"] for entry in entries if entry["status"] == status]
            described[f"{name}_files_count"] = len(of_status)
            described[f"{name}_rows_count"] = sum(each["record_count"] for each in of_status)
        self.manifests.append({**described, **listed})
        return str(path)

    def table(self, **metadata: Any) -> Table:
        manifest_list = (
            self.folder / "metadata" / "snap-7-1-00000000-0000-4000-8000-000000000007.avro"
        )
        write_manifest_list(
            str(manifest_list),
            self.version,
            self.manifests,
            snapshot_id=7,
            sequence_number=SEQUENCE_NUMBER,
        )
        snapshot = {
            "snapshot-id": 7,
            "sequence-number": SEQUENCE_NUMBER,
            "timestamp-ms": 1_700_000_000_000,
            "manifest-list": str(manifest_list),
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        body: dict[str, Any] = {
            "format-version": self.version,
            "table-uuid": "00000000-0000-4000-8000-000000000001",
            "location": str(self.folder),
            "last-sequence-number": SEQUENCE_NUMBER,
            "last-updated-ms": 1_700_000_000_000,
            "last-column-id": 100,
            "current-schema-id": 0,
            "schemas": [self._schema()],
            "default-spec-id": max(self.specs),
            "partition-specs": [
                {"spec-id": spec_id, "fields": fields} for spec_id, fields in self.specs.items()
            ],
            "last-partition-id": 1010,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": self.properties,
            "current-snapshot-id": 7,
            "snapshots": [snapshot],
            "snapshot-log": [],
        }
        target = self.folder / "metadata" / "v1.metadata.json"
        target.write_text(json.dumps({**body, **metadata}), encoding="utf-8")
        return open_table(target, name="t")

    def _schema(self) -> dict[str, Any]:
        return {"type": "struct", "schema-id": 0, "fields": self.fields}


def scan_of(table: Table, row_filter: Predicate = ALWAYS_TRUE, **others: Any) -> TableScan:
    metadata = table.metadata
    others.setdefault("schema", metadata.schema)
    others.setdefault("projection", others["schema"])
    return TableScan(table, metadata.current_snapshot, row_filter=row_filter, **others)


def planned(
    table: Table,
    row_filter: Predicate = ALWAYS_TRUE,
    query: QueryContext | None = None,
    **others: Any,
) -> ScanPlan:
    return plan(scan_of(table, row_filter, **others), query or QueryContext())


def paths(of: ScanPlan) -> list[str]:
    return [task.data_file.path for task in of.files]


def region_is(value: str) -> Predicate:
    return Leaf(Operation.EQ, Term(2, "region"), value)


def id_is(value: int) -> Predicate:
    return Leaf(Operation.EQ, Term(1, "id"), value)
