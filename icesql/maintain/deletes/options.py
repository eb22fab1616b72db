"""Rewrite position delete files: fewer ones, without deletes of files that are gone.

Source: Java ``RewritePositionDeleteFilesSparkAction`` and ``BinPackRewritePositionDeletePlanner``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.context import QueryContext
from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.maintain.deletes.plan import DeletesPlan
from icesql.maintain.deletes.run import Converted, convert
from icesql.scan.deletes.delete_index import partition_key
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.planner import plan
from icesql.scan.spec_scan import typed_specs
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask
from icesql.storage.new_file import check_writable

_TARGET: Final = "target-file-size-bytes"
_NUMBERS: Final = (
    _TARGET, "min-file-size-bytes", "max-file-size-bytes", "min-input-files",
    "max-file-group-size-bytes",
)  # fmt: skip
_PARTIAL: Final = "partial-progress.enabled"
_MOST_COMMITS: Final = "partial-progress.max-commits"
_COMMITS: Final = 10
# What says only how Spark's jobs run.
_NO_MATTER: Final = ("max-concurrent-file-group-rewrites", "rewrite-job-order")


class DeleteOptions(Struct, frozen=True):
    """Sizes in bytes; a group of fewer than ``min_files`` stays as it is.

    The groups come in so many commits at most.
    """

    target: int
    smallest: int
    largest: int
    min_files: int = 5
    group_size: int = 100 << 30
    all: bool = False
    most_commits: int = 1

    def commits(self, groups: Sequence[DeleteGroup]) -> Iterator[Sequence[DeleteGroup]]:
        """The groups of each commit."""
        size = max(-(-len(groups) // self.most_commits), 1)
        for start in range(0, len(groups), size):
            yield groups[start : start + size]

    @classmethod
    def of(cls, given: Mapping[str, str], properties: Mapping[str, str]) -> DeleteOptions:
        """From the options of the procedure. Raises ProgrammingError naming a bad one."""
        left = {key: value for key, value in given.items() if key not in _NO_MATTER}
        everything = _flag(left, "rewrite-all")
        partial = _flag(left, _PARTIAL)
        most = _number(left, _MOST_COMMITS)
        if most == 0:
            raise ProgrammingError(f"{_MOST_COMMITS} is 0; it is a number from 1 on")
        numbers = {each: _number(left, each) for each in _NUMBERS}
        for each in (*_NUMBERS, "rewrite-all", _PARTIAL, _MOST_COMMITS):
            left.pop(each, None)
        if left:
            known = ", ".join((*_NUMBERS, "rewrite-all", _PARTIAL, _MOST_COMMITS))
            raise ProgrammingError(f"there is no option {min(left)}; there are {known}")
        target = numbers[_TARGET]
        if target is None:
            target = number_property(properties, "write.delete.target-file-size-bytes", 0)
            target = target or 64 << 20
        smallest = numbers["min-file-size-bytes"]
        largest = numbers["max-file-size-bytes"]
        found = cls(
            target,
            int(target * 0.75) if smallest is None else smallest,
            int(target * 1.8) if largest is None else largest,
            numbers["min-input-files"] or 5,
            numbers["max-file-group-size-bytes"] or 100 << 30,
            everything,
            (most or _COMMITS) if partial else 1,
        )
        if not 0 <= found.smallest < found.target < found.largest:
            raise ProgrammingError(
                "sizes of delete files have to be: min-file-size-bytes < target-file-size-bytes "
                f"({found.target}) < max-file-size-bytes"
            )
        return found


class DeleteGroup(Struct, frozen=True):
    """Delete files of one partition that are read together, and why."""

    files: tuple[DataFile, ...]
    reason: str

    @property
    def bytes(self) -> int:
        """The size of all of them."""
        return sum(each.file_size_in_bytes for each in self.files)


def plan_delete_files(
    table: Table,
    options: DeleteOptions,
    query: QueryContext,
    row_filter: Predicate = ALWAYS_TRUE,
) -> list[DeleteGroup]:
    """The groups of main that are worth rewriting, in partitions that may have rows for which
    ``row_filter`` is true.

    Deletion vectors are never: there is one for each data file.
    """
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return []
    by_partition: dict[tuple[int, Any], list[DataFile]] = {}
    for each in _position_files(table, snapshot, query):
        scope = each.spec_id, partition_key(each.partition)
        by_partition.setdefault(scope, []).append(each)
    if row_filter is not ALWAYS_TRUE:
        known, schema = replace(table, planning=None), table.metadata.schema
        scan = TableScan(known, snapshot, schema, schema, row_filter)
        wanted = {
            (each.data_file.spec_id, partition_key(each.data_file.partition))
            for each in plan(scan, query).files
        }
        by_partition = {key: files for key, files in by_partition.items() if key in wanted}
    return [
        found
        for files in by_partition.values()
        for group in _packed(files, options)
        if (found := _group(group, options)) is not None
    ]


def _position_files(table: Table, snapshot: Snapshot, query: QueryContext) -> Iterator[DataFile]:
    metadata = table.metadata
    specs = typed_specs(metadata)
    reader = ManifestReader(table.storage, query, table.name)
    listed = [
        each
        for each in reader.manifests_of(snapshot)
        if each.content is ManifestContent.DELETES and each.has_live_files
    ]
    for _, entries in reader.entries_of(listed, lambda each: specs[each.partition_spec_id]):
        for index, alive in enumerate(entries.live):
            if not alive:
                continue
            file = entries.data_file(index)
            if file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector:
                yield file


def _packed(files: Sequence[DataFile], options: DeleteOptions) -> Iterator[list[DataFile]]:
    """The candidates of a partition in groups of a bounded size."""
    group: list[DataFile] = []
    size = 0
    for each in files:
        length = each.file_size_in_bytes
        if not (options.all or length < options.smallest or length > options.largest):
            continue
        if group and size + length > options.group_size:
            yield group
            group, size = [], 0
        group.append(each)
        size += length
    if group:
        yield group


def _group(files: Sequence[DataFile], options: DeleteOptions) -> DeleteGroup | None:
    count, size = len(files), sum(each.file_size_in_bytes for each in files)
    if options.all:
        reason = "rewrite-all"
    elif count > 1 and count >= options.min_files:
        reason = f"{count} files of other sizes than wanted in its partition"
    elif count > 1 and size > options.target:
        reason = f"{count} files in its partition make more than one of the target size"
    elif any(each.file_size_in_bytes > options.largest for each in files):
        reason = "larger than max-file-size-bytes"
    else:
        return None
    return DeleteGroup(tuple(files), reason)


def rewrite_delete_files(
    catalog: Catalog,
    table: Table,
    groups: Sequence[DeleteGroup],
    *,
    summary: Mapping[str, str],
    query: QueryContext,
) -> Converted:
    """Write the deletes of each group anew, in one commit.

    New files are as old as the newest of their group. Deletes of data files that are gone are left
    out. From format version 3 on each data file gets a deletion vector, which takes the place of
    all its position deletes, those of no group too. Files that another commit removes meanwhile
    are its own to replace. Raises what ``convert`` does.
    """
    if not groups:
        return Converted(table)
    return convert(catalog, _planned(table, groups, query), query, summary=summary)


def _planned(table: Table, groups: Sequence[DeleteGroup], query: QueryContext) -> DeletesPlan:
    """The data files of main to which delete files of the groups apply.

    Files of several groups of a partition may tell of one data file: each keeps its own.
    """
    check_writable(table.storage)
    metadata, start = table.metadata, table.metadata.current_snapshot
    # By the manifests: files that a catalog's plan leaves out would lose their deletes.
    known = replace(table, planning=None)
    planned = plan(TableScan(known, start, metadata.schema, metadata.schema), query)
    chosen = {each.path: number for number, group in enumerate(groups) for each in group.files}
    # Others may have removed some since the groups were made.
    live = () if start is None else _position_files(table, start, query)
    tasks: dict[tuple[str, int], FileScanTask] = {}
    ages: dict[tuple[str, int], int] = {}
    vectors = metadata.format_version > 2
    for task in planned.files:
        path = task.data_file.path
        own = [each for each in task.deletes if each.content is FileContent.POSITION_DELETES]
        numbers = {chosen[each.path] for each in own if each.path in chosen}
        if vectors and numbers:
            tasks[path, 0] = replace(task, deletes=tuple(own))
            ages[path, 0] = max(each.sequence_number for each in own)
            continue
        for number in sorted(numbers):
            of_group = tuple(each for each in own if chosen.get(each.path) == number)
            tasks[path, number] = replace(task, deletes=of_group)
            ages[path, number] = max(each.sequence_number for each in groups[number].files)
    return DeletesPlan(
        table,
        MAIN,
        start,
        planned.context,
        (*tasks.values(),),
        keys=False,
        which=tuple(each for each in live if each.path in chosen),
        groups=tuple(number for _, number in tasks),
        ages=(*ages.values(),),
        one_file=not vectors and delete_granularity(metadata.properties) == "partition",
    )


def delete_granularity(properties: Mapping[str, str]) -> str:
    """``file`` or ``partition``: what a delete file is of. Raises UnsupportedTableError."""
    found = properties.get("write.delete.granularity", "file").lower()
    if found not in ("file", "partition"):
        raise UnsupportedTableError(
            f"the table property write.delete.granularity = {found!r}: file or partition"
        )
    return found


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ProgrammingError(f"the option {name} is {text!r}; it can be true or false")
    return text == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    return number_property(given, name, 0, kind="option") if name in given else None
