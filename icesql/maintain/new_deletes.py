"""Delete files and vectors that a statement writes while it tries to commit."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from icesql.catalog.table import Table
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.deletes.vectors import Positions
from icesql.storage.new_file import remove_file
from icesql.storage.open import Storage
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

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # By the data file and a digest of the rows, which may be many.
        self._written: dict[tuple[str, int, bytes], DataFile] = {}
        self._by_tasks: list[DataFile] = []
        self._used: set[str] = set()

    def of(self, base: Table, file: DataFile, rows: Positions) -> DataFile:
        """The position deletes of sorted ``rows`` of a file, a vector in format version 3."""
        version = base.metadata.format_version
        key = file.path, version, blake2b(rows.tobytes(), digest_size=20).digest()
        if key not in self._written:
            self._written[key] = write_deletes(base.metadata, base.storage, file, rows)
        return self._written[key]

    def take(self, files: Iterable[DataFile]) -> None:
        """These were written by tasks, for the first attempt."""
        self._by_tasks += files

    def hand_over(self, files: Iterable[DataFile]) -> None:
        """These belong to the commit now, whatever becomes of it."""
        self._used.update(each.path for each in files)

    def remove_unused(self) -> None:
        """Remove those that no attempt got to hand over."""
        for each in (*self._by_tasks, *self._written.values()):
            if each.path not in self._used:
                remove_file(self._storage, each.path)
