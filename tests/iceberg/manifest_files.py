"""Manifests and manifest lists written by fastavro, for the tests of their readers."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

IDS = {
    "column_sizes": (108, 117, 118, "long"),
    "value_counts": (109, 119, 120, "long"),
    "null_value_counts": (110, 121, 122, "long"),
    "nan_value_counts": (137, 138, 139, "long"),
    "lower_bounds": (125, 126, 127, "bytes"),
    "upper_bounds": (128, 129, 130, "bytes"),
}
Node = dict[str, Any]


def field(name: str, field_id: int | None, type_: Any, **more: Any) -> Node:
    ids = {} if field_id is None else {"field-id": field_id}
    return {"name": name, "type": type_, **ids, **more}


def optional(name: str, field_id: int | None, type_: Any, *, null_first: bool = True) -> Node:
    if null_first:
        return field(name, field_id, ["null", type_], default=None)
    return field(name, field_id, [type_, "null"])


def map_type(key_id: int, value_id: int, value: str) -> Node:
    return {
        "type": "array",
        "logicalType": "map",
        "items": {
            "type": "record",
            "name": f"k{key_id}_v{value_id}",
            "fields": [field("key", key_id, "int"), field("value", value_id, value)],
        },
    }


def partition_field(name: str, field_id: int, type_: Any) -> Node:
    return optional(name, field_id, type_)


def data_file_fields(*partition: Node, null_first: bool = True) -> list[Node]:
    def option(name: str, field_id: int, type_: Any) -> Node:
        return optional(name, field_id, type_, null_first=null_first)

    return [
        field("content", 134, "int"),
        field("file_path", 100, "string"),
        field("file_format", 101, "string"),
        field("partition", 102, {"type": "record", "name": "r102", "fields": list(partition)}),
        field("record_count", 103, "long"),
        field("file_size_in_bytes", 104, "long"),
        *(option(name, ids[0], map_type(*ids[1:])) for name, ids in IDS.items()),
        option("key_metadata", 131, "bytes"),
        option("split_offsets", 132, {"type": "array", "items": "long", "element-id": 133}),
        option("equality_ids", 135, {"type": "array", "items": "int", "element-id": 136}),
        option("sort_order_id", 140, "int"),
        option("first_row_id", 142, "long"),
        option("referenced_data_file", 143, "string"),
        option("content_offset", 144, "long"),
        option("content_size_in_bytes", 145, "long"),
    ]


def entry_schema(fields: list[Node], *, null_first: bool = True) -> Node:
    def option(name: str, field_id: int) -> Node:
        return optional(name, field_id, "long", null_first=null_first)

    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            field("status", 0, "int"),
            option("snapshot_id", 1),
            option("sequence_number", 3),
            option("file_sequence_number", 4),
            field("data_file", 2, {"type": "record", "name": "r2", "fields": fields}),
        ],
    }


def pairs(values: dict[int, Any] | None) -> list[Node] | None:
    return None if values is None else [{"key": k, "value": v} for k, v in values.items()]


def entry(path: str = "s3://b/f.parquet", status: int = 1, **changes: Any) -> Node:
    """An entry; ``changes`` go to the data file, or to the entry for its own fields."""
    row: Node = {"status": status, "snapshot_id": None, "sequence_number": None}
    row["file_sequence_number"] = None
    file: Node = {
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 1000,
    }
    file.update(dict.fromkeys(IDS))
    for name in ("key_metadata", "split_offsets", "equality_ids", "sort_order_id", "first_row_id"):
        file[name] = None
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        file[name] = None
    for name, value in changes.items():
        if name in row:
            row[name] = value
        else:
            file[name] = pairs(value) if name in IDS else value
    return {**row, "data_file": file}


def write_avro(
    schema: Node,
    rows: list[Node],
    *,
    codec: str = "null",
    block_bytes: int = 16_000,
    metadata: dict[str, str] | None = None,
) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(
        sink,
        fastavro.parse_schema(schema),
        rows,
        codec=codec,
        sync_interval=block_bytes,
        metadata=metadata,
    )
    return sink.getvalue()


def write_manifest(rows: list[Node], *partition: Node, **options: Any) -> bytes:
    return write_avro(entry_schema(data_file_fields(*partition)), rows, **options)


def write_contradicting(written: Node, declared: Node, rows: list[Node]) -> bytes:
    """Rows encoded by one schema in a file that declares another."""

    def number(value: int) -> bytes:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, {"type": "long"}, value)
        return sink.getvalue()

    block = io.BytesIO()
    for row in rows:
        fastavro.schemaless_writer(block, written, row)
    header = io.BytesIO()
    meta = {"avro.schema": json.dumps(declared).encode(), "avro.codec": b"null"}
    fastavro.schemaless_writer(header, {"type": "map", "values": "bytes"}, meta)
    sync, data = b"sixteen byte end", block.getvalue()
    return b"".join(
        [b"Obj\x01", header.getvalue(), sync, number(len(rows)), number(len(data)), data, sync]
    )


SUMMARY: Node = {
    "type": "record",
    "name": "r508",
    "fields": [
        field("contains_null", 509, "boolean"),
        optional("contains_nan", 518, "boolean"),
        optional("lower_bound", 510, "bytes"),
        optional("upper_bound", 511, "bytes"),
    ],
}
LIST_FIELDS: list[Node] = [
    field("manifest_path", 500, "string"),
    field("manifest_length", 501, "long"),
    field("partition_spec_id", 502, "int"),
    field("content", 517, "int"),
    field("sequence_number", 515, "long"),
    field("min_sequence_number", 516, "long"),
    field("added_snapshot_id", 503, "long"),
    field("added_files_count", 504, "int"),
    field("existing_files_count", 505, "int"),
    field("deleted_files_count", 506, "int"),
    field("added_rows_count", 512, "long"),
    field("existing_rows_count", 513, "long"),
    field("deleted_rows_count", 514, "long"),
    optional("partitions", 507, {"type": "array", "items": SUMMARY, "element-id": 508}),
    optional("key_metadata", 519, "bytes"),
    optional("first_row_id", 520, "long"),
]


def list_row(**changes: Any) -> Node:
    row = {
        "manifest_path": "s3://b/m1.avro",
        "manifest_length": 100,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 3,
        "min_sequence_number": 1,
        "added_snapshot_id": 77,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 3,
        "added_rows_count": 10,
        "existing_rows_count": 20,
        "deleted_rows_count": 30,
        "partitions": None,
        "key_metadata": None,
        "first_row_id": None,
    }
    return {**row, **changes}


def write_manifest_list(
    rows: list[Node], fields: list[Node] | None = None, **options: Any
) -> bytes:
    schema = {"type": "record", "name": "manifest_file", "fields": fields or LIST_FIELDS}
    return write_avro(schema, rows, **options)
