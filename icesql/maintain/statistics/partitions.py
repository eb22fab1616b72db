"""The partition statistics file of a snapshot: files, rows and deletes of each partition.

Source: Iceberg spec, "Partition Statistics"; Java ``PartitionStatsHandler``, computed in full.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from icesql.catalog.table import Catalog, Table
from icesql.commit.change import change_table
from icesql.context import QueryContext
from icesql.errors import CommitStateUnknownError, ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
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
    (3, "data_record_count", t.LONG), (4, "data_file_count", t.INTEGER),
    (5, "total_data_file_size_in_bytes", t.LONG), (6, "position_delete_record_count", t.LONG),
    (7, "position_delete_file_count", t.INTEGER), (8, "equality_delete_record_count", t.LONG),
    (9, "equality_delete_file_count", t.INTEGER),
)  # fmt: skip
_VECTORS: Final = (13, "dv_count", t.INTEGER)
# Counters that are optional in version 2.
_OF_DELETES: Final = range(6, 10)


class _Partition(Struct):
    """The counts of one partition of one spec; the time is in milliseconds since 1970."""

    values: tuple[Any, ...]
    counts: dict[str, int]
    updated_ms: int | None = None
    updated_by: int | None = None

    def add(self, file: DataFile) -> None:
        """Count a live file."""
        if file.content is FileContent.DATA:
            names = "data_record_count", "data_file_count"
            self.counts["total_data_file_size_in_bytes"] += file.file_size_in_bytes
        elif file.content is FileContent.EQUALITY_DELETES:
            names = "equality_delete_record_count", "equality_delete_file_count"
        elif file.is_deletion_vector:
            names = "position_delete_record_count", "dv_count"
        else:
            names = "position_delete_record_count", "position_delete_file_count"
        self.counts[names[0]] += file.record_count
        self.counts[names[1]] += 1

    def touch(self, snapshot: Snapshot | None) -> None:
        """Record the last snapshot that changed the partition, if the table still has it."""
        if snapshot is not None and (
            self.updated_ms is None or self.updated_ms < snapshot.timestamp_ms
        ):
            self.updated_ms, self.updated_by = snapshot.timestamp_ms, snapshot.snapshot_id


def statistics_schema(metadata: TableMetadata) -> Schema:
    """The columns of a partition statistics file in the table's format version."""
    is_new = metadata.format_version > 2
    fields = [
        t.NestedField(1, "partition", united_partition_type(metadata), required=True),
        t.NestedField(2, "spec_id", t.INTEGER, required=True),
    ]
    for number, name, type in _COUNTERS:
        required = is_new or number not in _OF_DELETES
        fields.append(t.NestedField(number, name, type, required=required))
    fields += [
        t.NestedField(10, "total_record_count", t.LONG),
        t.NestedField(11, "last_updated_at", t.LONG),
        t.NestedField(12, "last_updated_snapshot_id", t.LONG),
    ]
    if is_new:
        number, name, type = _VECTORS
        fields.append(t.NestedField(number, name, type, required=True))
    return Schema(tuple(fields))


def partition_rows(table: Table, snapshot: Snapshot, query: QueryContext) -> list[dict[str, Any]]:
    """One row for each partition of each spec, ordered by their values, NULL first.

    ``partition`` is a dict by field id. ``total_record_count`` is NULL: it requires reading data.
    """
    metadata = table.metadata
    united = [each.field_id for each in united_partition_type(metadata).fields]
    reader = ManifestReader(table, query)
    found: dict[tuple[int, Any], _Partition] = {}
    names = [name for _, name, _ in (*_COUNTERS, _VECTORS)]
    for _, entries in reader.entries_of(reader.manifests_of(snapshot)):
        for index, status in enumerate(entries.status):
            file = entries.data_file(index)
            key = partition_of(file)
            if key not in found:
                found[key] = _Partition(file.partition, dict.fromkeys(names, 0))
            changed_by = file.snapshot_id
            found[key].touch(None if changed_by is None else metadata.snapshot(changed_by))
            if status != DELETED:
                found[key].add(file)
    rows: list[dict[str, Any]] = []
    for (spec_id, _), statistics in found.items():
        by_id = {
            field.field_id: value
            for field, value in zip(metadata.specs[spec_id].fields, statistics.values, strict=True)
        }
        rows.append(
            {
                "partition": {each: by_id.get(each) for each in united},
                "spec_id": spec_id,
                **statistics.counts,
                "total_record_count": None,
                "last_updated_at": statistics.updated_ms,
                "last_updated_snapshot_id": statistics.updated_by,
            }
        )
    rows.sort(key=lambda row: ([_key(each) for each in row["partition"].values()], row["spec_id"]))
    return rows


def _key(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


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
    shape = FileShape.of(schema, {}, options, file_metadata)
    columns = [
        column_of([row[each.name] for row in rows], each.type).cast(shape.arrow.field(place).type)
        for place, each in enumerate(schema.fields)
    ]
    with ParquetFile(table.storage, path, shape) as file:
        if rows:
            file.write(pa.Table.from_arrays(columns, schema=shape.arrow))
        return file.finish().size
