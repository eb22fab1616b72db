"""Write position delete files of v2 tables: the deleted rows of data files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from icesql.iceberg import types as t
from icesql.iceberg.bound_values import encode_bound
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage
from icesql.write.deletion_vectors import as_bitmap, write_deletion_vector
from icesql.write.locations import data_locations, partition_path
from icesql.write.metrics_config import FULL
from icesql.write.options import write_options
from icesql.write.parquet_file import FileShape, ParquetFile

_ROWS_AT_ONCE: Final = 1 << 18

SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))


def write_deletes(
    metadata: TableMetadata,
    storage: Storage,
    deleted: Sequence[tuple[DataFile, npt.NDArray[np.int64]]],
    operation: str | None = None,
    number: int = 0,
) -> DataFile:
    """Write the deletes of data files as the format version has them, and describe them.

    A deletion vector of one data file from version 3 on, else a position delete file of one or of
    several. Positions are sorted.
    """
    name = f"{number:05d}-0-{operation or uuid.uuid4()}-00001-deletes"
    if len(deleted) > 1:
        return write_partition_deletes(metadata, storage, deleted, name)
    ((file, positions),) = deleted
    if metadata.format_version > 2:
        return write_deletion_vector(metadata, storage, file, as_bitmap(positions), name)
    return write_position_deletes(metadata, storage, file, positions, name)


def write_position_deletes(
    metadata: TableMetadata,
    storage: Storage,
    data_file: DataFile,
    positions: Sequence[int] | npt.NDArray[np.int64],
    name: str,
) -> DataFile:
    """Write the delete file of one data file and describe it.

    ``positions`` count the rows of the file from 0; this function sorts them and removes
    duplicates. The delete file has the spec and partition of the data file, not the table's current
    spec. Raises ValueError without positions, OperationalError.
    """
    rows = np.unique(np.asarray(positions, np.int64))
    if not len(rows) or rows[0] < 0:
        raise ValueError("a delete file needs positions from 0")
    groups = _row_groups(data_file.path, rows)
    written = _write(metadata, storage, data_file, groups, name)
    return replace(
        written,
        lower_bounds=_bounds(data_file.path, int(rows[0])),
        upper_bounds=_bounds(data_file.path, int(rows[-1])),
        referenced_data_file=data_file.path,
    )


def write_partition_deletes(
    metadata: TableMetadata,
    storage: Storage,
    deleted: Sequence[tuple[DataFile, npt.NDArray[np.int64]]],
    name: str,
) -> DataFile:
    """Write one delete file for several data files of a partition and describe it.

    The positions of each are sorted and distinct. The entry does not identify the data files: it
    has no bounds, as in Java. Raises OperationalError.
    """
    first = deleted[0][0]
    ordered = sorted(deleted, key=lambda each: each[0].path.encode())
    paths = pa.concat_arrays(
        [pa.repeat(pa.scalar(file.path, pa.string()), len(rows)) for file, rows in ordered]
    )
    positions = pa.array(np.concatenate([rows for _, rows in ordered]), pa.int64())
    return _write(metadata, storage, first, [(paths, positions)], name)


def _write(
    metadata: TableMetadata,
    storage: Storage,
    data_file: DataFile,
    groups: Iterable[tuple[pa.Array, pa.Array]],
    name: str,
) -> DataFile:
    """Write a delete file in the partition of a data file; ``groups`` are paths and positions."""
    options = write_options(metadata.properties, deletes=True)
    modes = dict.fromkeys(SCHEMA.field_by_id, FULL)
    shape = FileShape.of(SCHEMA, modes, options, {"delete-type": "position"})
    spec = metadata.specs[data_file.spec_id]
    types = partition_types(spec, metadata.file_schema)
    folder = partition_path(spec, metadata.file_schema, types, data_file.partition)
    path = data_locations(metadata).path(f"{name}.parquet", folder)
    with ParquetFile(storage, path, shape) as file:
        for columns in groups:
            file.write(pa.table(list(columns), schema=shape.arrow))
        written = file.finish()
    return DataFile(
        FileContent.POSITION_DELETES,
        written.path,
        "PARQUET",
        data_file.spec_id,
        data_file.partition,
        written.rows,
        written.size,
        column_sizes=written.metrics.column_sizes,
        split_offsets=written.metrics.split_offsets,
    )


def _row_groups(path: str, rows: npt.NDArray[np.int64]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The columns for one data file, in row groups whose repeated paths fit in memory."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        yield pa.repeat(pa.scalar(path, pa.string()), len(part)), pa.array(part, pa.int64())


def _bounds(path: str, position: int) -> dict[int, bytes]:
    return {
        DELETE_FILE_PATH.field_id: encode_bound(t.STRING, path),
        DELETE_POS.field_id: encode_bound(t.LONG, position),
    }
