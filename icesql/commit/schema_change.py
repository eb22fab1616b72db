"""Columns that come to a table in the commit of the rows that have them.

Another writer may add or rename columns meanwhile. The change is made again of the schema that it
left, and has to give every column the id by which the files of the new rows know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import is_same, now_ms, refreshed
from icesql.commit.change import MakeUpdates
from icesql.errors import CommitConflictError, StorageError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import metadata_document, parse_metadata
from icesql.iceberg.schema import Schema
from icesql.storage.open import METADATA_BYTES

# A table after changes that no catalog knows of yet.

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


class SchemaChange(Struct, frozen=True):
    """``make`` gives the updates that change the columns of a table, none where it has them.

    ``planned`` is the schema that the new files were written in.
    """

    make: MakeUpdates
    planned: Schema

    def applied(self, base: Table, moment: int) -> tuple[Table, Sequence[Update]]:
        """The table after the change, in memory, and the updates that make it.

        Raises what ``make`` raises, and CommitConflictError where a column got another id.
        """
        updates = self.make(base.metadata)
        after = applied(base, updates, moment) if updates else base
        given = dict(_paths(after.metadata.schema.fields))
        for path, field in _paths(self.planned.fields):
            other = given.get(path)
            if other is not None and other.field_id != field.field_id:
                raise CommitConflictError(
                    f"the columns of {base.name} changed since the statement looked at them: "
                    f'"{".".join(path)}" has another field id; nothing was changed, run the '
                    "statement again"
                )
        return after, updates


def planned_change(table: Table, make: MakeUpdates) -> tuple[Table, SchemaChange | None]:
    """The table with the columns that ``make`` adds, and what a commit needs to do the same.

    None where the table has them. Raises what ``make`` raises.
    """
    updates = make(table.metadata)
    if not updates:
        return table, None
    after = applied(table, updates, max(now_ms(), table.metadata.last_updated_ms))
    return after, SchemaChange(make, after.metadata.schema)


def _paths(
    fields: Sequence[t.NestedField], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], t.NestedField]]:
    """Every field by its names in lower case, from the outermost."""
    for field in fields:
        path = (*before, field.name.lower())
        yield path, field
        yield from _paths(t.children(field.type), path)
