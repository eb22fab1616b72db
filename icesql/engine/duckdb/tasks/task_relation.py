"""The rows of one combined task as a relation: splits as ranges of rows, the rest as in a scan."""

from __future__ import annotations

from typing import Any

from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.grouping import FileGroup, group_files
from icesql.engine.duckdb.relations.relation import Relation, union_all
from icesql.engine.duckdb.relations.relation_builder import RelationBuilder
from icesql.scan.tasks.task import CombinedScanTask, FileScanTask, ScanContext


def task_relation(
    cursor: Any,
    index: int,
    task: CombinedScanTask,
    query: QueryContext,
    streams: list[ArrowStream],
    footers: FooterCache,
) -> Relation:
    """The live rows of a task of local files; ``index`` distinguishes several relations."""
    context = task.context
    builder = RelationBuilder(cursor, footers, query, streams)
    relations: list[Relation] = []
    rest: list[FileGroup] = []
    for group in builder.confirm(context, group_files(task.tasks, context, query.settings)):
        whole = tuple(each for each in group.tasks if each.is_whole_file)
        parts = tuple(each for each in group.tasks if not each.is_whole_file)
        if group.name == grouping.DUCKDB:
            for number, part in enumerate(parts):
                first, end = _row_range(part, context)
                relations.append(builder.rows(context, part, f"p{index}_{number}", first, end))
        elif parts:
            # A split of a file with deletes: only ``read/`` knows its row numbers.
            rest.append(FileGroup(grouping.ARROW, parts, "a split with deletes"))
        if whole:
            rest.append(FileGroup(group.name, whole, group.reason))
    if rest or not relations:
        relations.append(builder.relation(index, context, rest))
    return union_all(relations)


def _row_range(task: FileScanTask, context: ScanContext) -> tuple[int, int]:
    """The first row and the end of a split: the row groups whose midpoint is in its byte range."""
    import pyarrow.parquet as pq

    from icesql.read.formats.row_groups import RowGroups
    from icesql.read.task import byte_range

    path = context.storage.location(task.data_file.path)
    metadata = pq.read_metadata(path)
    groups = RowGroups(metadata, (), context.schema)
    start, stop = byte_range(task)
    rows = first = last = 0
    found = False
    for number, count in enumerate(groups.row_counts):
        if start <= groups.midpoint(number) < stop:
            first, last, found = (first if found else rows), rows + count, True
        rows += count
    return first, last
