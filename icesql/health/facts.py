"""Facts about a table, read once from its metadata, with the policy for it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error
from icesql.health.compaction import Compaction
from icesql.health.live_files import LiveFiles, live_files
from icesql.health.need import Need
from icesql.health.policy import TablePolicy
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.maintain.rewrite.plan import RewritePlan

# Types whose order is that of their bounds, and by which users look rows up.
_ORDERED: Final = re.compile(r"int|long|float|double|decimal.*|date|timestamp.*|string|uuid|time")


class Answer(Struct, frozen=True):
    """The rows and notes of a statement."""

    rows: Sequence[tuple[Any, ...]]
    notes: Sequence[str] = ()


class Column(Struct, frozen=True):
    """A top-level column; ``type`` is the name of its Iceberg type."""

    name: str
    type: str
    is_identity: bool = False


class Facts(Struct, frozen=True):
    """``parts`` is the table's name; a rollback to a snapshot of ``last_good`` repairs damage.

    ``explain`` runs EXPLAIN of a call; ``now_ms`` is since 1970. ``commits``: earlier actions will
    commit before the next action, so that the current head will be an older snapshot then. No data
    file is opened.
    """

    parts: tuple[str, ...]
    table: Table
    files: LiveFiles
    compaction: Compaction
    query: QueryContext
    explain: Callable[[Need], Answer]
    policy: TablePolicy
    now_ms: int
    columns: tuple[Column, ...] = ()
    last_good: frozenset[int] = frozenset()
    commits: bool = False

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata."""
        return self.table.metadata

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.table.metadata.properties

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return self.table.metadata.format_version

    @property
    def measures(self) -> dict[str, int]:
        """Numbers of the current snapshot; ``snapshots`` counts those of the table."""
        files = self.files
        return {
            "data_files": files.count,
            "data_bytes": sum(files.bytes),
            "delete_files": files.deletes,
            "equality_delete_files": files.equality,
            "manifests": len(files.manifests),
            "snapshots": len(self.metadata.snapshots),
        }

    def plan(self, options: Mapping[str, str]) -> RewritePlan:
        """Plan a compaction with these options. Raises what planning raises."""
        return self.compaction.plan(options, self.query)

    def try_plan(self, options: Mapping[str, str]) -> RewritePlan | None:
        """As ``plan``, but None if planning fails, such as for an invalid property."""
        try:
            return self.plan(options)
        except Error:
            return None

    def try_explain(self, need: Need) -> Answer | None:
        """The answer of EXPLAIN; None if the table or catalog refuses the statement."""
        try:
            return self.explain(need)
        except Error:
            return None


def facts_of(
    parts: Sequence[str],
    table: Table,
    query: QueryContext,
    explain: Callable[[Need], Answer],
    last_good: frozenset[int] = frozenset(),
) -> Facts:
    """Read all facts, with the bounds of columns; the policy is by the table's properties.

    Raises errors of stores, and CorruptFileError.
    """
    metadata = table.metadata
    identity = {
        each.source_id for each in metadata.spec.fields if str(each.transform) == "identity"
    }
    columns = tuple(
        Column(each.name, str(each.type), each.field_id in identity)
        for each in metadata.schema.fields
    )
    ordered = [each.name for each in columns if _ORDERED.fullmatch(each.type)]
    policy = TablePolicy(wants_expiry=True)
    files = live_files(table, ordered, query)
    return Facts(
        tuple(parts), table, files, Compaction(table), query, explain, policy,
        time.time_ns() // 1_000_000, columns, last_good,
    )  # fmt: skip
