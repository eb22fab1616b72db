"""The data files of a branch that get new deletes, and the deletes that go: by metadata alone."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.files import file_key
from icesql.context import QueryContext
from icesql.errors import UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.iceberg.metadata_columns import POS, SNAPSHOT_ID
from icesql.iceberg.schema import Schema
from icesql.maintain.others import equality_deletes
from icesql.maintain.rewrite.plan import branch_head
from icesql.maintain.rewrite.task import read_live_rows
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import CombinedScanTask, FileScanTask, ScanContext, distinct_deletes
from icesql.storage.new_file import check_writable

# Bytes of memory for each row of a file: its mark, and its position once it is to be deleted.
_BYTES_OF_ROW: Final = 16


class DeletesPlan(Struct, frozen=True):
    """The data files of a branch's head with the deletes that are written anew.

    With ``keys`` these are equality deletes. ``looked_at`` are the keys of all data files that the
    condition asks for, but of those that the table lists more than once: no position tells one
    listing from another. Without keys they are the position delete files ``which``; each task has
    a ``group`` of them, of which its new deletes have the age, and where ``one_file`` is set, those
    of a group share a file. ``start`` is None for an empty branch.
    """

    table: Table
    branch: str
    start: Snapshot | None
    context: ScanContext
    tasks: tuple[FileScanTask, ...] = ()
    looked_at: frozenset[str] = frozenset()
    keys: bool = True
    which: tuple[DataFile, ...] = ()
    groups: tuple[int, ...] = ()
    ages: tuple[int, ...] = ()
    one_file: bool = False

    @property
    def deletes(self) -> tuple[DataFile, ...]:
        """The delete files that are written anew, each once."""
        if not self.keys:
            return self.which
        found = {
            file_key(each): each
            for each in distinct_deletes(self.tasks)
            if each.content is FileContent.EQUALITY_DELETES
        }
        return tuple(found.values())

    @property
    def bytes(self) -> int:
        """Of the data files."""
        return sum(each.length for each in self.tasks)


def plan_conversion(
    table: Table, query: QueryContext, *, branch: str = MAIN, row_filter: Predicate = ALWAYS_TRUE
) -> DeletesPlan:
    """The files that may hold a row of ``row_filter``, which names fields of the current schema.

    A file that does not say how many rows it has is read. Raises ProgrammingError for a branch that
    does not exist, UnsupportedTableError for a file of more rows than fit ``memory_limit``.
    """
    check_writable(table.storage)
    start = branch_head(table.metadata, branch)
    schema = table.metadata.schema
    # A plan by the catalog has no sequence numbers.
    scan = TableScan(
        replace(table, planning=None), start, schema, schema, row_filter, all_deletes=True
    )
    found = plan(scan, query)
    repeated = frozenset(found.repeated)
    files = [
        replace(each, residual=ALWAYS_TRUE)
        for each in found.files
        if each.data_file.path not in repeated
    ]
    context = replace(found.context, projection=Schema((SNAPSHOT_ID, POS)))
    tasks = tuple(_counted(each, context, query) for each in files if equality_deletes(each))
    for each in tasks:
        # Metadata may say anything.
        most = query.settings.memory_limit // _BYTES_OF_ROW
        if not 0 <= each.data_file.record_count <= most:
            raise UnsupportedTableError(
                f"converting deletes of a file of {each.data_file.record_count:,} rows with a "
                f"memory_limit of {query.settings.memory_limit:,} bytes",
                table=table.name,
                path=each.data_file.path,
            )
    key_of = table.storage.same_file_key
    looked_at = frozenset(key_of(each.data_file.path) for each in files)
    return DeletesPlan(table, branch, start, context, tasks, looked_at)


def _counted(task: FileScanTask, context: ScanContext, query: QueryContext) -> FileScanTask:
    """The task of a file that does not say how many rows it has, with their number."""
    if task.data_file.record_count >= 0:
        return task
    scan = CombinedScanTask((replace(task, deletes=()),), context)
    count = sum(int(each.num_rows) for each in read_live_rows(scan, query))
    return replace(task, data_file=replace(task.data_file, record_count=count))
