"""Set a written statistics file as the one of its snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.catalog.table import Catalog, Table
from icesql.commit.change import change_table
from icesql.context import QueryContext
from icesql.errors import CommitStateUnknownError, ProgrammingError
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.uncommitted import Uncommitted


def set_statistics(
    catalog: Catalog,
    table: Table,
    snapshot: Snapshot,
    path: str,
    update: Update,
    query: QueryContext,
) -> None:
    """Commit ``update``, which names the file at ``path``; it is removed where that failed.

    Raises ProgrammingError where the snapshot expired meanwhile, and what commits do.
    """

    def updates(base: TableMetadata) -> Sequence[Update]:
        if base.snapshot(snapshot.snapshot_id) is None:
            raise ProgrammingError(f"snapshot {snapshot.snapshot_id} was expired meanwhile")
        return (update,)

    with Uncommitted(table.storage) as new:
        new.take([path])
        try:
            change_table(catalog, table, updates, files=[path], query=query)
        except CommitStateUnknownError:
            new.hand_over()  # the table may name it
            raise
        new.hand_over()
