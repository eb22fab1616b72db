"""Entries of a manifest that is written: added, carried over, or removed.

Source: Iceberg spec, "Manifests"; Java ``GenericManifestEntry`` and ``ManifestWriter``.
"""

from __future__ import annotations

from msgspec import Struct

from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING


class ManifestEntry(Struct, frozen=True):
    """A file and what became of it; None is inherited from where the manifest is listed.

    ``snapshot_id`` is the snapshot that added the file, of a DELETED entry the one that removed it.
    """

    status: int
    snapshot_id: int
    sequence_number: int | None
    file_sequence_number: int | None
    file: DataFile

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the table."""
        return self.status != DELETED


def added_entry(
    file: DataFile, snapshot_id: int, sequence_number: int | None = None
) -> ManifestEntry:
    """A new file. Its sequence number is inherited, so that a retry need not write it again.

    A rewrite that keeps the age of its rows gives ``sequence_number``.
    """
    return ManifestEntry(ADDED, snapshot_id, sequence_number, None, file)


def existing_entry(file: DataFile, snapshot_id: int) -> ManifestEntry:
    """A file of an older manifest, with all that it inherited there made explicit.

    ``snapshot_id`` stands for the adder where the old manifest does not know it.
    """
    adder = snapshot_id if file.snapshot_id is None else file.snapshot_id
    return ManifestEntry(EXISTING, adder, file.sequence_number, file.file_sequence_number, file)


def deleted_entry(file: DataFile, snapshot_id: int) -> ManifestEntry:
    """A file of an older manifest that snapshot ``snapshot_id`` removes."""
    return ManifestEntry(
        DELETED, snapshot_id, file.sequence_number, file.file_sequence_number, file
    )
