"""Position delete files of v2 tables: which rows of a data file are gone."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.bound_values import encode_bound
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage
from icesql.write.locations import data_locations, partition_path
from icesql.write.metrics_config import FULL
from icesql.write.options import write_options
from icesql.write.parquet_file import FileShape, ParquetFile

SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))


def write_position_deletes(
    metadata: TableMetadata,
    storage: Storage,
    data_file: DataFile,
    positions: Sequence[int] | npt.NDArray[np.int64],
    *,
    operation: str | None = None,
    number: int = 0,
) -> DataFile:
    """Write the delete file of one data file and describe it.

    ``positions`` count the rows of the file from 0; they are sorted and made distinct here. The
    delete file has the spec and partition of the data file, whatever the table's are now. Raises
    ValueError without a position, OperationalError.
    """
    rows = np.unique(np.asarray(positions, np.int64))
    if not len(rows) or rows[0] < 0:
        raise ValueError("a delete file needs positions from 0")
    options = write_options(metadata.properties, deletes=True)
    modes = {DELETE_FILE_PATH.field_id: FULL, DELETE_POS.field_id: FULL}
    shape = FileShape.of(SCHEMA, modes, options, {"delete-type": "position"})
    spec = metadata.specs[data_file.spec_id]
    types = partition_types(spec, metadata.file_schema)
    folder = partition_path(spec, metadata.file_schema, types, data_file.partition)
    name = f"{number:05d}-0-{operation or uuid.uuid4()}-00001-deletes.parquet"
    file = ParquetFile(storage, data_locations(metadata).path(name, folder), shape)
    try:
        paths = pa.repeat(pa.scalar(data_file.path, pa.string()), len(rows))
        file.write(pa.table([paths, pa.array(rows, pa.int64())], schema=shape.arrow))
        written = file.finish()
    except BaseException:
        file.abandon()
        raise
    return DataFile(
        FileContent.POSITION_DELETES,
        written.path,
        "PARQUET",
        data_file.spec_id,
        data_file.partition,
        written.rows,
        written.size,
        column_sizes=written.metrics.column_sizes,
        lower_bounds=_bounds(data_file.path, int(rows[0])),
        upper_bounds=_bounds(data_file.path, int(rows[-1])),
        split_offsets=written.metrics.split_offsets,
        referenced_data_file=data_file.path,
    )


def _bounds(path: str, position: int) -> dict[int, bytes]:
    return {
        DELETE_FILE_PATH.field_id: encode_bound(t.STRING, path),
        DELETE_POS.field_id: encode_bound(t.LONG, position),
    }
