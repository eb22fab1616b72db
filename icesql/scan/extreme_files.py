"""Leave out planned files that cannot hold the extreme values that a query is about."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Protocol

from icesql.scan.plan import SkipRecord, Survivors
from icesql.scan.pruning.extremes import Candidate, needless
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
    mapping = scan.table.metadata.name_mapping
    if mapping is not None and not all(
        each.field_id in mapping.field_ids for each in scan.extremes
    ):
        return files  # such a column reads as NULL, whatever its bounds are
    places = ((each.entries, index) for each in walk.survivors for index in each.indexes)
    candidates = [
        Candidate(entries, index, bool(task.deletes), task.residual)
        for (entries, index), task in zip(places, files, strict=True)
    ]
    gone = needless(candidates, scan.extremes, scan.schema, exact=scan.is_filter_exact)
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
