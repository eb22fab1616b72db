"""Manifests and manifest lists written by fastavro, for the tests of their readers."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import fastavro

from tests.writer.manifests import SCHEMAS

# The fields of a data file that are maps from the ids of columns.
IDS = [each["name"] for each in SCHEMAS["data_file"] if "map" in str(each["type"])]
Node = dict[str, Any]


def field(name: str, field_id: int | None, type_: Any, **more: Any) -> Node:
    ids = {} if field_id is None else {"field-id": field_id}
    return {"name": name, "type": type_, **ids, **more}


def optional(name: str, field_id: int | None, type_: Any, *, null_first: bool = True) -> Node:
    if null_first:
        return field(name, field_id, ["null", type_], default=None)
    return field(name, field_id, [type_, "null"])


def partition_field(name: str, field_id: int, type_: Any) -> Node:
    return optional(name, field_id, type_)


def _fields(name: str, null_first: bool) -> list[Node]:
    """The fields of a schema; "null" comes last in unions unless ``null_first``."""
    fields: list[Node] = copy.deepcopy(SCHEMAS[name])
    for each in fields:
        if "default" in each and not null_first:
            del each["default"]
            each["type"].reverse()
    return fields


def data_file_fields(*partition: Node, null_first: bool = True) -> list[Node]:
    fields = _fields("data_file", null_first)
    (record,) = (each["type"] for each in fields if each["name"] == "partition")
    record["fields"] = list(partition)
    return fields


def entry_schema(fields: list[Node], *, null_first: bool = True) -> Node:
    own = _fields("entry", null_first)
    own[-1]["type"]["fields"] = fields
    return {"type": "record", "name": "manifest_entry", "fields": own}


def pairs(values: dict[int, Any] | None) -> list[Node] | None:
    return None if values is None else [{"key": k, "value": v} for k, v in values.items()]


def entry(path: str = "s3://b/f.parquet", status: int = 1, **changes: Any) -> Node:
    """An entry; ``changes`` go to the data file, or to the entry for its own fields."""
    row = {"status": status, **SCHEMAS["written"]["entry"]}
    file = {"file_path": path, **copy.deepcopy(SCHEMAS["written"]["data_file"])}
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


LIST_FIELDS: list[Node] = SCHEMAS["manifest_list"]


def list_row(**changes: Any) -> Node:
    return {**SCHEMAS["written"]["manifest_list"], **changes}


def write_manifest_list(
    rows: list[Node], fields: list[Node] | None = None, **options: Any
) -> bytes:
    schema = {"type": "record", "name": "manifest_file", "fields": fields or LIST_FIELDS}
    return write_avro(schema, rows, **options)
