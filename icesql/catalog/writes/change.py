"""A change of one table that a catalog applies as a whole or not at all, and how that ended."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.requirements import Requirement
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import metadata_document
from icesql.storage import sizes
from icesql.storage.new_file import NewFile
from icesql.storage.open import Storage


class TableChange(Struct, frozen=True):
    """Updates of a table, in their order, and what has to hold of it.

    ``storage`` reads and writes the table's files; ``now_ms`` (since 1970, UTC) is the time of the
    change. Catalogs that keep metadata in files write the next one; a REST catalog is sent the
    updates and requirements.
    """

    updates: tuple[Update, ...]
    requirements: tuple[Requirement, ...]
    storage: Storage
    now_ms: int

    def document(self, base_location: str | None) -> dict[str, Any]:
        """The JSON that the change makes of a metadata file; None creates the table.

        Raises as ``apply_updates`` does.
        """
        base = None
        if base_location is not None:
            data = self.storage.read(base_location, most=sizes.METADATA)
            base = metadata_document(data, base_location)
        return apply_updates(base, self.updates, now_ms=self.now_ms, base_location=base_location)

    def write(self, document: dict[str, Any], path: str, *, gzipped: bool) -> None:
        """Write a metadata file under a new name. Raises OperationalError."""
        with NewFile(self.storage, path) as file:
            file.write(metadata_bytes(document, gzipped=gzipped))


class Done(Struct, frozen=True):
    """The change was applied; ``location`` is the metadata file that is current by it."""

    location: str


class Conflict(Struct, frozen=True):
    """The change was not applied, for certain: the table is not what the change was made for."""

    reason: str


class Unknown(Struct, frozen=True):
    """The change was sent, and may be applied, or be so later.

    ``location`` is its metadata file where the catalog is not the one who names it.
    """

    reason: str
    location: str | None = None


Swap = Done | Conflict | Unknown


class Place(Struct, frozen=True):
    """Where a new table goes: its location, and what writes there."""

    location: str
    storage: Storage
