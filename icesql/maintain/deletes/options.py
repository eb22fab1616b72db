"""Rewrite position delete files: fewer ones, without deletes of files that are gone.

Source: Java ``RewritePositionDeleteFilesSparkAction`` and ``BinPackRewritePositionDeletePlanner``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.packing import pack
from icesql.scan.tasks.task import FileScanTask
from icesql.storage.new_file import check_writable

_OPTIONS: Final = (
    "target-file-size-bytes", "min-file-size-bytes", "max-file-size-bytes", "min-input-files",
    "max-file-group-size-bytes", "rewrite-all", "partial-progress.enabled",
    "partial-progress.max-commits",
)  # fmt: skip
# What says only how Spark's jobs run.
_NO_MATTER: Final = {"max-concurrent-file-group-rewrites", "rewrite-job-order"}


class DeleteOptions(Struct, frozen=True):
    """Sizes in bytes; a group of fewer than ``min_files`` stays as it is.

    The groups come in so many commits at most.
    """

    target: int
    smallest: int
    largest: int
    min_files: int
    group_size: int
    all: bool
    most_commits: int

    def commits(self, groups: Sequence[DeleteGroup]) -> Iterator[Sequence[DeleteGroup]]:
        """The groups of each commit."""
        size = max(-(-len(groups) // self.most_commits), 1)
        for start in range(0, len(groups), size):
            yield groups[start : start + size]

    @classmethod
    def of(cls, given: Mapping[str, str], properties: Mapping[str, str]) -> DeleteOptions:
        """From the options of the procedure. Raises ProgrammingError naming a bad one."""
        for each in sorted(given.keys() - _NO_MATTER - {*_OPTIONS}):
            raise ProgrammingError(f"there is no option {each}; there are {', '.join(_OPTIONS)}")
        of_target, of_smallest, of_largest, of_files, of_group, of_all, partial, commits = _OPTIONS

        def number(name: str, default: int, least: int = 0) -> int:
            return number_property(given, name, default, least, "option")

        def flag(name: str) -> bool:
            text = given.get(name, "false").lower()
            if text not in ("true", "false"):
                raise ProgrammingError(f"the option {name} is {text!r}; it can be true or false")
            return text == "true"

        if of_target in given:
            target = number(of_target, 0)
        else:
            name = "write.delete.target-file-size-bytes"
            target = number_property(properties, name, 0) or 64 << 20
        most = number(commits, 10, 1)
        found = cls(
            target,
            number(of_smallest, int(target * 0.75)),
            number(of_largest, int(target * 1.8)),
            number(of_files, 0) or 5,
            number(of_group, 0) or 100 << 30,
            flag(of_all),
            most if flag(partial) else 1,
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
    reader = ManifestReader(table, query)
    for entries, index in reader.live(reader.manifests_of(snapshot), ManifestContent.DELETES):
        file = entries.data_file(index)
        if file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector:
            yield file


def _packed(files: Iterable[DataFile], options: DeleteOptions) -> Iterator[list[DataFile]]:
    """The candidates of a partition in groups of a bounded size."""
    odd = (
        each
        for each in files
        if options.all or not options.smallest <= each.file_size_in_bytes <= options.largest
    )
    return pack(odd, options.group_size, lambda each: each.file_size_in_bytes, lookback=1)


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
    tasks: dict[tuple[str, int], tuple[FileScanTask, int]] = {}  # each with the age of its deletes
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
    """``file`` or ``partition``: what a delete file is of. Raises UnsupportedTableError."""
    found = properties.get("write.delete.granularity", "file").lower()
    if found not in ("file", "partition"):
        raise UnsupportedTableError(
            f"the table property write.delete.granularity = {found!r}: file or partition"
        )
    return found
