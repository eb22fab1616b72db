"""Files whose metadata has every value that a query needs.

Where all columns that a query reads are constant in a file (identity partition columns, and those
whose bounds are equal and that have no NULL), its rows are one row and a count. Where only the
distinct values matter, a file that surely has a row yields that row.

Over 20 partitions DISTINCT takes a fifth of the CPU time of reading them, GROUP BY a third. Counts
of all rows are added to the engine's instead: it takes 10 ns to make a row again.
"""

from __future__ import annotations

from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.scan.extreme_files import Walk, deleted_rows, exact_deleted_rows, without
from icesql.scan.plan import NeededFiles
from icesql.scan.pruning.counted import live_rows
from icesql.scan.pruning.extremes import is_ordered
from icesql.scan.pruning.file_conditions import Ranges
from icesql.scan.spec_scan import SpecScan
from icesql.scan.tasks.task import FileScanTask


def without_constant_files(
    files: tuple[FileScanTask, ...], walk: Walk, *, counted: bool
) -> NeededFiles:
    """The files that must be read; ``counted``: it matters how often values occur."""
    scan = walk.scan
    columns = scan.projection.fields
    metadata = scan.table.metadata
    if not columns or metadata.name_mapping is not None or not all(map(_is_exact, columns)):
        return NeededFiles(files)
    rows: dict[tuple[Any, ...], int] = {}
    gone: dict[int, tuple[str, str]] = {}
    position = -1
    for part in walk.survivors:
        ranges: dict[int, Ranges] = {}
        for index in part.indexes:
            position += 1
            task = files[position]
            count = live_rows(task.data_file.record_count, deleted_rows(task.deletes))
            if not count:
                continue
            if task.spec_id not in ranges:
                spec = SpecScan(metadata.specs[task.spec_id], ALWAYS_TRUE, scan.schema, metadata)
                ranges[task.spec_id] = Ranges(part.entries, spec, scan.schema)
            found = [ranges[task.spec_id].of(each.field_id, index) for each in columns]
            if not all(each.constant for each in found):
                continue
            if counted:
                count = live_rows(task.data_file.record_count, exact_deleted_rows(task, scan.table))
                if not count:
                    continue
            row = tuple(each.low for each in found)
            rows[row] = rows.get(row, 0) + count
            reason = f"all of its {count:,} rows have these values" if counted else "one value each"
            gone[position] = "", reason
    if not gone:
        return NeededFiles(files)
    return NeededFiles(
        files=without(files, gone, walk, "count"),
        left_out=len(gone),
        rows=tuple(rows),
        copies=tuple(rows.values()) if counted else (),
    )


def _is_exact(column: t.NestedField) -> bool:
    """Whether metadata has the values of a column as SQL compares them."""
    return is_ordered(column.type) or isinstance(column.type, t.BooleanType)
