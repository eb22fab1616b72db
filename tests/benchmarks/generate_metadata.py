"""Write the metadata of a large table whose data files do not exist, as Java would write it."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
from fastavro.write import Writer

FILES_PER_DAY = 100
ENTRIES_PER_MANIFEST = 100
ENTRIES_PER_BLOCK = 48
ROWS_PER_FILE = 10_000
FIRST_DAY = 19_000  # days since 1970
MICROS_PER_DAY = 86_400_000_000
SNAPSHOT_ID = 6_000_000_000_000_000_001

COLUMNS = [
    (1, "id", "long"),
    (2, "ts", "timestamp"),
    *((3 + number, f"number{number}", "long") for number in range(6)),
    *((9 + number, f"measure{number}", "double") for number in range(6)),
    *((15 + number, f"name{number}", "string") for number in range(6)),
]


def _field(name: str, kind: Any, field_id: int, *, optional: bool = False) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": kind, "field-id": field_id}
    if optional:
        field |= {"type": ["null", kind], "default": None}
    return field


def _map(name: str, key_id: int, value_id: int, value: str) -> dict[str, Any]:
    return {
        "type": "array",
        "logicalType": "map",
        "items": {
            "type": "record",
            "name": f"k{key_id}_v{value_id}",
            "fields": [_field("key", "int", key_id), _field("value", value, value_id)],
        },
    }


DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field(
            "partition",
            {
                "type": "record",
                "name": "r102",
                "fields": [
                    _field("ts_day", {"type": "int", "logicalType": "date"}, 1000, optional=True)
                ],
            },
            102,
        ),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _field("column_sizes", _map("column_sizes", 117, 118, "long"), 108, optional=True),
        _field("value_counts", _map("value_counts", 119, 120, "long"), 109, optional=True),
        _field("null_value_counts", _map("nulls", 121, 122, "long"), 110, optional=True),
        _field("nan_value_counts", _map("nans", 138, 139, "long"), 137, optional=True),
        _field("lower_bounds", _map("lower_bounds", 126, 127, "bytes"), 125, optional=True),
        _field("upper_bounds", _map("upper_bounds", 129, 130, "bytes"), 128, optional=True),
        _field("key_metadata", "bytes", 131, optional=True),
        _field(
            "split_offsets",
            {"type": "array", "items": "long", "element-id": 133},
            132,
            optional=True,
        ),
        _field(
            "equality_ids",
            {"type": "array", "items": "int", "element-id": 136},
            135,
            optional=True,
        ),
        _field("sort_order_id", "int", 140, optional=True),
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field("status", "int", 0),
        _field("snapshot_id", "long", 1, optional=True),
        _field("sequence_number", "long", 3, optional=True),
        _field("file_sequence_number", "long", 4, optional=True),
        _field("data_file", DATA_FILE, 2),
    ],
}
SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field("contains_null", "boolean", 509),
        _field("contains_nan", "boolean", 518, optional=True),
        _field("lower_bound", "bytes", 510, optional=True),
        _field("upper_bound", "bytes", 511, optional=True),
    ],
}
MANIFEST_FILE = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _field("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _field(
            "partitions", {"type": "array", "items": SUMMARY, "element-id": 508}, 507, optional=True
        ),
        _field("key_metadata", "bytes", 519, optional=True),
    ],
}

SCHEMA_JSON: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": field_id, "name": name, "required": False, "type": kind}
        for field_id, name, kind in COLUMNS
    ],
}
SPEC_FIELDS = [{"name": "ts_day", "transform": "day", "source-id": 2, "field-id": 1000}]


def widen(columns: int) -> None:
    """Let tables to come have so many columns, with counts and bounds of each."""
    kinds = ("long", "double", "string")
    for number in range(len(COLUMNS) + 1, columns + 1):
        COLUMNS.append((number, f"more{number}", kinds[number % 3]))
        SCHEMA_JSON["fields"].append(
            {"id": number, "name": COLUMNS[-1][1], "required": False, "type": COLUMNS[-1][2]}
        )


def write_table(folder: Path, files: int) -> Path:
    """The metadata of a table of ``files`` data files; returns its metadata.json."""
    metadata = folder / "metadata"
    metadata.mkdir(parents=True)
    manifests = []
    for first in range(0, files, ENTRIES_PER_MANIFEST):
        numbers = range(first, min(first + ENTRIES_PER_MANIFEST, files))
        path = metadata / f"{uuid.UUID(int=first)}-m0.avro"
        _write_manifest(path, folder, numbers)
        manifests.append(_manifest_file(path, numbers))
    manifest_list = metadata / f"snap-{SNAPSHOT_ID}-1-{uuid.UUID(int=files)}.avro"
    with manifest_list.open("wb") as file:
        schema = fastavro.parse_schema(MANIFEST_FILE)
        fastavro.writer(file, schema, manifests, codec="deflate", metadata={"format-version": "2"})
    target = metadata / "v1.metadata.json"
    target.write_text(json.dumps(_table_json(folder, manifest_list, files)), encoding="utf-8")
    return target


def day_of(number: int) -> int:
    """The partition (days since 1970) of a file."""
    return FIRST_DAY + number // FILES_PER_DAY


def _write_manifest(path: Path, folder: Path, numbers: range) -> None:
    with path.open("wb") as file:
        writer = Writer(
            file,
            fastavro.parse_schema(ENTRY),
            codec="deflate",
            metadata={
                "schema": json.dumps(SCHEMA_JSON),
                "partition-spec": json.dumps(SPEC_FIELDS),
                "partition-spec-id": "0",
                "format-version": "2",
                "content": "data",
            },
        )
        for count, entry in enumerate(_entries(folder, numbers), 1):
            writer.write(entry)
            if count % ENTRIES_PER_BLOCK == 0:
                writer.dump()
        writer.flush()


def _entries(folder: Path, numbers: range) -> Iterator[dict[str, Any]]:
    for number in numbers:
        lower, upper = _bounds(number)
        size = 30_000_000 + number % 977
        yield {
            "status": 1,
            "snapshot_id": None,
            "sequence_number": None,
            "file_sequence_number": None,
            "data_file": {
                "content": 0,
                "file_path": f"{folder}/data/ts_day={day_of(number)}/{number:05d}-"
                f"{uuid.uuid5(uuid.NAMESPACE_URL, str(number))}-00001.parquet",
                "file_format": "PARQUET",
                "partition": {"ts_day": day_of(number)},
                "record_count": ROWS_PER_FILE,
                "file_size_in_bytes": size,
                "column_sizes": _pairs([size // 20 + i * 37 for i in range(len(COLUMNS))]),
                "value_counts": _pairs([ROWS_PER_FILE] * len(COLUMNS)),
                "null_value_counts": _pairs([(number + i) % 3 for i in range(len(COLUMNS))]),
                "nan_value_counts": [{"key": 9 + i, "value": 0} for i in range(6)],
                "lower_bounds": lower,
                "upper_bounds": upper,
                "key_metadata": None,
                "split_offsets": [4],
                "equality_ids": None,
                "sort_order_id": 0,
            },
        }


def _pairs(values: list[int]) -> list[dict[str, int]]:
    ids = [field_id for field_id, _, _ in COLUMNS]
    return [{"key": key, "value": value} for key, value in zip(ids, values, strict=True)]


def _bounds(number: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    start = day_of(number) * MICROS_PER_DAY + number % FILES_PER_DAY * 864_000_000
    lower: dict[int, bytes] = {
        1: struct.pack("<q", number * ROWS_PER_FILE),
        2: struct.pack("<q", start),
    }
    upper: dict[int, bytes] = {
        1: struct.pack("<q", (number + 1) * ROWS_PER_FILE - 1),
        2: struct.pack("<q", start + 863_999_999),
    }
    for field_id, name, kind in COLUMNS[2:]:
        if kind == "long":
            lower[field_id] = struct.pack("<q", number * field_id % 1009)
            upper[field_id] = struct.pack("<q", 1_000_000 + number * field_id % 1013)
        elif kind == "double":
            lower[field_id] = struct.pack("<d", number * 0.25)
            upper[field_id] = struct.pack("<d", number * 0.25 + 1000 + field_id)
        else:
            lower[field_id] = f"{name}-{number % 997:08d}"[:16].encode()
            upper[field_id] = f"{name}z{number % 997:08d}"[:16].encode()
    return tuple(  # type: ignore[return-value]
        [{"key": field_id, "value": bound} for field_id, bound in each.items()]
        for each in (lower, upper)
    )


def _manifest_file(path: Path, numbers: range) -> dict[str, Any]:
    return {
        "manifest_path": str(path),
        "manifest_length": path.stat().st_size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": SNAPSHOT_ID,
        "added_files_count": len(numbers),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": len(numbers) * ROWS_PER_FILE,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": struct.pack("<i", day_of(numbers[0])),
                "upper_bound": struct.pack("<i", day_of(numbers[-1])),
            }
        ],
        "key_metadata": None,
    }


def _table_json(folder: Path, manifest_list: Path, files: int) -> dict[str, Any]:
    now = 1_700_000_000_000
    return {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=files)),
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": now,
        "last-column-id": len(COLUMNS),
        "current-schema-id": 0,
        "schemas": [SCHEMA_JSON],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": SPEC_FIELDS}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": SNAPSHOT_ID,
        "refs": {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": SNAPSHOT_ID,
                "sequence-number": 1,
                "timestamp-ms": now,
                "manifest-list": str(manifest_list),
                "summary": {"operation": "append", "total-data-files": str(files)},
                "schema-id": 0,
            }
        ],
        "snapshot-log": [{"snapshot-id": SNAPSHOT_ID, "timestamp-ms": now}],
        "metadata-log": [],
    }
