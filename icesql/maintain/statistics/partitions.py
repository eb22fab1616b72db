"""The partition statistics file of a snapshot: files, rows and deletes of each partition.

Source: Iceberg spec, "Partition Statistics"; Java ``PartitionStatsHandler``, computed in full.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import astuple

from icesql.catalog.table import Catalog, Table
from icesql.commit.change import change_table
from icesql.commit.manifests.rewrite import null_first
from icesql.context import QueryContext
from icesql.errors import CommitStateUnknownError, ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.entries import DELETED
from icesql.iceberg.metadata.changes.updates import SetPartitionStatistics, Update
from icesql.iceberg.metadata.file_names import metadata_folder
from icesql.iceberg.metadata.json_writer import schema_json
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.read.columns.values import column_of
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.metadata_tables.partition_rows import PartitionTotals
from icesql.storage.new_file import check_writable
from icesql.storage.uncommitted import Uncommitted
from icesql.write.options import write_options
from icesql.write.parquet_file import FileShape, ParquetFile

# Commit a statistics file that was written for a snapshot.


def set_statistics(
    catalog: Catalog,
    table: Table,
    snapshot: Snapshot,
    path: str,
    update: Update,
    query: QueryContext,
) -> None:
    """Commit ``update``, which names the file at ``path``; the file is removed if that fails.

    Raises ProgrammingError if the snapshot expired meanwhile, and what commits raise.
    """

    def updates(base: TableMetadata) -> Sequence[Update]:
        if base.snapshot(snapshot.snapshot_id) is None:
            raise ProgrammingError(f"snapshot {snapshot.snapshot_id} was expired meanwhile")
        return (update,)

    with Uncommitted(table.storage) as new:
        new.take([path])
        try:
            change_table(catalog, table, updates, files=[path], query=query)
        except CommitStateUnknownError:
            new.hand_over()  # the table may name it
            raise
        new.hand_over()


_COUNTERS: Final = (
    ("data_record_count", t.LONG), ("data_file_count", t.INTEGER),
    ("total_data_file_size_in_bytes", t.LONG), ("position_delete_record_count", t.LONG),
    ("position_delete_file_count", t.INTEGER), ("equality_delete_record_count", t.LONG),
    ("equality_delete_file_count", t.INTEGER),
)  # fmt: skip
_VECTORS: Final = "dv_count"
# Counters that are optional in version 2.
_OF_DELETES: Final = range(6, 10)


def statistics_schema(metadata: TableMetadata) -> Schema:
    """The columns of a partition statistics file in the table's format version."""
    is_new = metadata.format_version > 2
    fields = [
        t.NestedField(1, "partition", united_partition_type(metadata), required=True),
        t.NestedField(2, "spec_id", t.INTEGER, required=True),
    ]
    for number, (name, type) in enumerate(_COUNTERS, 3):
        required = is_new or number not in _OF_DELETES
        fields.append(t.NestedField(number, name, type, required=required))
    fields += [
        t.NestedField(10, "total_record_count", t.LONG),
        t.NestedField(11, "last_updated_at", t.LONG),
        t.NestedField(12, "last_updated_snapshot_id", t.LONG),
    ]
    if is_new:
        fields.append(t.NestedField(13, _VECTORS, t.INTEGER, required=True))
    return Schema(tuple(fields))


def partition_rows(table: Table, snapshot: Snapshot, query: QueryContext) -> list[dict[str, Any]]:
    """One row for each partition of each spec, ordered by their values, NULL first.

    ``partition`` is a dict by field id. ``total_record_count`` is NULL: it requires reading data.
    """
    metadata = table.metadata
    united = [each.field_id for each in united_partition_type(metadata).fields]
    reader = ManifestReader(table, query)
    found: dict[tuple[int, Any], PartitionTotals] = {}
    for _, entries in reader.entries_of(reader.manifests_of(snapshot)):
        for index, status in enumerate(entries.status):
            file = entries.data_file(index)
            totals = found.get(key := partition_of(file))
            if totals is None:
                ids = (each.field_id for each in metadata.specs[file.spec_id].fields)
                values = dict(zip(ids, file.partition, strict=True))
                totals = found[key] = PartitionTotals(values, file.spec_id)
            totals.touch(file.snapshot_id, file.spec_id, metadata)
            if status != DELETED:
                size, is_vector = file.file_size_in_bytes, file.is_deletion_vector
                totals.add(file.content, file.record_count, size, is_vector=is_vector)
    names = [*dict(_COUNTERS), _VECTORS]
    rows: list[dict[str, Any]] = [
        {
            "partition": {number: each.values.get(number) for number in united},
            "spec_id": each.spec_id,
            **dict(zip(names, astuple(each)[2:-2], strict=True)),
            "total_record_count": None,
            "last_updated_at": each.updated_ms,
            "last_updated_snapshot_id": each.updated_by,
        }
        for each in found.values()
    ]
    rows.sort(
        key=lambda row: ([null_first(each) for each in row["partition"].values()], row["spec_id"])
    )
    return rows


def compute_partition_statistics(
    catalog: Catalog, table: Table, snapshot: Snapshot, query: QueryContext
) -> str:
    """Write the partition statistics file of a snapshot and set it; return its path.

    Raises ProgrammingError for a table without partition fields, and what commits raise.
    """
    metadata = table.metadata
    if not united_partition_type(metadata).fields:
        raise ProgrammingError(f"{table.name} is not partitioned")
    check_writable(table.storage)
    rows = partition_rows(table, snapshot, query)
    folder = metadata_folder(metadata.location, metadata.properties)
    path = f"{folder}/partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.parquet"
    size = _write(table, path, statistics_schema(metadata), rows)
    statistics_file = {
        "snapshot-id": snapshot.snapshot_id, "statistics-path": path, "file-size-in-bytes": size,
    }  # fmt: skip
    set_statistics(catalog, table, snapshot, path, SetPartitionStatistics(statistics_file), query)
    return path


def _write(table: Table, path: str, schema: Schema, rows: Sequence[dict[str, Any]]) -> int:
    options = write_options(table.metadata.properties)
    file_metadata = {"iceberg.schema": json.dumps(schema_json(schema), separators=(",", ":"))}
    shape = FileShape(schema, {}, options, file_metadata)
    columns = [
        column_of([row[each.name] for row in rows], each.type).cast(shape.arrow.field(place).type)
        for place, each in enumerate(schema.fields)
    ]
    with ParquetFile(table.storage, path, shape) as file:
        if rows:
            file.write(pa.Table.from_arrays(columns, schema=shape.arrow))
        return file.finish().size
