"""What a table is like in numbers: promised before a run, and counted again after it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.health.compaction import Compaction
from icesql.health.facts import Facts
from icesql.health.live_files import live_files


class Measures(Struct, frozen=True):
    """Of the current snapshot, but ``snapshots``, which are those of the table."""

    data_files: int = 0
    data_bytes: int = 0
    delete_files: int = 0
    equality_delete_files: int = 0
    manifests: int = 0
    snapshots: int = 0

    def to_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


def facts_of_files(parts: Sequence[str], table: Table, query: QueryContext) -> Facts:
    """What the doctor knows of a table without the bounds of its columns.

    Raises errors of stores, and CorruptFileError.
    """
    return Facts(tuple(parts), table, (), live_files(table, (), query), Compaction(table, query))


def measures(facts: Facts) -> Measures:
    """The numbers of a table."""
    files = facts.files
    return Measures(
        files.count, sum(files.bytes), files.deletes, files.equality, len(files.manifests),
        len(facts.table.metadata.snapshots),
    )  # fmt: skip
