"""Leave out planned files that cannot hold the extreme values that a query is about."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Protocol

from icesql.iceberg.expressions.predicate import Predicate, keep_columns
from icesql.iceberg.manifest.data_file import DataFile
from icesql.scan.plan import SkipRecord, Survivors
from icesql.scan.pruning.extremes import Candidate, needless
from icesql.scan.pruning.residual import ResidualEvaluator
from icesql.scan.report import ScanCounts
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask, content_bytes


class Walk(Protocol):
    """What planning has found so far."""

    scan: TableScan
    counts: ScanCounts
    skipped: list[SkipRecord]
    survivors: list[Survivors]


def only_extremes(files: tuple[FileScanTask, ...], walk: Walk) -> tuple[FileScanTask, ...]:
    """The files that are needed; what ``walk`` says is changed as if no others had been found."""
    scan = walk.scan
    mapping, left_out = scan.table.metadata.name_mapping, scan.left_out
    if mapping is not None:
        # Other columns read as NULL, whatever their bounds are.
        if not all(each.field_id in mapping.field_ids for each in scan.extremes):
            return files
        left_out = keep_columns(left_out, mapping.field_ids)
    specs: dict[int, ResidualEvaluator] = {}

    def left_out_of(data_file: DataFile) -> Predicate:
        spec_id = data_file.spec_id
        if spec_id not in specs:
            spec = scan.table.metadata.specs[spec_id]
            specs[spec_id] = ResidualEvaluator(left_out, spec, scan.schema)
        return specs[spec_id].residual(data_file.partition)

    places = ((each.entries, index) for each in walk.survivors for index in each.indexes)
    candidates = [
        Candidate(entries, index, bool(task.deletes), left_out_of(task.data_file))
        for (entries, index), task in zip(places, files, strict=True)
    ]
    gone = needless(candidates, scan.extremes, scan.schema)
    if not gone:
        return files
    if scan.explain:
        walk.skipped += [
            SkipRecord("file", files[position].data_file.path, "order", extreme.text, reason)
            for position, (extreme, reason) in gone.items()
        ]
    _count_out(walk.counts, (files[position] for position in gone))
    walk.survivors = _without(walk.survivors, gone)
    return tuple(task for position, task in enumerate(files) if position not in gone)


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
