"""Adds columns to a table in the same commit as the rows that use them.

Another writer may add or rename columns meanwhile. The change is then made again from the new
schema, and has to give every column the id that it has in the files of the new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import is_same, now_ms, refreshed
from icesql.commit.change import MakeUpdates
from icesql.commit.outcomes.requests import document_of
from icesql.errors import CommitConflictError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.schema import Schema

# A table after changes that are not yet committed.

# Most attempts to read a table that other writers change meanwhile.
_LOOKS: Final = 20


def applied(table: Table, updates: Sequence[Update], moment: int) -> Table:
    """The table after updates, in memory only. Raises as ``apply_updates``."""
    made = apply_updates(document_of(table), updates, now_ms=moment)
    metadata = parse_metadata(metadata_bytes(made), table.name)
    # The catalog does not know these changes, so it cannot plan scans.
    return replace(table, metadata=metadata, document=made, planning=None)


def as_it_is(catalog: Catalog, table: Table) -> Table:
    """The current table with the JSON of its metadata, whose file may be deleted at any time."""
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


class SchemaChange(Frozen):
    """``make`` returns the updates that add columns to a table; none if it has them already.

    ``planned`` is the schema with which the new files were written.
    """

    make: MakeUpdates
    planned: Schema

    def applied(self, base: Table, moment: int) -> tuple[Table, Sequence[Update]]:
        """The table after the change, in memory, and the updates that make it.

        Raises as ``make``, and CommitConflictError if a column got another id.
        """
        updates = self.make(base.metadata)
        after = applied(base, updates, moment) if updates else base
        given = dict(_paths(after.metadata.schema.fields))
        for path, column in _paths(self.planned.fields):
            other = given.get(path)
            if other is not None and other.field_id != column.field_id:
                raise CommitConflictError(
                    f"the columns of {base.name} changed since the statement looked at them: "
                    f'"{".".join(path)}" has another field id; nothing was changed, run the '
                    "statement again"
                )
        return after, updates


def planned_change(table: Table, make: MakeUpdates) -> tuple[Table, SchemaChange | None]:
    """The table with the columns that ``make`` adds, and the change to commit.

    The change is None if the table has them already. Raises as ``make``.
    """
    updates = make(table.metadata)
    if not updates:
        return table, None
    after = applied(table, updates, max(now_ms(), table.metadata.last_updated_ms))
    return after, SchemaChange(make, after.metadata.schema)


def _paths(
    fields: Sequence[t.NestedField], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], t.NestedField]]:
    """Every field with its path: lower-case names from the outermost field."""
    for column in fields:
        path = (*before, column.name.lower())
        yield path, column
        yield from _paths(t.children(column.type), path)
