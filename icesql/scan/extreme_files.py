"""Leave out planned files that a query does not need to read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.scan.plan import NeededFiles, SkipRecord, Survivors, TableScan
from icesql.scan.pruning.extremes import Candidate, are_whole, is_ordered, needless
from icesql.scan.pruning.file_conditions import Ranges
from icesql.scan.pruning.metadata_count import count_of, live_rows
from icesql.scan.report import ScanCounts
from icesql.scan.spec_scan import ResidualEvaluator, SpecScan
from icesql.scan.tasks import FileScanTask, content_bytes


class Walk(Protocol):
    """The state of planning so far."""

    scan: TableScan
    counts: ScanCounts
    skipped: list[SkipRecord]
    survivors: list[Survivors]


def needed_for_extremes(files: tuple[FileScanTask, ...], walk: Walk) -> NeededFiles:
    """The files that must be read; ``walk`` is updated as if no other files had been found."""
    scan = walk.scan
    mapping = scan.table.metadata.name_mapping
    if mapping is not None:
        # Other columns read as NULL, whatever their bounds are.
        wanted = {each.field_id for each in scan.extremes}
        wanted |= {each.field_id for each in scan.counts if each and each.field_id is not None}
        if not wanted <= mapping.field_ids:
            return NeededFiles(files)
    candidates = _candidates(files, walk)
    whole = are_whole(candidates, scan.schema)
    gone = {
        position: (extreme.text, reason)
        for position, (extreme, reason) in needless(
            candidates, whole, scan.extremes, scan.schema
        ).items()
    }
    counts: tuple[int, ...] = ()
    if scan.counts:
        candidates = [
            replace(file, deleted=exact_deleted_rows(task, scan.table)) if surely else file
            for file, task, surely in zip(candidates, files, whole, strict=True)
        ]
        counted = {
            position: count
            for position, file in enumerate(candidates)
            if whole[position]
            and (position in gone or not scan.extremes)
            and (count := count_of(file, scan.counts)) is not None
        }
        counts = tuple(map(sum, zip(*counted.values(), strict=True)))
        gone = {
            position: (
                "",
                f"{candidates[position].rows - (candidates[position].deleted or 0):,} rows",
            )
            for position in counted
        }
    if not gone:
        return NeededFiles(files)
    kept = without(files, gone, walk, "count" if scan.counts else "order")
    return NeededFiles(kept, len(gone) if scan.counts else 0, counts)


def all_whole(files: Sequence[FileScanTask], walk: Walk) -> bool:
    """Whether the WHERE surely leaves out no row of any of the files."""
    return all(are_whole(_candidates(files, walk), walk.scan.schema))


def without(
    files: Sequence[FileScanTask],
    gone: Mapping[int, tuple[str, str]],
    walk: Walk,
    stage: Literal["count", "order"],
) -> tuple[FileScanTask, ...]:
    """Drop the files at some positions, each of which has a text and a reason for EXPLAIN.

    ``walk`` is updated as if they had not been found.
    """
    if walk.scan.explain:
        walk.skipped += [
            SkipRecord("file", files[position].data_file.path, stage, text, reason)
            for position, (text, reason) in gone.items()
        ]
    _count_out(walk.counts, (files[position] for position in gone))
    walk.survivors = _without(walk.survivors, gone)
    return tuple(task for position, task in enumerate(files) if position not in gone)


def _candidates(files: Sequence[FileScanTask], walk: Walk) -> list[Candidate]:
    scan, left_out = walk.scan, walk.scan.trusted(walk.scan.left_out)
    specs: dict[int, ResidualEvaluator] = {}

    def left_out_of(data_file: DataFile) -> Predicate:
        spec_id = data_file.spec_id
        if spec_id not in specs:
            spec = scan.table.metadata.specs[spec_id]
            specs[spec_id] = ResidualEvaluator(left_out, spec, scan.schema)
        return specs[spec_id].residual(data_file.partition)

    places = ((each.entries, index) for each in walk.survivors for index in each.indexes)
    return [
        Candidate(entries, index, deleted_rows(task.deletes), left_out_of(task.data_file))
        for (entries, index), task in zip(places, files, strict=True)
    ]


def deleted_rows(deletes: Sequence[DataFile]) -> int | None:
    """The positions that delete files name in a file; None unless it is one vector or none."""
    if not deletes:
        return 0
    only = deletes[0]
    return only.record_count if len(deletes) == 1 and only.is_deletion_vector else None


def exact_deleted_rows(task: FileScanTask, table: Table) -> int | None:
    """The same, without the positions beyond the end of the file that other writers may name.

    Reads deletion vectors that other writers made; raises what reading them raises.
    """
    rows = deleted_rows(task.deletes)
    if not rows:
        return rows
    (vector,) = task.deletes
    metadata = table.metadata
    by = None if vector.snapshot_id is None else metadata.snapshots.get(vector.snapshot_id)
    if by is not None and by.summary.get("engine-name") == "icesql":
        return rows
    from icesql.scan.deletes.vectors import rows_of_vector

    return rows_of_vector(vector, task.data_file.record_count, table.storage, table.name)


def _count_out(counts: ScanCounts, files: Iterable[FileScanTask]) -> None:
    for task in files:
        counts.result_data_files -= 1
        counts.skipped_data_files += 1
        counts.total_file_size_in_bytes -= task.data_file.file_size_in_bytes
        counts.result_delete_files -= len(task.deletes)
        counts.total_delete_file_size_in_bytes -= content_bytes(task.deletes)


def _without(survivors: Sequence[Survivors], gone: Container[int]) -> list[Survivors]:
    """The survivors without those at some positions of all."""
    kept, position = [], 0
    for each in survivors:
        indexes = [
            index for number, index in enumerate(each.indexes, position) if number not in gone
        ]
        position += len(each.indexes)
        kept.append(Survivors(each.entries, indexes))
    return kept


# ------------------------------------------------------------------ constant files
# Where all columns that a query reads are constant in a file (identity partition columns, and
# those whose bounds are equal and that have no NULL), its rows are one row and a count. Where only
# the distinct values matter, a file that surely has a row yields that row.
#
# Over 20 partitions DISTINCT takes a fifth of the CPU time of reading them, GROUP BY a third.
# Counts of all rows are added to the engine's instead: it takes 10 ns to make a row again.


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
