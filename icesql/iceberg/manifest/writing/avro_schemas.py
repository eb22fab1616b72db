"""The Avro schemas of manifests and manifest lists, by format version.

Source: Iceberg spec, "Manifests" and "Manifest Lists"; Java ``V1Metadata`` to ``V3Metadata``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icesql.errors import UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.partitioning import PartitionSpec

_PRIMITIVES: Final[dict[type[t.IcebergType], Any]] = {
    t.BooleanType: "boolean",
    t.IntegerType: "int",
    t.LongType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.StringType: "string",
    t.BinaryType: "bytes",
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimeType: {"type": "long", "logicalType": "time-micros"},
    t.TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    t.TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    t.TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    t.TimestamptzNanoType: {
        "type": "long",
        "logicalType": "timestamp-nanos",
        "adjust-to-utc": True,
    },
    t.UUIDType: {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}
MAPS: Final = {
    "column_sizes": (108, 117, 118, "long"),
    "value_counts": (109, 119, 120, "long"),
    "null_value_counts": (110, 121, 122, "long"),
    "nan_value_counts": (137, 138, 139, "long"),
    "lower_bounds": (125, 126, 127, "bytes"),
    "upper_bounds": (128, 129, 130, "bytes"),
}


def partition_avro_type(type: t.IcebergType, name: str) -> Any:
    """The Avro type of a partition value. Raises UnsupportedTableError for one that has none."""
    match type:
        case t.DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": f"decimal_{precision}_{scale}",
                "size": decimal_bytes(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case t.FixedType():
            # Java (seen in 1.12) stores their length, too, which the schema does not declare;
            # readers of one form take the other for damage.
            raise UnsupportedTableError(
                f"writing partition field {name!r} of type {type}, which Iceberg's libraries "
                "store in different ways",
            )
        case _:
            found = _PRIMITIVES.get(type.__class__)
            if found is None:
                raise UnsupportedTableError(f"writing partition field {name!r} of type {type}")
            return found


def decimal_bytes(precision: int) -> int:
    """The fewest bytes that hold every decimal of so many digits.

    >>> [decimal_bytes(precision) for precision in (1, 2, 9, 18, 38)]
    [1, 1, 4, 8, 16]
    """
    return (int(10**precision) - 1).bit_length() // 8 + 1


def entry_schema(version: int, spec: PartitionSpec, types: Sequence[t.IcebergType]) -> Any:
    """The schema of the entries of a manifest of a spec with partition values of ``types``."""
    status = _required("status", 0, "int")
    data_file = _required("data_file", 2, _record("r2", _data_file(version, spec, types)))
    if version == 1:
        fields = [status, _required("snapshot_id", 1, "long"), data_file]
    else:
        fields = [
            status,
            _optional("snapshot_id", 1, "long"),
            _optional("sequence_number", 3, "long"),
            _optional("file_sequence_number", 4, "long"),
            data_file,
        ]
    return _record("manifest_entry", fields)


def _data_file(version: int, spec: PartitionSpec, types: Sequence[t.IcebergType]) -> list[Any]:
    content = [] if version == 1 else [_required("content", 134, "int")]
    block = [_required("block_size_in_bytes", 105, "long")] if version == 1 else []
    fields = [
        *content,
        _required("file_path", 100, "string"),
        _required("file_format", 101, "string"),
        _required("partition", 102, _record("r102", _partition(spec, types))),
        _required("record_count", 103, "long"),
        _required("file_size_in_bytes", 104, "long"),
        *block,
        *(_optional(name, ids[0], _map(*ids[1:])) for name, ids in MAPS.items()),
        _optional("key_metadata", 131, "bytes"),
        _optional("split_offsets", 132, {"type": "array", "items": "long", "element-id": 133}),
    ]
    if version > 1:
        ids = {"type": "array", "items": "int", "element-id": 136}
        fields.append(_optional("equality_ids", 135, ids))
    fields.append(_optional("sort_order_id", 140, "int"))
    if version > 2:
        fields.append(_optional("first_row_id", 142, "long"))
    if version > 1:
        fields.append(_optional("referenced_data_file", 143, "string"))
    if version > 2:
        fields.append(_optional("content_offset", 144, "long"))
        fields.append(_optional("content_size_in_bytes", 145, "long"))
    return fields


def _partition(spec: PartitionSpec, types: Sequence[t.IcebergType]) -> list[Any]:
    fields, named = [], set()
    for each, type in zip(spec.fields, types, strict=True):
        kind = partition_avro_type(type, each.name)
        if isinstance(kind, dict) and "name" in kind:
            # Avro declares a named type once and then names it.
            kind, known = (kind["name"], True) if kind["name"] in named else (kind, False)
            if not known:
                named.add(kind["name"])
        made = _optional(avro_name(each.name), each.field_id, kind)
        if made["name"] != each.name:
            made["iceberg-field-name"] = each.name
        fields.append(made)
    return fields


def list_schema(version: int) -> Any:
    """The schema of the rows of a manifest list."""
    counted = _optional if version == 1 else _required
    rows = [
        counted("added_rows_count", 512, "long"),
        counted("existing_rows_count", 513, "long"),
        counted("deleted_rows_count", 514, "long"),
    ]
    head = [
        _required("manifest_path", 500, "string"),
        _required("manifest_length", 501, "long"),
        _required("partition_spec_id", 502, "int"),
    ]
    numbers = [
        _required("content", 517, "int"),
        _required("sequence_number", 515, "long"),
        _required("min_sequence_number", 516, "long"),
    ]
    files = [
        _required("added_snapshot_id", 503, "long"),
        counted("added_files_count", 504, "int"),
        counted("existing_files_count", 505, "int"),
        counted("deleted_files_count", 506, "int"),
    ]
    summary = _record(
        "r508",
        [
            _required("contains_null", 509, "boolean"),
            _optional("contains_nan", 518, "boolean"),
            _optional("lower_bound", 510, "bytes"),
            _optional("upper_bound", 511, "bytes"),
        ],
    )
    partitions = _optional(
        "partitions", 507, {"type": "array", "items": summary, "element-id": 508}
    )
    keys = _optional("key_metadata", 519, "bytes")
    if version == 1:
        # Java's order of v1: the summaries precede the row counts.
        return _record("manifest_file", [*head, *files, partitions, *rows, keys])
    first = [_optional("first_row_id", 520, "long")] if version > 2 else []
    return _record("manifest_file", [*head, *numbers, *files, *rows, partitions, keys, *first])


def _record(name: str, fields: list[Any]) -> Any:
    return {"type": "record", "name": name, "fields": fields}


def _required(name: str, field_id: int, type: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "field-id": field_id}


def _optional(name: str, field_id: int, type: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type], "default": None, "field-id": field_id}


def _map(key_id: int, value_id: int, value: str) -> Any:
    pair = _record(
        f"k{key_id}_v{value_id}",
        [_required("key", key_id, "int"), _required("value", value_id, value)],
    )
    return {"type": "array", "items": pair, "logicalType": "map"}
