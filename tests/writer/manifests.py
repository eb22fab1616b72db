"""Avro schemas and records of manifest lists and manifests."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import fastavro

from tests.writer.types import avro_record

# Fields of the schemas in the order of the specification, and what a row has of its own accord.
SCHEMAS = json.loads(Path(__file__).with_name("manifest_schemas.json").read_text())
# The first version of the format that has a field.
SINCE = {
    "content": 2, "sequence_number": 2, "min_sequence_number": 2, "file_sequence_number": 2,
    "equality_ids": 2, "referenced_data_file": 2, "first_row_id": 3, "content_offset": 3,
    "content_size_in_bytes": 3,
}  # fmt: skip


def _fields(schema, version):
    """The fields by name."""
    return {
        each["name"]: copy.deepcopy(each)
        for each in SCHEMAS[schema]
        if SINCE.get(each["name"], 1) <= version
    }


def entry_schema(version, partition_fields):
    """The Avro schema of manifest entries; ``partition_fields`` are JSON fields."""
    entry, data_file = _fields("entry", version), _fields("data_file", version)
    data_file["partition"]["type"] = avro_record(partition_fields, "r102")
    if version == 1:
        block_size = {"name": "block_size_in_bytes", "type": "long", "field-id": 105}
        data_file["block_size_in_bytes"] = block_size
        entry["snapshot_id"] = {"name": "snapshot_id", "type": "long", "field-id": 1}
    entry["data_file"]["type"]["fields"] = list(data_file.values())
    return {"type": "record", "name": "manifest_entry", "fields": list(entry.values())}


def list_schema(version):
    """The Avro schema of a manifest list."""
    fields = _fields("manifest_list", version)
    del fields["key_metadata"]
    for name, field in fields.items():
        if version == 1 and name.endswith("_count"):
            field.update(type=["null", field["type"]], default=None)
    return {"type": "record", "name": "manifest_file", "fields": list(fields.values())}


def write_manifest(path, version, entries, *, schema, spec, partition_fields, content):
    """Write manifest entries (records by field name). ``schema`` and ``spec`` are JSON."""
    with open(path, "wb") as out:
        fastavro.writer(
            out,
            entry_schema(version, partition_fields),
            entries,
            codec="deflate",
            metadata={
                "schema": json.dumps(schema),
                "schema-id": str(schema["schema-id"]),
                "partition-spec": json.dumps(spec["fields"]),
                "partition-spec-id": str(spec["spec-id"]),
                "format-version": str(version),
                "content": "data" if content == 0 else "deletes",
            },
        )


def write_manifest_list(path, version, manifests, *, snapshot_id, sequence_number):
    """Write manifest files (records by field name)."""
    with open(path, "wb") as out:
        fastavro.writer(
            out,
            list_schema(version),
            manifests,
            codec="deflate",
            metadata={
                "snapshot-id": str(snapshot_id),
                "sequence-number": str(sequence_number),
                "format-version": str(version),
            },
        )
