"""The metadata tables by name, and the columns of each.

Source: Java's ``MetadataTableType`` and the schemas of its tables; ``iceberg_snapshots`` and
``iceberg_metadata`` have the columns of DuckDB's functions of these names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import count
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.schema import MAPS
from icesql.iceberg.metadata.table_metadata import TableMetadata, united_partition_type
from icesql.iceberg.schema import Schema

# ------------------------------------------------------------------ readable metrics
# Source: Java ``MetricsUtil.readableMetricsStruct``.


_METRICS: Final = tuple(MAPS.values())


def metrics_type(schema: Schema, ids: Iterator[int]) -> t.StructType:
    """A struct for each primitive leaf of ``schema`` by its full name, sorted by names.

    A variant is not a leaf: its metrics belong to its parts.
    """
    return t.StructType(
        tuple(
            t.NestedField(next(ids), name, t.StructType(tuple(_metrics(leaf.type, ids))))
            for name, leaf in _leaves(schema)
        )
    )


def _metrics(value_type: t.IcebergType, ids: Iterator[int]) -> Iterator[t.NestedField]:
    for name in _METRICS:
        kind = value_type if name.endswith("bounds") else t.LONG
        yield t.NestedField(next(ids), name.removesuffix("s"), kind)


def metrics_reader(schema: Schema, struct: t.StructType) -> Callable[[DataFile], dict[int, Any]]:
    """The value of ``struct``, which ``metrics_type`` made of ``schema``, for a file.

    A count or bound that the manifest lacks, or a bound that cannot be read, is NULL.
    """
    columns = [
        (field.field_id, [each.field_id for each in t.children(field.type)], leaf)
        for field, (_, leaf) in zip(struct.fields, _leaves(schema), strict=True)
    ]

    def read(file: DataFile) -> dict[int, Any]:
        maps: list[Mapping[int, Any]] = [getattr(file, name) or {} for name in _METRICS]
        found: dict[int, Any] = {}
        for field_id, ids, leaf in columns:
            *counts, lower, upper = (each.get(leaf.field_id) for each in maps)
            bounds = [_bound(each, leaf.type) for each in (lower, upper)]
            found[field_id] = dict(zip(ids, counts + bounds, strict=True))
        return found

    return read


def _leaves(schema: Schema) -> list[tuple[str, t.NestedField]]:
    return sorted(
        (name, schema.field_by_id[field_id])
        for field_id, name in schema.name_by_id.items()
        if isinstance(schema.field_by_id[field_id].type, t.PrimitiveType)
        and not isinstance(schema.field_by_id[field_id].type, t.VariantType)
    )


def _bound(data: bytes | None, value_type: t.IcebergType) -> Any:
    value = None if data is None else decode_bound(value_type, data)
    if isinstance(value, Decimal) and isinstance(value_type, t.DecimalType):
        # Of a file whose own type has more digits, as files added by other writers may.
        return value if len(value.as_tuple().digits) <= value_type.precision else None
    return value


# ------------------------------------------------------------------ schemas


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


def _listed(columns: str) -> _Columns:
    """Columns by name, written as one a line: the name and, as metadata spells it, the type."""
    return dict(line.split(None, 1) for line in columns.strip().splitlines())


_FIXED: Final = {
    "history": _listed("""
        made_current_at timestamptz
        snapshot_id long
        parent_id long
        is_current_ancestor boolean
    """),
    "snapshots": _listed("""
        committed_at timestamptz
        snapshot_id long
        parent_id long
        operation string
        manifest_list string
        summary map<string, string>
    """),
    "refs": _listed("""
        name string
        type string
        snapshot_id long
        max_reference_age_in_ms long
        min_snapshots_to_keep int
        max_snapshot_age_in_ms long
    """),
    "metadata_log_entries": _listed("""
        timestamp timestamptz
        file string
        latest_snapshot_id long
        latest_schema_id int
        latest_sequence_number long
    """),
    "manifests": _listed("""
        content int
        path string
        length long
        partition_spec_id int
        added_snapshot_id long
        added_data_files_count int
        existing_data_files_count int
        deleted_data_files_count int
        added_delete_files_count int
        existing_delete_files_count int
        deleted_delete_files_count int
        partition_summaries list of summaries
    """),
    "iceberg_snapshots": _listed("""
        sequence_number long
        snapshot_id long
        timestamp_ms timestamp
        manifest_list string
    """),
    "iceberg_metadata": _listed("""
        manifest_path string
        manifest_sequence_number long
        manifest_content string
        status string
        content string
        file_path string
        file_format string
        record_count long
    """),
}
_ALL_MANIFESTS: Final = {
    **_FIXED["manifests"],
    "reference_snapshot_id": "long",
    "key_metadata": "binary",
}
_SUMMARY: Final = _listed("""
    contains_null boolean
    contains_nan boolean
    lower_bound string
    upper_bound string
""")
_OF_ENTRY: Final = _listed("""
    status int
    snapshot_id long
    sequence_number long
    file_sequence_number long
""")
_BEFORE_PARTITION: Final = _listed("""
    content int
    file_path string
    file_format string
    spec_id int
""")
_AFTER_PARTITION: Final = _listed("""
    record_count long
    file_size_in_bytes long
    column_sizes map<int, long>
    value_counts map<int, long>
    null_value_counts map<int, long>
    nan_value_counts map<int, long>
    lower_bounds map<int, binary>
    upper_bounds map<int, binary>
    key_metadata binary
    split_offsets list<long>
    equality_ids list<int>
    sort_order_id int
    first_row_id long
    referenced_data_file string
    content_offset long
    content_size_in_bytes long
""")
_OF_DELETE_FILE: Final = {"spec_id": "int", "delete_file_path": "string"}
_PLACE_OF_VECTOR: Final = {"content_offset": "long", "content_size_in_bytes": "long"}
_PARTITION_COUNTS: Final = _listed("""
    record_count long
    file_count int
    total_data_file_size_in_bytes long
    position_delete_record_count long
    position_delete_file_count int
    equality_delete_record_count long
    equality_delete_file_count int
    last_updated_at timestamptz
    last_updated_snapshot_id long
""")


def metadata_schema(name: str, metadata: TableMetadata) -> Schema:
    """The columns of the metadata table ``name`` of a table.

    ``partition`` is a struct of all specs and is absent where the table has no partition fields.
    """
    ids = count(_FIRST_ID)
    partition = united_partition_type(metadata)
    parted: _Columns = {"partition": partition} if partition.fields else {}
    file = {**_BEFORE_PARTITION, **parted, **_AFTER_PARTITION}
    columns: _Columns
    if name in FILE_TABLES:
        columns = {**file, "readable_metrics": metrics_type(metadata.schema, ids)}
    elif name in ("entries", "all_entries"):
        columns = {
            **_OF_ENTRY,
            "data_file": t.StructType(tuple(_fields(file, ids))),
            "readable_metrics": metrics_type(metadata.schema, ids),
        }
    elif name == "partitions":
        spec: _Columns = {**parted, "spec_id": "int"} if parted else {}
        columns = {**spec, **_PARTITION_COUNTS}
    elif name == "position_deletes":
        row = _renumbered(metadata.schema.struct)
        columns = {"file_path": "string", "pos": "long", "row": row, **parted, **_OF_DELETE_FILE}
        if metadata.format_version >= 3:
            columns = {**columns, **_PLACE_OF_VECTOR}
    else:
        columns = _ALL_MANIFESTS if name == "all_manifests" else _FIXED[name]
    return Schema(tuple(_fields(columns, ids)))


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
        return t.ListType(next(ids), t.StructType(tuple(_fields(_SUMMARY, ids))))
    outer, _, inner = kind.removesuffix(">").partition("<")
    parts = [t.parse_primitive(each.strip()) for each in (inner or outer).split(",")]
    match outer:
        case "list":
            return t.ListType(next(ids), parts[0])
        case "map":
            return t.MapType(next(ids), parts[0], next(ids), parts[1])
        case _:
            return parts[0]
