"""Plan from metadata alone which data files get new deletes, and which old deletes go.

Source: Java ``RewritePositionDeleteFilesSparkAction`` and ``BinPackRewritePositionDeletePlanner``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.file_changes import file_key
from icesql.context import QueryContext
from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.iceberg.schema import POS, SNAPSHOT_ID, Schema
from icesql.maintain.others import equality_deletes
from icesql.maintain.rewrite.plan import (
    FileGroup,
    RewriteOptions,
    branch_head,
    group_files,
    whole_files,
)
from icesql.maintain.rewrite.task import read_live_rows
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.planner import plan_snapshot
from icesql.scan.tasks import CombinedScanTask, FileScanTask, ScanContext, distinct_deletes
from icesql.storage.new_files import check_writable

# Bytes of memory for each row of a file: its mark, and its position if it is to be deleted.
_BYTES_OF_ROW: Final = 16


class DeletesPlan(Frozen):
    """The data files of a branch's head whose deletes are rewritten.

    With ``keys`` the deletes are equality deletes. ``looked_at`` has the keys of all data files
    that match the condition, except for those that the table lists more than once: a position does
    not distinguish their listings. Without keys the deletes are the position delete files
    ``which``; each task belongs to a number in ``groups``, and its new deletes get the number in
    ``ages`` as sequence number. With ``one_file`` the data files of a group share one delete file.
    ``start`` is None for an empty branch.
    """

    table: Table
    branch: str
    start: Snapshot | None
    context: ScanContext
    tasks: tuple[FileScanTask, ...]
    looked_at: frozenset[str] = frozenset()
    keys: bool = True
    which: tuple[DataFile, ...] = ()
    groups: tuple[int, ...] = ()
    ages: tuple[int, ...] = ()
    one_file: bool = False

    @property
    def deletes(self) -> tuple[DataFile, ...]:
        """The delete files to rewrite, each once."""
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
        """The size of the data files."""
        return sum(each.length for each in self.tasks)


def plan_conversion(
    table: Table, query: QueryContext, *, branch: str = MAIN, row_filter: Predicate = ALWAYS_TRUE
) -> DeletesPlan:
    """Plan the files that may have a row of ``row_filter``, which names current fields.

    Reads a file whose metadata has no row count. Raises ProgrammingError for a missing branch,
    UnsupportedTableError for a file with more rows than fit ``memory_limit``.
    """
    check_writable(table.storage)
    start = branch_head(table.metadata, branch)
    found, whole = whole_files(table, start, query, row_filter)
    repeated = frozenset(found.repeated)
    files = [each for each in whole if each.data_file.path not in repeated]
    context = replace(found.context, projection=Schema((SNAPSHOT_ID, POS)))
    tasks = tuple(_counted(each, context, query) for each in files if equality_deletes(each))
    for each in tasks:
        # The count in metadata may be wrong.
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
    """The task with its row count, which is read from the file if metadata lacks it."""
    if task.data_file.record_count >= 0:
        return task
    scan = CombinedScanTask((replace(task, deletes=()),), context)
    count = sum(int(each.num_rows) for each in read_live_rows(scan, query))
    return replace(task, data_file=replace(task.data_file, record_count=count))


# ------------------------------------------------------------------ position delete files


def plan_delete_files(
    table: Table,
    options: RewriteOptions,
    query: QueryContext,
    row_filter: Predicate = ALWAYS_TRUE,
) -> list[FileGroup]:
    """The groups of position delete files of main that are worth rewriting.

    Only partitions that may have rows of ``row_filter`` are included. Deletion vectors never are:
    each belongs to one data file.
    """
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return []
    files = [*_position_files(table, snapshot, query)]
    if row_filter is not ALWAYS_TRUE:
        found = plan_snapshot(replace(table, planning=None), snapshot, query, row_filter)
        wanted = {partition_of(each.data_file) for each in found.files}
        files = [each for each in files if partition_of(each) in wanted]
    of_specs: dict[int, list[FileScanTask]] = {}
    for each in files:
        task = FileScanTask(each, 0, each.file_size_in_bytes)
        of_specs.setdefault(each.spec_id, []).append(task)
    groups = (group_files(tasks, spec, 0, options).groups for spec, tasks in of_specs.items())
    return list(chain.from_iterable(groups))


def _position_files(table: Table, snapshot: Snapshot, query: QueryContext) -> Iterator[DataFile]:
    reader = ManifestReader(table, query)
    for file in reader.deletes(reader.manifests_of(snapshot), FileContent.POSITION_DELETES):
        if not file.is_deletion_vector:
            yield file


def plan_deletes(table: Table, groups: Sequence[FileGroup], query: QueryContext) -> DeletesPlan:
    """Plan new deletes for the data files of main to which delete files of the groups apply.

    New files get the sequence number of the newest file of their group. Deletes of data files that
    are gone are left out. From format version 3 on each data file gets a deletion vector, which
    replaces all its position deletes, also those in no group. If files of several groups of a
    partition delete rows of one data file, each group keeps its own deletes.
    """
    check_writable(table.storage)
    metadata, start = table.metadata, table.metadata.current_snapshot
    # By the manifests: a file that the catalog's scan planning leaves out would lose its deletes.
    planned = plan_snapshot(replace(table, planning=None), start, query)
    chosen = {
        each.data_file.path: number for number, group in enumerate(groups) for each in group.files
    }
    # Other writers may have removed some files since the groups were made.
    live = () if start is None else _position_files(table, start, query)
    tasks: dict[tuple[str, int], tuple[FileScanTask, int]] = {}  # each with its sequence number
    vectors = metadata.format_version > 2
    for task in planned.files:
        path = task.data_file.path
        own = [each for each in task.deletes if each.content is FileContent.POSITION_DELETES]
        numbers = {chosen[each.path] for each in own if each.path in chosen}
        if vectors and numbers:
            age = max(each.sequence_number for each in own)
            tasks[path, 0] = replace(task, deletes=tuple(own)), age
            continue
        for number in sorted(numbers):
            of_group = tuple(each for each in own if chosen.get(each.path) == number)
            age = max(each.sequence_number for each in groups[number].files)
            tasks[path, number] = replace(task, deletes=of_group), age
    return DeletesPlan(
        table,
        MAIN,
        start,
        planned.context,
        tuple(task for task, _ in tasks.values()),
        keys=False,
        which=tuple(each for each in live if each.path in chosen),
        groups=tuple(number for _, number in tasks),
        ages=tuple(age for _, age in tasks.values()),
        one_file=not vectors and delete_granularity(metadata.properties) == "partition",
    )


def delete_granularity(properties: Mapping[str, str]) -> str:
    """``file`` or ``partition``: the scope of a delete file. Raises UnsupportedTableError."""
    found = properties.get("write.delete.granularity", "file").lower()
    if found not in ("file", "partition"):
        raise UnsupportedTableError(
            f"the table property write.delete.granularity = {found!r}: file or partition"
        )
    return found
