"""Find the fields of a manifest in its writer schema: by field id, never by name.

Writers renamed fields over time; their ids stayed. Only a schema without any ids is read by
names. Some writers make everything optional, so a union with one record means that record.
Source: Iceberg spec, "Manifests".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from icesql.iceberg.avro.schema import AvroField, AvroNode, OddSchema, avro_name

# Fields by name: the id, whether versions 1, 2 and 3 require it (r), have it as optional (o) or not
# at all (-), and the type: "list" has the id of its element, "map" those of its keys and values.
ENTRY: Final = """
    status                  0 rrr int
    snapshot_id             1 roo long
    sequence_number         3 -oo long
    file_sequence_number    4 -oo long
    data_file               2 rrr data_file
"""
FILE: Final = """
    content               134 -rr int
    file_path             100 rrr string
    file_format           101 rrr string
    partition             102 rrr partition
    record_count          103 rrr long
    file_size_in_bytes    104 rrr long
    block_size_in_bytes   105 r-- long
    column_sizes          108 ooo map 117 118 long
    value_counts          109 ooo map 119 120 long
    null_value_counts     110 ooo map 121 122 long
    nan_value_counts      137 ooo map 138 139 long
    lower_bounds          125 ooo map 126 127 bytes
    upper_bounds          128 ooo map 129 130 bytes
    key_metadata          131 ooo bytes
    split_offsets         132 ooo list 133 long
    equality_ids          135 -oo list 136 int
    sort_order_id         140 ooo int
    first_row_id          142 --o long
    referenced_data_file  143 -oo string
    content_offset        144 --o long
    content_size_in_bytes 145 --o long
"""
# Java's order of v1: the summaries precede the row counts.
LISTED: Final = """
    manifest_path         500 rrr string
    manifest_length       501 rrr long
    partition_spec_id     502 rrr int
    content               517 -rr int
    sequence_number       515 -rr long
    min_sequence_number   516 -rr long
    added_snapshot_id     503 rrr long
    added_files_count     504 orr int
    existing_files_count  505 orr int
    deleted_files_count   506 orr int
    partitions            507 o-- summaries
    added_rows_count      512 orr long
    existing_rows_count   513 orr long
    deleted_rows_count    514 orr long
    partitions            507 -oo summaries
    key_metadata          519 ooo bytes
    first_row_id          520 --o long
"""
SUMMARY: Final = """
    contains_null         509 rrr boolean
    contains_nan          518 ooo boolean
    lower_bound           510 ooo bytes
    upper_bound           511 ooo bytes
"""


def rows_of(table: str) -> Iterable[list[str]]:
    """The words of each field."""
    return map(str.split, table.strip().splitlines())


def names_of(table: str) -> dict[str, int]:
    """The ids of the fields by their names."""
    return {name: int(field_id) for name, field_id, *_ in rows_of(table)}


STATUS: Final = 0
SNAPSHOT_ID: Final = 1
DATA_FILE: Final = 2
SEQUENCE_NUMBER: Final = 3
FILE_SEQUENCE_NUMBER: Final = 4
ENTRY_NAMES: Final = {**names_of(ENTRY), "data_sequence_number": SEQUENCE_NUMBER}

CONTENT: Final = 134
FILE_PATH: Final = 100
FILE_FORMAT: Final = 101
PARTITION: Final = 102
RECORD_COUNT: Final = 103
FILE_SIZE: Final = 104
FIRST_ROW_ID: Final = 142
# Without these a file cannot be read.
NEEDED: Final = frozenset((FILE_PATH, FILE_FORMAT, FILE_SIZE))
# Map field → name of its column in ManifestEntries and DataFile.
COUNT_MAPS: Final = {
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
}
BOUND_MAPS: Final = {125: "lower_bounds", 128: "upper_bounds"}
MAPS: Final = COUNT_MAPS | BOUND_MAPS
# Fields that few entries have → attribute of DataFile.
RARE: Final = {
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    FIRST_ROW_ID: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
INTEGERS: Final = ("int", "long")
_KEY_IDS: Final = frozenset((117, 119, 121, 138, 126, 129))
FILE_NAMES: Final = names_of(FILE)


def by_field_id(record: AvroNode, names: Mapping[str, int]) -> dict[int, AvroField]:
    """The fields of a record by their ids; ``names`` decides only where the record has no ids.

    ``record`` may be a union with one record. Raises OddSchema for anything else, or an id that
    is there twice.
    """
    fields = fields_of(record)
    has_ids = any(each.field_id is not None for each in fields)
    found: dict[int, AvroField] = {}
    for each in fields:
        field_id = each.field_id if has_ids else names.get(each.name)
        if field_id is None:
            continue
        if field_id in found:
            raise OddSchema(f"field id {field_id} twice")
        found[field_id] = each
    return found


def entry_fields(root: AvroNode) -> dict[int, AvroField]:
    """The fields of an entry by their ids. Raises OddSchema."""
    fields = by_field_id(root, ENTRY_NAMES)
    if STATUS not in fields or DATA_FILE not in fields:
        raise OddSchema("entries without status or data_file")
    return fields


def file_fields(record: AvroNode, needed: frozenset[int] = NEEDED) -> dict[int, AvroField]:
    """The fields of a data file by their ids. Raises OddSchema, also if a needed one is missing."""
    fields = by_field_id(record, FILE_NAMES)
    if missing := needed - fields.keys():
        raise OddSchema(f"data files without field {min(missing)}")
    return fields


def fields_of(node: AvroNode) -> tuple[AvroField, ...]:
    """The fields of a record, or of the only record of a union. Raises OddSchema."""
    record = node.record
    if record is None:
        raise OddSchema(f"{node.kind} where a record belongs")
    return record.fields


def pair_fields(column: AvroNode) -> tuple[AvroField, AvroField]:
    """The key and the value of a map with integer keys, which Avro stores as an array of records.

    Raises OddSchema for any other shape.
    """
    arrays = [each for each in column.branches if each.kind == "array"]
    if len(arrays) != 1:
        raise OddSchema(f"a map from field ids that is a {column.kind}")
    fields = fields_of(arrays[0].items[0])
    keys = [each for each in fields if each.field_id in _KEY_IDS]
    if not keys:
        keys = [each for each in fields if each.name == "key"]
    if len(fields) != 2 or len(keys) != 1:
        raise OddSchema("a map from field ids without one key and one value")
    return keys[0], fields[1] if keys[0] is fields[0] else fields[0]


def is_plain_map(column: AvroNode, is_bytes: bool) -> bool:
    """Whether such a map is as Java writes it: no null in it, and each key before its value."""
    key, value = pair_fields(column)
    inner = column.non_null
    if inner is None or inner.items[0].kind != "record" or key is not fields_of(inner.items[0])[0]:
        return False
    return key.node.kind in INTEGERS and value.node.kind in (("bytes",) if is_bytes else INTEGERS)


def partition_fields(
    record: AvroNode, spec: Sequence[tuple[int, str]] | None, count: int
) -> list[AvroField | None]:
    """The stored field of each of ``count`` partition values, None where the writer left it out.

    ``spec`` has the id and the name of each. Ids decide where all of them are there; else names,
    then, since v1 writers and readers did not always number them alike, order. A record of
    another length than the spec has gives the fields whose id or name it shares with it.
    """
    fields = fields_of(record)
    if spec is None:
        if len(fields) != count:
            raise OddSchema(f"{len(fields)} partition values where the spec has {count}")
        return list(fields)
    by_id = {each.field_id: each for each in fields if each.field_id is not None}
    if len(by_id) < sum(each.field_id is not None for each in fields):
        by_id = {}  # an id that occurs twice identifies no field
    by_name = {each.name: each for each in fields}
    ids = [by_id.get(field_id) for field_id, _ in spec]
    names = [by_name.get(name) or by_name.get(avro_name(name)) for _, name in spec]
    for found in (ids, names):
        if all(found) and len({id(each) for each in found}) == count:
            return found
    if len(fields) == count:
        return list(fields)
    return ids if by_id else names
