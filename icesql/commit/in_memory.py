"""A table after changes that no catalog knows of yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import is_same, refreshed
from icesql.errors import CommitConflictError, StorageError
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import metadata_document, parse_metadata
from icesql.storage.open import METADATA_BYTES

# How often a table is read again that others change meanwhile.
_LOOKS: Final = 20


def applied(table: Table, updates: Sequence[Update], moment: int) -> Table:
    """The table after updates, in memory alone. Raises as ``apply_updates``."""
    made = apply_updates(document_of(table), updates, now_ms=moment)
    metadata = parse_metadata(metadata_bytes(made), table.name)
    # Nobody but this connection could plan its scans.
    return replace(table, metadata=metadata, document=made, planning=None)


def as_it_is(catalog: Catalog, table: Table) -> Table:
    """The table now, with the JSON of its metadata: others may delete that file at any time."""
    for _ in range(_LOOKS):
        found = refreshed(catalog, table)
        try:
            return replace(found, document=document_of(found))
        except StorageError:
            if is_same(refreshed(catalog, table), found):
                raise
    raise CommitConflictError(
        f"{table.name} changes faster than it can be read; run the statement again"
    )


def document_of(table: Table) -> Mapping[str, Any]:
    """The JSON of the table's metadata. Raises StorageError where its file is gone."""
    if table.document is not None:
        return table.document
    data = table.storage.read(table.metadata_location, most=METADATA_BYTES)
    return metadata_document(data, table.metadata_location)
