"""Columns that come to a table in the commit of the rows that have them.

Another writer may add or rename columns meanwhile. The change is made again of the schema that it
left, and has to give every column the id by which the files of the new rows know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from icesql.catalog.table import Table
from icesql.commit.attempts import now_ms
from icesql.commit.change import MakeUpdates
from icesql.commit.in_memory import applied
from icesql.errors import CommitConflictError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.schema import Schema


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
