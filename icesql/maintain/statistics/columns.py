"""Count the distinct values of a snapshot's columns: theta sketches in a Puffin file.

Source: Java ``ComputeTableStatsSparkAction`` and ``NDVSketchUtil``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icesql.catalog.table import Catalog, Table
from icesql.context import Progress, QueryContext
from icesql.errors import ColumnNotFoundError, NotSupportedError, ProgrammingError, similar_names
from icesql.iceberg import types as t
from icesql.iceberg.bound_values import encode_bound
from icesql.iceberg.metadata.changes.updates import SetStatistics
from icesql.iceberg.metadata.file_names import metadata_folder
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.puffin.writer import NewBlob, puffin_bytes
from icesql.iceberg.schema import Schema
from icesql.maintain.statistics.partitions import set_statistics
from icesql.maintain.statistics.theta import ThetaSketch
from icesql.read.task import read_task
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.storage.new_file import NewFile, check_writable
from icesql.write.partition.partition_values import internal_array

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
