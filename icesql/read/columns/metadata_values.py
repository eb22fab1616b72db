"""Metadata columns of a file: ``_file``, ``_pos``, ``_partition``, row lineage and the others.

Row lineage: a stored value wins row by row, else it is derived; both columns are NULL in a file
without ``first_row_id``. Source: Iceberg spec, "Reserved Field IDs" and "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.frozen import Frozen
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SNAPSHOT_ID,
    SPEC_ID,
)
from icesql.iceberg.types import NestedField, StructType
from icesql.read.columns.projection import ColumnReader
from icesql.read.columns.values import one_value, repeated
from icesql.read.formats.reader import FileBatch
from icesql.scan.tasks.task import FileScanTask, ScanContext

Values = Callable[[FileBatch, "pa.Array | None", "npt.NDArray[np.bool_] | None"], pa.Array]


class MetadataColumn(Frozen):
    """One metadata column of one file; ``reader`` is the stored column it falls back from."""

    values: Values
    reader: ColumnReader | None = None


def metadata_column(
    column: NestedField,
    task: FileScanTask,
    context: ScanContext,
    reader: Callable[[NestedField], ColumnReader],
) -> MetadataColumn:
    """The source of a metadata column of the projection for the task's file."""
    file = task.data_file
    match column.field_id:
        case FILE.field_id:
            return _constant(file.path, column)
        case POS.field_id:
            return MetadataColumn(lambda batch, stored, deleted: _positions(batch))
        case DELETED.field_id:
            return MetadataColumn(_deleted)
        case SPEC_ID.field_id:
            return _constant(file.spec_id, column)
        case SNAPSHOT_ID.field_id:
            return _constant(file.snapshot_id, column)
        case ROW_ID.field_id:
            first_row_id = file.first_row_id
            if first_row_id is None:
                return _constant(None, column)
            return _stored_or(column, reader, lambda batch: pc.add(_positions(batch), first_row_id))
        case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            if file.first_row_id is None:
                return _constant(None, column)
            number = one_value(file.sequence_number, column.type)
            return _stored_or(column, reader, lambda batch: repeated(number, batch.count))
        case _:
            assert column.field_id == PARTITION_ID
            return _constant(_partition(task, context, column), column)


def _constant(value: Any, column: NestedField) -> MetadataColumn:
    single = one_value(value, column.type)
    return MetadataColumn(lambda batch, stored, deleted: repeated(single, batch.count))


def _stored_or(
    column: NestedField,
    reader: Callable[[NestedField], ColumnReader],
    derive: Callable[[FileBatch], pa.Array],
) -> MetadataColumn:
    def values(
        batch: FileBatch, stored: pa.Array | None, deleted: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        derived = derive(batch)
        return derived if stored is None else pc.coalesce(stored, derived)

    return MetadataColumn(values, reader(column))


def _positions(batch: FileBatch) -> pa.Array:
    return pa.array(np.arange(batch.first, batch.first + batch.count, dtype=np.int64))


def _deleted(
    batch: FileBatch, stored: pa.Array | None, deleted: npt.NDArray[np.bool_] | None
) -> pa.Array:
    return pa.array(np.zeros(batch.count, np.bool_) if deleted is None else deleted)


def _partition(
    task: FileScanTask, context: ScanContext, column: NestedField
) -> dict[int, Any] | None:
    """The file's partition values by partition field id; NULL for an unpartitioned table."""
    assert isinstance(column.type, StructType)
    if not column.type.fields:
        return None
    spec = context.specs[task.spec_id]
    return {
        each.field_id: None if value is UNSTORED else value
        for each, value in zip(spec.fields, task.data_file.partition, strict=False)
    }
