"""Statistics files of snapshots: of partitions, and of the distinct values of columns.

Source: Java ``ComputeTableStatsSparkAction``, ``NDVSketchUtil`` and ``PartitionStatsHandler``,
computed in full; Iceberg spec, "Partition Statistics".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import astuple

from icesql.catalog.table import Catalog, Table
from icesql.commit.file_changes import change_table
from icesql.commit.manifests.rewrite import null_first
from icesql.context import Progress, QueryContext
from icesql.errors import (
    ColumnNotFoundError,
    CommitStateUnknownError,
    NotSupportedError,
    ProgrammingError,
    similar_names,
)
from icesql.iceberg import types as t
from icesql.iceberg.bounds import encode_bound
from icesql.iceberg.manifest.entries import DELETED
from icesql.iceberg.metadata.changes.updates import SetPartitionStatistics, SetStatistics, Update
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata, united_partition_type
from icesql.iceberg.metadata.writing import metadata_folder, schema_json
from icesql.iceberg.puffin import NewBlob, puffin_bytes
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import column_of
from icesql.read.task import read_task
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.metadata_tables.manifest_rows import PartitionTotals
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from icesql.storage.new_files import NewFile, Uncommitted, check_writable
from icesql.write.options import write_options
from icesql.write.parquet_file import FileShape, ParquetFile
from icesql.write.partition_values import internal_array

# ------------------------------------------------------------------ partitions


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


# ------------------------------------------------------------------ theta sketches
# A sketch keeps the smallest of all hashes; their range gives an estimate of the number of
# distinct values. Source: Iceberg's Puffin spec, "apache-datasketches-theta-v1"; DataSketches,
# ``CompactOperations``.


SEED: Final = 9001
# Sketches with different seeds cannot be merged: the last bytes of the seed's own hash.
_SEED_HASH: Final = b"\xcc\x93"
_NOMINAL: Final = 4096
_MOST: Final = 16 * _NOMINAL
_WHOLE: Final = (1 << 63) - 1
_VERSION, _COMPACT_FAMILY = 3, 3
# Flags: read-only, compact, ordered; then for an empty sketch, and for a single hash.
_FLAGS, _EMPTY, _SINGLE = 0x1A, 0x04, 0x20


class ThetaSketch(Struct):
    """A sketch of byte strings; exact for up to 4,096 distinct ones."""

    _hashes: set[int] = set()
    _theta: int = _WHOLE
    _empty: bool = True

    def update(self, values: Iterable[bytes]) -> None:
        """Add values, repeated or not; empty ones are ignored, as in DataSketches."""
        from mmh3 import hash64

        hashes, theta = self._hashes, self._theta
        for value in values:
            if not value:
                continue
            self._empty = False
            found = hash64(value, SEED, signed=False)[0] >> 1
            if 0 < found < theta:
                hashes.add(found)
                if len(hashes) > _MOST:
                    theta = self._trim()
                    hashes = self._hashes

    def _trim(self) -> int:
        """Keep the smallest hashes; the next one becomes the upper bound."""
        if len(self._hashes) > _NOMINAL:
            ordered = sorted(self._hashes)
            self._theta = ordered[_NOMINAL]
            self._hashes = set(ordered[:_NOMINAL])
        return self._theta

    @property
    def estimate(self) -> int:
        """The estimated number of distinct values, rounded down."""
        self._trim()
        if self._theta == _WHOLE:
            return len(self._hashes)
        return len(self._hashes) * (1 << 63) // self._theta

    def to_bytes(self) -> bytes:
        """The compact form, with hashes in order."""
        self._trim()
        count, is_exact = len(self._hashes), self._theta == _WHOLE
        flags, longs = _FLAGS, 2 if is_exact else 3
        if self._empty:
            flags, longs = flags | _EMPTY, 1
        elif is_exact and count == 1:
            flags, longs = flags | _SINGLE, 1
        parts = [bytes((longs, _VERSION, _COMPACT_FAMILY, 0, 0, flags)), _SEED_HASH]
        if longs > 1:
            parts += [count.to_bytes(4, "little"), b"\0\0\x80\x3f"]  # sampled in full: 1.0
        if longs > 2:
            parts.append(self._theta.to_bytes(8, "little"))
        parts += [each.to_bytes(8, "little") for each in sorted(self._hashes)]
        return b"".join(parts)


# ------------------------------------------------------------------ distinct values


BLOB_TYPE: Final = "apache-datasketches-theta-v1"
_UNSKETCHED: Final = (
    t.UnknownType, t.VariantType, t.GeometryType, t.GeographyType, t.StructType, t.ListType,
    t.MapType,
)  # fmt: skip


def columns_to_sketch(
    table: Table, snapshot: Snapshot, names: Sequence[str] | None
) -> tuple[t.NestedField, ...]:
    """The columns with these names; by default all whose type has an order, nested ones excluded.

    Raises ColumnNotFoundError, NotSupportedError.
    """
    schema = table.metadata.schema_of(snapshot)
    if names is None:
        return tuple(each for each in schema.fields if not isinstance(each.type, _UNSKETCHED))
    found = []
    for name in dict.fromkeys(names):
        column = schema.find_column(name)
        if column is None:
            known = [each.name for each in schema.fields]
            raise ColumnNotFoundError(name, table=table.name, similar=similar_names(name, known))
        if isinstance(column.type, _UNSKETCHED):
            raise NotSupportedError(
                f"not supported: distinct values of column {name} of type {column.type}"
            )
        found.append(column)
    return tuple(found)


def compute_table_statistics(
    catalog: Catalog,
    table: Table,
    snapshot: Snapshot,
    columns: Sequence[t.NestedField],
    query: QueryContext,
    created_by: str,
) -> str:
    """Read the live rows of a snapshot, write the sketches of the columns, and set the file.

    Returns its path. Raises ProgrammingError if there are no columns or the snapshot expired
    meanwhile, and what reading and commits raise.
    """
    if not columns:
        raise ProgrammingError(f"{table.name} has no column of which values can be counted")
    check_writable(table.storage)
    sketches = _sketches(table, snapshot, columns, query)
    blobs = [
        NewBlob(
            BLOB_TYPE,
            pa.Codec("zstd").compress(sketch.to_bytes(), asbytes=True),
            (column.field_id,),
            snapshot.snapshot_id,
            snapshot.sequence_number,
            {"ndv": str(sketch.estimate)},
            "zstd",
        )
        for column, sketch in zip(columns, sketches, strict=True)
    ]
    data, _, footer = puffin_bytes(blobs, created_by)
    folder = metadata_folder(table.metadata.location, table.metadata.properties)
    path = f"{folder}/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    with NewFile(table.storage, path) as file:
        file.write(data)
    statistics_file = {
        "snapshot-id": snapshot.snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": len(data),
        "file-footer-size-in-bytes": footer,
        "blob-metadata": [
            {
                "type": each.type,
                "snapshot-id": each.snapshot_id,
                "sequence-number": each.sequence_number,
                "fields": [*each.fields],
                "properties": dict(each.properties),
            }
            for each in blobs
        ],
    }
    set_statistics(catalog, table, snapshot, path, SetStatistics(statistics_file), query)
    return path


def _sketches(
    table: Table, snapshot: Snapshot, columns: Sequence[t.NestedField], query: QueryContext
) -> list[ThetaSketch]:
    schema = table.metadata.schema_of(snapshot)
    planned = plan(TableScan(table, snapshot, schema, Schema(tuple(columns))), query)
    sketches = [ThetaSketch() for _ in columns]
    for number, task in enumerate(planned.tasks):
        for batch in read_task(task, query):
            for column, values, sketch in zip(columns, batch.columns, sketches, strict=True):
                # Most values repeat; each distinct one is hashed once per batch.
                distinct = pc.unique(internal_array(values, column.type))
                sketch.update(
                    encode_bound(column.type, each)
                    for each in distinct.to_pylist()
                    if each is not None
                )
        query.report(Progress("counting", number + 1, len(planned.tasks)))
    return sketches
