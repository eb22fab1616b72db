"""Write deletion vectors of v3 tables: the deleted rows of a data file."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.puffin.writer import deletion_vector_blob, puffin_bytes
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage
from icesql.write.locations import data_locations

if TYPE_CHECKING:
    from pyroaring import BitMap64


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
