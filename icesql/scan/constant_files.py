"""Files of which metadata knows every value that a query asks for.

Where only the values of identity partition columns matter, and not how often they come, a file that
surely has a row is one row: that of its partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.schema import Schema
from icesql.scan.extreme_files import Walk, without
from icesql.scan.pruning.extremes import is_ordered
from icesql.scan.tasks.task import FileScanTask


def without_constant_files(
    files: tuple[FileScanTask, ...], walk: Walk
) -> tuple[tuple[FileScanTask, ...], tuple[tuple[Any, ...], ...], int]:
    """The files to read, rows of the projection that stand for the others, and their number.

    Values are in the internal form of ``iceberg.types``.
    """
    scan = walk.scan
    columns = scan.projection.fields
    metadata = scan.table.metadata
    if not columns or metadata.name_mapping is not None:
        return files, (), 0
    places = {
        spec_id: _places(metadata, spec_id, columns, scan.schema) for spec_id in metadata.specs
    }
    rows: dict[tuple[Any, ...], None] = {}
    gone = {}
    for position, task in enumerate(files):
        where, values = places.get(task.spec_id), task.data_file.partition
        if where is None or max(where) >= len(values) or not _has_a_row(task):
            continue
        rows.setdefault(tuple(values[place] for place in where))
        gone[position] = "", "its partition has all values"
    return without(files, gone, walk, "count") if gone else files, tuple(rows), len(gone)


def _places(
    metadata: TableMetadata, spec_id: int, columns: Sequence[t.NestedField], schema: Schema
) -> list[int] | None:
    """Where a spec has the values of the columns themselves; None unless it has all of them."""
    spec = metadata.specs[spec_id]
    kinds = partition_types(spec, schema)
    found = []
    for column in columns:
        place = next(
            (
                number
                for number, (each, kind) in enumerate(zip(spec.fields, kinds, strict=True))
                if each.source_ids == (column.field_id,)
                and each.transform.lower() == "identity"
                and kind == column.type
                and (is_ordered(kind) or isinstance(kind, t.BooleanType))
            ),
            None,
        )
        if place is None:
            return None
        found.append(place)
    return found


def _has_a_row(task: FileScanTask) -> bool:
    """Whether a file surely has a row that is not deleted."""
    deletes = task.deletes
    if not deletes:
        return task.data_file.record_count > 0
    only = deletes[0]
    known = len(deletes) == 1 and only.is_deletion_vector
    return known and 0 <= only.record_count < task.data_file.record_count
