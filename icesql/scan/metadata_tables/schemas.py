"""The metadata tables by name, and the columns of each.

Source: Java's ``MetadataTableType`` and the schemas of its tables; ``iceberg_snapshots`` and
``iceberg_metadata`` have the columns of DuckDB's functions of these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from icesql.iceberg import types as t
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.scan.metadata_tables.readable_metrics import metrics_type

# Tables that show one snapshot, and so can be queried at an earlier one.
OF_A_SNAPSHOT: Final = frozenset(
    {
        "entries", "files", "data_files", "delete_files", "manifests", "partitions",
        "position_deletes", "iceberg_metadata",
    }
)  # fmt: skip
# Tables that show the whole history.
OF_ALL_SNAPSHOTS: Final = frozenset(
    {
        "history", "snapshots", "refs", "metadata_log_entries", "all_manifests", "all_entries",
        "all_files", "all_data_files", "all_delete_files", "iceberg_snapshots",
    }
)  # fmt: skip
# The suffixes that may follow the name of a table.
SUFFIXES: Final = (OF_A_SNAPSHOT | OF_ALL_SNAPSHOTS) - {"iceberg_metadata", "iceberg_snapshots"}
# Tables whose first columns are those of a file.
FILE_TABLES: Final = frozenset(
    {"files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"}
)

# Far from the ids of partition fields, since filters on those ids prune manifests.
_FIRST_ID: Final = 1_000_000_000
_ROW_IDS: Final = 1_500_000_000

_Columns = Mapping[str, t.IcebergType | str]

_INT_TO_LONG: Final = "map<int, long>"
_INT_TO_BINARY: Final = "map<int, binary>"
_FIXED: Final[Mapping[str, _Columns]] = {
    "history": {
        "made_current_at": t.TIMESTAMPTZ,
        "snapshot_id": t.LONG,
        "parent_id": t.LONG,
        "is_current_ancestor": t.BOOLEAN,
    },
    "snapshots": {
        "committed_at": t.TIMESTAMPTZ,
        "snapshot_id": t.LONG,
        "parent_id": t.LONG,
        "operation": t.STRING,
        "manifest_list": t.STRING,
        "summary": "map<string, string>",
    },
    "refs": {
        "name": t.STRING,
        "type": t.STRING,
        "snapshot_id": t.LONG,
        "max_reference_age_in_ms": t.LONG,
        "min_snapshots_to_keep": t.INTEGER,
        "max_snapshot_age_in_ms": t.LONG,
    },
    "metadata_log_entries": {
        "timestamp": t.TIMESTAMPTZ,
        "file": t.STRING,
        "latest_snapshot_id": t.LONG,
        "latest_schema_id": t.INTEGER,
        "latest_sequence_number": t.LONG,
    },
    "manifests": {
        "content": t.INTEGER,
        "path": t.STRING,
        "length": t.LONG,
        "partition_spec_id": t.INTEGER,
        "added_snapshot_id": t.LONG,
        "added_data_files_count": t.INTEGER,
        "existing_data_files_count": t.INTEGER,
        "deleted_data_files_count": t.INTEGER,
        "added_delete_files_count": t.INTEGER,
        "existing_delete_files_count": t.INTEGER,
        "deleted_delete_files_count": t.INTEGER,
        "partition_summaries": "list of summaries",
    },
    "iceberg_snapshots": {
        "sequence_number": t.LONG,
        "snapshot_id": t.LONG,
        "timestamp_ms": t.TIMESTAMP,
        "manifest_list": t.STRING,
    },
    "iceberg_metadata": {
        "manifest_path": t.STRING,
        "manifest_sequence_number": t.LONG,
        "manifest_content": t.STRING,
        "status": t.STRING,
        "content": t.STRING,
        "file_path": t.STRING,
        "file_format": t.STRING,
        "record_count": t.LONG,
    },
}
_ALL_MANIFESTS: Final = {
    **_FIXED["manifests"],
    "reference_snapshot_id": t.LONG,
    "key_metadata": t.BINARY,
}
_BEFORE_PARTITION: Final[_Columns] = {
    "content": t.INTEGER,
    "file_path": t.STRING,
    "file_format": t.STRING,
    "spec_id": t.INTEGER,
}
_AFTER_PARTITION: Final[_Columns] = {
    "record_count": t.LONG,
    "file_size_in_bytes": t.LONG,
    "column_sizes": _INT_TO_LONG,
    "value_counts": _INT_TO_LONG,
    "null_value_counts": _INT_TO_LONG,
    "nan_value_counts": _INT_TO_LONG,
    "lower_bounds": _INT_TO_BINARY,
    "upper_bounds": _INT_TO_BINARY,
    "key_metadata": t.BINARY,
    "split_offsets": "list<long>",
    "equality_ids": "list<int>",
    "sort_order_id": t.INTEGER,
    "first_row_id": t.LONG,
    "referenced_data_file": t.STRING,
    "content_offset": t.LONG,
    "content_size_in_bytes": t.LONG,
}
_PARTITION_COUNTS: Final[_Columns] = {
    "record_count": t.LONG,
    "file_count": t.INTEGER,
    "total_data_file_size_in_bytes": t.LONG,
    "position_delete_record_count": t.LONG,
    "position_delete_file_count": t.INTEGER,
    "equality_delete_record_count": t.LONG,
    "equality_delete_file_count": t.INTEGER,
    "last_updated_at": t.TIMESTAMPTZ,
    "last_updated_snapshot_id": t.LONG,
}


def metadata_schema(name: str, metadata: TableMetadata) -> Schema:
    """The columns of the metadata table ``name`` of a table.

    ``partition`` is a struct of all specs and is absent where the table has no partition fields.
    """
    ids = count(_FIRST_ID)
    partition = united_partition_type(metadata)
    parted: _Columns = {"partition": partition} if partition.fields else {}
    columns: _Columns
    if name in FILE_TABLES:
        file = {**_BEFORE_PARTITION, **parted, **_AFTER_PARTITION}
        columns = {**file, "readable_metrics": metrics_type(metadata.schema, ids)}
    elif name in ("entries", "all_entries"):
        file = {**_BEFORE_PARTITION, **parted, **_AFTER_PARTITION}
        columns = {
            "status": t.INTEGER,
            "snapshot_id": t.LONG,
            "sequence_number": t.LONG,
            "file_sequence_number": t.LONG,
            "data_file": t.StructType(tuple(_fields(file, ids))),
            "readable_metrics": metrics_type(metadata.schema, ids),
        }
    elif name == "partitions":
        spec: _Columns = {**parted, "spec_id": t.INTEGER} if parted else {}
        columns = {**spec, **_PARTITION_COUNTS}
    elif name == "position_deletes":
        columns = _position_deletes(metadata, parted)
    else:
        columns = _ALL_MANIFESTS if name == "all_manifests" else _FIXED[name]
    return Schema(tuple(_fields(columns, ids)))


def _position_deletes(metadata: TableMetadata, parted: _Columns) -> _Columns:
    columns: dict[str, t.IcebergType | str] = {
        "file_path": t.STRING,
        "pos": t.LONG,
        "row": _renumbered(metadata.schema.struct),
        **parted,
        "spec_id": t.INTEGER,
        "delete_file_path": t.STRING,
    }
    if metadata.format_version >= 3:
        columns |= {"content_offset": t.LONG, "content_size_in_bytes": t.LONG}
    return columns


def stored_row(row: t.IcebergType) -> t.IcebergType:
    """The type of ``row`` in position_deletes with the ids that delete files store."""
    return _renumbered(row, -_ROW_IDS)


def _renumbered(node: t.IcebergType, shift: int = _ROW_IDS) -> t.IcebergType:
    """The same type with ids that no partition field has."""
    return t.with_children(
        node,
        [
            t.NestedField(shift + each.field_id, each.name, _renumbered(each.type, shift))
            for each in t.children(node)
        ],
    )


def _fields(columns: _Columns, ids: Iterator[int]) -> Iterator[t.NestedField]:
    for name, kind in columns.items():
        field_id = next(ids)
        yield t.NestedField(field_id, name, _type(kind, ids) if isinstance(kind, str) else kind)


def _type(kind: str, ids: Iterator[int]) -> t.IcebergType:
    if kind == "list of summaries":
        children: _Columns = {
            "contains_null": t.BOOLEAN,
            "contains_nan": t.BOOLEAN,
            "lower_bound": t.STRING,
            "upper_bound": t.STRING,
        }
        return t.ListType(next(ids), t.StructType(tuple(_fields(children, ids))))
    outer, _, inner = kind.removesuffix(">").partition("<")
    parts = [t.parse_primitive(each.strip()) for each in inner.split(",")]
    if outer == "list":
        return t.ListType(next(ids), parts[0])
    return t.MapType(next(ids), parts[0], next(ids), parts[1])
