"""Split a data file into byte ranges: at the offsets its writer recorded, else at a fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.scan.tasks.task import FileScanTask, usable_offsets

# A manifest may record any size of a file.
_MOST_SPLITS: Final = 1 << 12
SPLITTABLE: Final = frozenset({"PARQUET", "ORC", "AVRO"})


def split_file(task: FileScanTask, target_size: int) -> Iterator[FileScanTask]:
    """The splits of a whole file in file order, each with all deletes and the residual of ``task``.

    With usable offsets there is one split for each, whatever ``target_size`` (bytes) is: they are
    where row groups or stripes begin, and a smaller piece holds no whole one. The first begins
    at the first offset, so the lengths add up to a little less than the file. Formats that
    cannot be split, and files whose size is unknown, stay whole; there are 4,096 splits at most.
    Source: Java ``OffsetsAwareSplitScanTaskIterator`` and ``FixedSizeSplitScanTaskIterator``.

    >>> [(each.start, each.length) for each in split_file(task_of(bytes=100), 40)]
    [(0, 40), (40, 40), (80, 20)]
    >>> [(each.start, each.length) for each in split_file(task_of(bytes=100, offsets=(4, 70)), 40)]
    [(4, 66), (70, 30)]
    """
    data_file = task.data_file
    size = data_file.file_size_in_bytes
    if data_file.file_format not in SPLITTABLE or size <= 0:
        yield task
        return
    offsets = usable_offsets(data_file)
    step = max(target_size, -(-size // _MOST_SPLITS))
    starts = range(0, size, step) if offsets is None else offsets
    if len(starts) == 1 and starts[0] == task.start and task.length == size - starts[0]:
        yield task
        return
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else size
        yield replace(task, start=start, length=end - start)


def merge_adjacent(tasks: Sequence[FileScanTask]) -> list[FileScanTask]:
    """``tasks`` with neighbours in the list that are neighbours in one file joined into one.

    Splits of a file with another task between them stay apart, so the order of rows is that
    of the list.
    """
    merged: list[FileScanTask] = []
    for task in tasks:
        if merged and _continues(merged[-1], task):
            merged[-1] = replace(merged[-1], length=merged[-1].length + task.length)
        else:
            merged.append(task)
    return merged


def _continues(task: FileScanTask, following: FileScanTask) -> bool:
    return (
        following.start == task.start + task.length
        and (following.data_file is task.data_file or following.data_file == task.data_file)
        and following.deletes == task.deletes
        and following.residual == task.residual
    )
