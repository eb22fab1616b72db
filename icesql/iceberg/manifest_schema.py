"""Where the fields of a manifest lie in its writer schema: found by field id, never by name.

Writers renamed fields over time; their ids stayed. Only a schema without any ids is read by
names. Source: Iceberg spec, "Manifests".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icesql.iceberg.avro_schema import AvroField, AvroNode, OddSchema

STATUS: Final = 0
SNAPSHOT_ID: Final = 1
DATA_FILE: Final = 2
SEQUENCE_NUMBER: Final = 3
FILE_SEQUENCE_NUMBER: Final = 4
ENTRY_NAMES: Final = {
    "status": STATUS,
    "snapshot_id": SNAPSHOT_ID,
    "data_file": DATA_FILE,
    "sequence_number": SEQUENCE_NUMBER,
    "data_sequence_number": SEQUENCE_NUMBER,
    "file_sequence_number": FILE_SEQUENCE_NUMBER,
}

CONTENT: Final = 134
FILE_PATH: Final = 100
FILE_FORMAT: Final = 101
PARTITION: Final = 102
RECORD_COUNT: Final = 103
FILE_SIZE: Final = 104
# Map field → name of its column in ManifestEntries and DataFile.
COUNT_MAPS: Final = {
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
}
BOUND_MAPS: Final = {125: "lower_bounds", 128: "upper_bounds"}
# Fields that few entries have → attribute of DataFile.
RARE: Final = {
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
_KEY_IDS: Final = frozenset((117, 119, 121, 138, 126, 129))
FILE_NAMES: Final = {
    "content": CONTENT,
    "file_path": FILE_PATH,
    "file_format": FILE_FORMAT,
    "partition": PARTITION,
    "record_count": RECORD_COUNT,
    "file_size_in_bytes": FILE_SIZE,
    **{name: field_id for field_id, name in (COUNT_MAPS | BOUND_MAPS | RARE).items()},
}


def by_field_id(record: AvroNode, names: Mapping[str, int]) -> dict[int, AvroField]:
    """The fields of a record by their ids; ``names`` decides only where the record has no ids.

    Raises OddSchema for something that is no record, or has an id twice.
    """
    if record.kind != "record":
        raise OddSchema(f"{record.kind} where a record belongs")
    has_ids = any(each.field_id is not None for each in record.fields)
    found: dict[int, AvroField] = {}
    for each in record.fields:
        field_id = each.field_id if has_ids else names.get(each.name)
        if field_id is None:
            continue
        if field_id in found:
            raise OddSchema(f"field id {field_id} twice")
        found[field_id] = each
    return found


def pair_fields(column: AvroNode) -> tuple[AvroField, AvroField]:
    """The key and the value of a map with integer keys, which Avro stores as an array of records.

    Raises OddSchema for any other shape.
    """
    node = column.non_null
    if node is None or node.kind != "array" or node.items[0].kind != "record":
        raise OddSchema(f"a map from field ids that is a {column.kind}")
    fields = node.items[0].fields
    keys = [each for each in fields if each.field_id in _KEY_IDS]
    if not keys:
        keys = [each for each in fields if each.name == "key"]
    if len(fields) != 2 or len(keys) != 1:
        raise OddSchema("a map from field ids without one key and one value")
    return keys[0], fields[1] if keys[0] is fields[0] else fields[0]


def partition_fields(
    record: AvroNode, field_ids: tuple[int, ...] | None, count: int
) -> list[AvroField]:
    """The stored field of each partition value: by id where all of ``field_ids`` are there.

    Else in order, since v1 writers and readers did not always number them alike. Raises OddSchema
    when order alone cannot tell.
    """
    fields = record.fields
    by_id = {each.field_id: each for each in fields}
    if field_ids is not None and len(by_id) == len(fields) and by_id.keys() >= set(field_ids):
        return [by_id[each] for each in field_ids]
    if len(fields) != count:
        raise OddSchema(f"{len(fields)} partition values where the spec has {count}")
    return list(fields)
