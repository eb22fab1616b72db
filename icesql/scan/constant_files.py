"""Files of which metadata knows every value that a query asks for.

Where all columns that a query reads hold one value in a file (identity partition columns, and those
whose bounds are equal and that have no NULL), its rows are one row and how often it comes. Where
only the values matter and not how often they come, a file that surely has a row is that row.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.scan.extreme_files import Walk, without
from icesql.scan.pruning.extremes import is_ordered
from icesql.scan.pruning.file_conditions import Ranges
from icesql.scan.spec_scan import SpecScan
from icesql.scan.tasks.task import FileScanTask


class Constants(Struct, frozen=True):
    """The ``files`` to read, and rows of the projection that stand for ``left_out`` others.

    Values are in the internal form of ``iceberg.types``. ``counts`` say how often each row comes,
    () where that does not matter.
    """

    files: tuple[FileScanTask, ...]
    rows: tuple[tuple[Any, ...], ...] = ()
    counts: tuple[int, ...] = ()
    left_out: int = 0


def without_constant_files(
    files: tuple[FileScanTask, ...], walk: Walk, *, counted: bool
) -> Constants:
    """What has to be read; ``counted``: it matters how often values come."""
    scan = walk.scan
    columns = scan.projection.fields
    metadata = scan.table.metadata
    if not columns or metadata.name_mapping is not None or not all(map(_is_exact, columns)):
        return Constants(files)
    rows: dict[tuple[Any, ...], int] = {}
    gone: dict[int, tuple[str, str]] = {}
    position = -1
    for part in walk.survivors:
        ranges: dict[int, Ranges] = {}
        for index in part.indexes:
            position += 1
            task = files[position]
            count = _live_rows(task)
            if not count:
                continue
            if task.spec_id not in ranges:
                spec = SpecScan(metadata.specs[task.spec_id], ALWAYS_TRUE, scan.schema, metadata)
                ranges[task.spec_id] = Ranges(part.entries, spec, scan.schema)
            found = [ranges[task.spec_id].of(each.field_id, index) for each in columns]
            if not all(each.constant for each in found):
                continue
            row = tuple(each.low for each in found)
            rows[row] = rows.get(row, 0) + count
            told = f"all of its {count:,} rows have these values" if counted else "one value each"
            gone[position] = "", told
    if not gone:
        return Constants(files)
    counts = tuple(rows.values()) if counted else ()
    return Constants(without(files, gone, walk, "count"), tuple(rows), counts, len(gone))


def _is_exact(column: t.NestedField) -> bool:
    """Whether metadata has the values of a column as SQL compares them."""
    return is_ordered(column.type) or isinstance(column.type, t.BooleanType)


def _live_rows(task: FileScanTask) -> int:
    """The rows of a file that are not deleted; 0 where their number is not known."""
    rows, deletes = task.data_file.record_count, task.deletes
    if not deletes or rows <= 0:
        return max(rows, 0)
    only = deletes[0]
    known = len(deletes) == 1 and only.is_deletion_vector and 0 <= only.record_count <= rows
    return rows - only.record_count if known else 0
