"""Facts about a table, read once from its metadata, with the policy for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.health.live_files import LiveFiles, live_files
from icesql.health.need import Need
from icesql.health.policy import TablePolicy
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.maintain.rewrite.plan import (
    RewritePlan,
    RewriteRequest,
    group_files,
    plan_rewrite,
    rewrite_options,
)
from icesql.scan.tasks import FileScanTask
from icesql.sql.writes.procedure_calls import CallProcedure
from icesql.write.options import check_table, write_options

# ------------------------------------------------------------------ plans of compactions


class Sizes(Frozen):
    """How many data files a compaction reads, and about how many it writes.

    ``older`` of the files read have older partition specs: their rows go to partitions that
    metadata does not show, so their effect cannot be predicted.
    """

    read: int
    made: int
    older: int

    @staticmethod
    def of(plan: RewritePlan) -> Sizes:
        """The sizes of a plan."""
        return Sizes(
            sum(len(each.files) for each in plan.groups),
            sum(each.output_files for each in plan.groups),
            sum(len(each.files) for each in plan.groups if each.partition is None),
        )


class Compaction(Struct):
    """Plans compactions of ``table``; ``first`` is its first plan."""

    table: Table
    first: RewritePlan | None = None

    @property
    def refusal(self) -> str:
        """Why icesql cannot write files of the table; "" if it can."""
        try:
            check_table(self.table.metadata)
            write_options(self.table.metadata.properties)
        except Error as error:
            return str(error)
        return ""

    def plan(self, options: Mapping[str, str], query: QueryContext) -> RewritePlan:
        """Plan a compaction with these options. Raises what planning raises."""
        metadata = self.table.metadata
        request = RewriteRequest(rewrite_options(options, metadata))
        first = self.first
        if first is None:
            first = self.first = plan_rewrite(self.table, request, query)
        if first.request == request:
            return first
        files = all_files(first)
        listed = Counter(each.data_file.path for each in files)
        again = {path for path, count in listed.items() if count > 1}
        spec = metadata.spec
        found = group_files(files, spec.spec_id, len(spec.fields), request.options, again)
        return replace(first, request=request, groups=found.groups, left=found.left)


def all_files(plan: RewritePlan) -> list[FileScanTask]:
    """The files that a plan rewrites, and those that it leaves."""
    read = [task for group in plan.groups for task in group.files]
    return [*read, *plan.left]


# ------------------------------------------------------------------ facts


T = TypeVar("T")

# Types whose order is that of their bounds, and by which users look rows up.
_ORDERED: Final = re.compile(r"int|long|float|double|decimal.*|date|timestamp.*|string|uuid|time")


class Performed(Frozen):
    """The result of a statement: its rows by column name, and its notes."""

    rows: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    snapshot_id: int | None = None


# Runs a statement, and adds the keys to the summaries of its snapshots.
Perform = Callable[[CallProcedure, Mapping[str, str]], Performed]


class Column(Frozen):
    """A top-level column; ``type`` is the name of its Iceberg type."""

    name: str
    type: str
    is_identity: bool = False


class Facts(Frozen):
    """``parts`` is the table's name; a rollback to a snapshot of ``last_good`` repairs damage.

    ``perform`` runs a statement; ``now_ms`` is since 1970. ``commits``: earlier actions will
    commit before the next action, so that the current head will be an older snapshot then. No data
    file is opened.
    """

    parts: tuple[str, ...]
    table: Table
    files: LiveFiles
    compaction: Compaction
    query: QueryContext
    perform: Perform
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

    def explain(self, need: Need) -> Performed:
        """The rows of EXPLAIN of a call, and its notes."""
        return self.perform(need.call(self.parts, explain=True), {})


def tried(function: Callable[..., T], *given: Any) -> T | None:
    """The result of a call, None if the table or catalog refuses it."""
    try:
        return function(*given)
    except Error:
        return None


def facts_of(
    parts: Sequence[str],
    table: Table,
    query: QueryContext,
    perform: Perform,
    policy: TablePolicy,
    now_ms: int,
    *,
    last_good: frozenset[int] = frozenset(),
    bounds: bool = False,
) -> Facts:
    """Read all facts; those about columns only with ``bounds``.

    Raises errors of stores, and CorruptFileError.
    """
    metadata = table.metadata
    identity = {
        each.source_id for each in metadata.spec.fields if str(each.transform) == "identity"
    }
    columns = tuple(
        Column(each.name, str(each.type), each.field_id in identity)
        for each in (metadata.schema.fields if bounds else ())
    )
    ordered = [each.name for each in columns if _ORDERED.fullmatch(each.type)]
    files = live_files(table, ordered, query)
    return Facts(
        tuple(parts), table, files, Compaction(table), query, perform, policy, now_ms, columns,
        last_good,
    )  # fmt: skip
