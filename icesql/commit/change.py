"""Changes of a table that touch no rows: schema, partitioning, properties, branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.outcomes.requests import changes_nothing
from icesql.context import QueryContext
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.table_metadata import TableMetadata

# The result of a commit.


class CommitResult(Struct, frozen=True):
    """The table after a commit.

    ``snapshot_id`` and ``summary`` (with its "operation") are those of the snapshot that was
    made; None and empty where none was needed, or nothing was to be done.
    """

    table: Table
    snapshot_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata_location(self) -> str:
        """The metadata file that the table was read from after the commit."""
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
    """Apply what ``make_updates`` makes of the table's metadata, in one commit.

    It is called again with what other writers left, whenever they were first, so it looks at
    nothing but the metadata that it is given; it may raise to refuse the change. Without updates
    nothing is committed. ``files`` are those that the updates name, which the caller wrote and
    removes. Raises as ``commit_append`` does.
    """
    after = commit(catalog, table, _MetadataChange(make_updates, files), query or QueryContext())
    return CommitResult(after)


class _MetadataChange:
    """An operation without files."""

    snapshot_id = None
    # Another attempt makes it of whatever there is.
    reapplies = True

    def __init__(self, make_updates: MakeUpdates, files: Sequence[str]) -> None:
        self._make, self.files = make_updates, tuple(files)

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        updates = tuple(self._make(base.metadata))
        return updates if updates and not changes_nothing(base, updates, now_ms) else ()

    def succeeded(self, table: Table) -> None:
        """Nothing was written beside the metadata."""

    def failed(self) -> None:
        """Nothing was written beside the metadata."""
