"""Writes the deleted rows of data files: position delete files of v2, deletion vectors of v3."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from icesql.iceberg import types as t
from icesql.iceberg.bounds import encode_bound
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.puffin import deletion_vector_blob, puffin_bytes
from icesql.iceberg.schema import DELETE_FILE_PATH, DELETE_POS, Schema
from icesql.read.columns.numbers import from_numbers
from icesql.storage.new_files import NewFile
from icesql.storage.open import Storage
from icesql.write.metrics import FULL
from icesql.write.options import data_locations, partition_path, write_options
from icesql.write.parquet_file import FileShape, ParquetFile

if TYPE_CHECKING:
    from pyroaring import BitMap64


# ------------------------------------------------------------------ deletion vectors


def as_bitmap(positions: npt.NDArray[np.int64]) -> BitMap64:
    """Positions from 0 as a bitmap."""
    from pyroaring import BitMap64

    return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))


def write_deletion_vector(
    metadata: TableMetadata,
    storage: Storage,
    data_file: DataFile,
    positions: BitMap64,
    name: str,
) -> DataFile:
    """Write the vector of one data file, alone in a Puffin file, and describe it.

    ``positions`` are all deleted rows, from 0, including those of an earlier vector. Alone, because
    other writers' expiry deletes a Puffin file once one of its vectors is replaced. Raises
    ValueError without positions, OperationalError.
    """
    if not len(positions):
        raise ValueError("a deletion vector needs positions")
    data, (place,), _ = puffin_bytes([deletion_vector_blob(data_file.path, positions)], "icesql")
    path = data_locations(metadata).path(f"{name}.puffin")
    with NewFile(storage, path) as file:
        file.write(data)
    return DataFile(
        FileContent.POSITION_DELETES,
        path,
        "PUFFIN",
        data_file.spec_id,
        data_file.partition,
        len(positions),
        len(data),
        referenced_data_file=data_file.path,
        content_offset=place.offset,
        content_size_in_bytes=place.length,
    )


# ------------------------------------------------------------------ position delete files


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
    several.
    """
    name = f"{number:05d}-0-{operation or uuid.uuid4()}-00001-deletes"
    if len(deleted) == 1 and metadata.format_version > 2:
        ((file, positions),) = deleted
        return write_deletion_vector(metadata, storage, file, as_bitmap(positions), name)
    return write_position_deletes(metadata, storage, deleted, name)


def write_position_deletes(
    metadata: TableMetadata,
    storage: Storage,
    deleted: Sequence[tuple[DataFile, npt.NDArray[np.int64]]],
    name: str,
) -> DataFile:
    """Write the delete file of data files of one partition and describe it.

    Positions count the rows of a file from 0; this function sorts them and removes duplicates. The
    delete file has the spec and partition of the data files, not the table's current spec. The
    entry names a single data file and has its bounds; of several it has none, as in Java. Raises
    ValueError without positions, OperationalError.
    """
    ordered = sorted(deleted, key=lambda each: each[0].path.encode())
    positions = [np.unique(rows) for _, rows in ordered]
    if not all(len(rows) and rows[0] >= 0 for rows in positions):
        raise ValueError("a delete file needs positions from 0")
    data_file = ordered[0][0]
    options = write_options(metadata.properties, deletes=True)
    modes = dict.fromkeys(SCHEMA.field_by_id, FULL)
    shape = FileShape(SCHEMA, modes, options, {"delete-type": "position"})
    spec = metadata.specs[data_file.spec_id]
    types = partition_types(spec, metadata.file_schema)
    folder = partition_path(spec, metadata.file_schema, types, data_file.partition)
    path = data_locations(metadata).path(f"{name}.parquet", folder)
    paths = pa.array([file.path for file, _ in ordered], pa.string())
    numbers = np.repeat(np.arange(len(ordered)), [*map(len, positions)])
    whole = np.concatenate(positions)
    with ParquetFile(storage, path, shape) as file:
        # In row groups whose repeated paths fit in memory.
        for first in range(0, len(whole), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            columns = paths.take(from_numbers(numbers[part])), from_numbers(whole[part])
            file.write(pa.table([*columns], schema=shape.arrow))
        written = file.finish()
    made = DataFile(
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
    if len(ordered) > 1:
        return made
    return replace(
        made,
        lower_bounds=_bounds(data_file.path, int(whole[0])),
        upper_bounds=_bounds(data_file.path, int(whole[-1])),
        referenced_data_file=data_file.path,
    )


def _bounds(path: str, position: int) -> dict[int, bytes]:
    return {
        DELETE_FILE_PATH.field_id: encode_bound(t.STRING, path),
        DELETE_POS.field_id: encode_bound(t.LONG, position),
    }
