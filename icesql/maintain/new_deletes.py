"""Delete files and vectors that a statement writes while it tries to commit."""

from __future__ import annotations

from hashlib import blake2b

from icesql.catalog.table import Table
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.deletes.vectors import Positions
from icesql.storage.open import Storage
from icesql.storage.uncommitted import Uncommitted
from icesql.write.deletion_vectors import as_bitmap, write_deletion_vector
from icesql.write.position_deletes import write_position_deletes


def write_deletes(
    metadata: TableMetadata,
    storage: Storage,
    file: DataFile,
    rows: Positions,
    operation: str | None = None,
    number: int = 0,
) -> DataFile:
    """Write the position deletes of sorted ``rows`` of a file, a vector in format version 3."""
    if metadata.format_version > 2:
        return write_deletion_vector(
            metadata, storage, file, as_bitmap(rows), operation=operation, number=number
        )
    return write_position_deletes(metadata, storage, file, rows, operation=operation, number=number)


class NewDeletes:
    """Each is written once for all attempts that want the same rows of the same file deleted."""

    def __init__(self, new: Uncommitted) -> None:
        self._new = new
        # By the data file and a digest of the rows, which may be many.
        self._written: dict[tuple[str, int, bytes], DataFile] = {}

    def of(self, base: Table, file: DataFile, rows: Positions) -> DataFile:
        """The position deletes of sorted ``rows`` of a file, a vector in format version 3."""
        version = base.metadata.format_version
        key = file.path, version, blake2b(rows.tobytes(), digest_size=20).digest()
        if key not in self._written:
            made = write_deletes(base.metadata, base.storage, file, rows)
            self._new.take([made.path])
            self._written[key] = made
        return self._written[key]
