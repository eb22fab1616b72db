"""Changes of table metadata only: schema, partitioning, properties, branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import field

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.outcomes.requests import changes_nothing
from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.table_metadata import TableMetadata

# The result of a commit.


class CommitResult(Frozen):
    """The table after a commit.

    ``snapshot_id`` and ``summary`` (with its "operation") are those of the new snapshot; None and
    empty if the commit added none, or there was nothing to commit.
    """

    table: Table
    snapshot_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata_location(self) -> str:
        """The metadata file of the table after the commit."""
        return self.table.metadata_location


MakeUpdates = Callable[[TableMetadata], Sequence[Update]]


def change_table(
    catalog: Catalog,
    table: Table,
    make_updates: MakeUpdates,
    *,
    files: Sequence[str] = (),
    query: QueryContext | None = None,
) -> CommitResult:
    """Apply the updates that ``make_updates`` returns for the table's metadata, in one commit.

    It is called again with the new metadata whenever another writer was first, so it must depend
    only on its argument; it may raise to refuse the change. Without updates nothing is committed.
    ``files`` are files that the updates name; the caller writes them, and removes them on failure.
    Raises as ``commit_append`` does.
    """
    change = _MetadataChange(make_updates, tuple(files))
    return CommitResult(commit(catalog, table, change, query or QueryContext()))


class _MetadataChange(Frozen):
    """An operation without a snapshot; it can be made again from any later state of the table."""

    make: MakeUpdates
    files: tuple[str, ...]
    snapshot_id: None = None
    reapplies: bool = True

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        updates = tuple(self.make(base.metadata))
        return updates if updates and not changes_nothing(base, updates, now_ms) else ()

    def succeeded(self, table: Table) -> None:
        """Does nothing: there are no files besides the metadata."""

    def failed(self) -> None:
        """Does nothing: there are no files besides the metadata."""
