"""Avro schemas and records of manifest lists and manifests."""

from __future__ import annotations

import json

import fastavro

from tests.writer.types import avro_record


def _field(name, field_id, type_, *, optional=False):
    if optional:
        return {"name": name, "type": ["null", type_], "default": None, "field-id": field_id}
    return {"name": name, "type": type_, "field-id": field_id}


def _map(name, field_id, key_id, value_id, value):
    record = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_field("key", key_id, "int"), _field("value", value_id, value)],
    }
    return _field(
        name, field_id, {"type": "array", "items": record, "logicalType": "map"}, optional=True
    )


def _array(name, field_id, element_id, items):
    array = {"type": "array", "items": items, "element-id": element_id}
    return _field(name, field_id, array, optional=True)


def entry_schema(version, partition_fields):
    """The Avro schema of manifest entries; ``partition_fields`` are JSON fields."""
    data_file = [
        *([] if version == 1 else [_field("content", 134, "int")]),
        _field("file_path", 100, "string"),
        _field("file_format", 101, "string"),
        _field("partition", 102, avro_record(partition_fields, "r102")),
        _field("record_count", 103, "long"),
        _field("file_size_in_bytes", 104, "long"),
        *([_field("block_size_in_bytes", 105, "long")] if version == 1 else []),
        _map("column_sizes", 108, 117, 118, "long"),
        _map("value_counts", 109, 119, 120, "long"),
        _map("null_value_counts", 110, 121, 122, "long"),
        _map("nan_value_counts", 137, 138, 139, "long"),
        _map("lower_bounds", 125, 126, 127, "bytes"),
        _map("upper_bounds", 128, 129, 130, "bytes"),
        _field("key_metadata", 131, "bytes", optional=True),
        _array("split_offsets", 132, 133, "long"),
        *([] if version == 1 else [_array("equality_ids", 135, 136, "int")]),
        _field("sort_order_id", 140, "int", optional=True),
    ]
    if version >= 2:
        data_file.append(_field("referenced_data_file", 143, "string", optional=True))
    if version >= 3:
        data_file += [
            _field("first_row_id", 142, "long", optional=True),
            _field("content_offset", 144, "long", optional=True),
            _field("content_size_in_bytes", 145, "long", optional=True),
        ]
    entry = [
        _field("status", 0, "int"),
        _field("snapshot_id", 1, "long", optional=version > 1),
        *(
            []
            if version == 1
            else [
                _field("sequence_number", 3, "long", optional=True),
                _field("file_sequence_number", 4, "long", optional=True),
            ]
        ),
        _field("data_file", 2, {"type": "record", "name": "r2", "fields": data_file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


def list_schema(version):
    """The Avro schema of a manifest list."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _field("contains_null", 509, "boolean"),
            _field("contains_nan", 518, "boolean", optional=True),
            _field("lower_bound", 510, "bytes", optional=True),
            _field("upper_bound", 511, "bytes", optional=True),
        ],
    }
    counts = [
        ("added_files_count", 504, "int"),
        ("existing_files_count", 505, "int"),
        ("deleted_files_count", 506, "int"),
        ("added_rows_count", 512, "long"),
        ("existing_rows_count", 513, "long"),
        ("deleted_rows_count", 514, "long"),
    ]
    fields = [
        _field("manifest_path", 500, "string"),
        _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"),
        *(
            []
            if version == 1
            else [
                _field("content", 517, "int"),
                _field("sequence_number", 515, "long"),
                _field("min_sequence_number", 516, "long"),
            ]
        ),
        _field("added_snapshot_id", 503, "long"),
        *(_field(name, field_id, kind, optional=version == 1) for name, field_id, kind in counts),
        _array("partitions", 507, 508, summary),
        *([_field("first_row_id", 520, "long", optional=True)] if version >= 3 else []),
    ]
    return {"type": "record", "name": "manifest_file", "fields": fields}


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
