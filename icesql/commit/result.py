"""The result of a commit."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from icesql.catalog.table import Table


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
