"""Plan a rewrite: group the files of a branch's head. Reads only metadata."""

from __future__ import annotations

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.maintain.rewrite.grouping import FileGroup, group_files
from icesql.maintain.rewrite.options import RewriteOptions
from icesql.maintain.rewrite.row_order import RowOrder
from icesql.scan.plan import ScanPlan
from icesql.scan.planner import plan_snapshot
from icesql.scan.tasks.task import FileScanTask, ScanContext
from icesql.write.parquet_schema import written_schema


class RewriteRequest(Frozen):
    """A request to rewrite whole files of ``branch`` that may have a row of ``row_filter``.

    ``row_filter`` names fields of the current schema. ``order`` is None for bin-packing, which
    keeps the order of the rows.
    """

    options: RewriteOptions
    order: RowOrder | None = None
    row_filter: Predicate = ALWAYS_TRUE
    branch: str = MAIN


class RewritePlan(Frozen):
    """The groups of files of snapshot ``start`` to rewrite, and the files left alone.

    ``context`` is for reading them: all columns, with row lineage in version 3.
    ``schema`` has the columns of the new files. ``start`` is None for an empty branch.
    """

    table: Table
    request: RewriteRequest
    start: Snapshot | None
    context: ScanContext
    schema: Schema
    groups: tuple[FileGroup, ...]
    left: tuple[FileScanTask, ...]

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of the new files."""
        metadata, spec_id = self.table.metadata, self.request.options.output_spec_id
        return metadata.spec if spec_id is None else metadata.specs[spec_id]

    @property
    def bytes(self) -> int:
        """The size of the data files to rewrite."""
        return sum(each.bytes for each in self.groups)


def plan_rewrite(table: Table, request: RewriteRequest, query: QueryContext) -> RewritePlan:
    """Group the files of a branch's head.

    Raises ProgrammingError for a missing branch, and what planning a scan raises.
    """
    metadata = table.metadata
    start = branch_head(metadata, request.branch)
    schema, spec = written_schema(metadata), metadata.spec
    found, files = whole_files(table, start, query, request.row_filter, schema)
    grouped = group_files(
        files, spec.spec_id, len(spec.fields), request.options, frozenset(found.repeated)
    )
    return RewritePlan(table, request, start, found.context, schema, grouped.groups, grouped.left)


def whole_files(
    table: Table,
    start: Snapshot | None,
    query: QueryContext,
    row_filter: Predicate,
    projection: Schema | None = None,
) -> tuple[ScanPlan, list[FileScanTask]]:
    """The files of a snapshot that may have rows of a filter, with all deletes of their rows.

    They have no residual of the filter. The catalog's scan planning gives no sequence numbers.
    """
    known = replace(table, planning=None)
    found = plan_snapshot(known, start, query, row_filter, projection, all_deletes=True)
    return found, [replace(each, residual=ALWAYS_TRUE) for each in found.files]


def branch_head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The head of a branch; None if it has no snapshot. Raises ProgrammingError."""
    ref = metadata.refs.get(branch)
    if ref is None:
        if branch == MAIN:
            return metadata.current_snapshot
        raise ProgrammingError(f"the table has no branch {branch!r}; nothing was rewritten")
    if ref.kind == "tag":
        raise ProgrammingError(f"{branch!r} is a tag; only files of a branch can be rewritten")
    return metadata.snapshots[ref.snapshot_id]
