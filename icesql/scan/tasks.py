"""Scan tasks: a file range with its deletes, split by size and packed into combined tasks.

Tasks are frozen values that are sent to any executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from msgspec.structs import astuple, replace

from icesql.config import Settings
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.json_fields import number_property
from icesql.iceberg.metadata.name_mapping import NameMapping
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage


class ScanContext(Frozen):
    """Everything the tasks of one scan share.

    ``schema`` is the table schema the scan reads by; ``projection`` the output columns, in order
    (top-level columns of ``schema``, and metadata columns by their reserved ids). ``file_schema``
    also holds columns that ``schema`` dropped, for equality deletes on them. With ``paired`` the
    deletes of a task are all that apply to its file and sequence numbers are unknown: the catalog
    planned the scan.
    """

    table: str
    schema: Schema
    projection: Schema
    file_schema: Schema
    specs: Mapping[int, PartitionSpec]
    storage: Storage
    format_version: int = 2
    name_mapping: NameMapping | None = None
    paired: bool = False


def usable_offsets(data_file: DataFile) -> Sequence[int] | None:
    """The split offsets, None unless they are strictly ascending and inside the file.

    Some writers left offsets of another file or an earlier attempt; following those loses rows.
    """
    offsets = data_file.split_offsets
    if not offsets or offsets[0] < 0 or offsets[-1] >= data_file.file_size_in_bytes:
        return None
    if any(after <= before for before, after in pairwise(offsets)):
        return None
    return offsets


def without_metrics(file: DataFile) -> DataFile:
    """``file`` without the metrics that only planning uses; NaN counts stay, engines rely on zero.

    A table of many columns has kilobytes of bounds for each file, and tasks are sent to workers.
    """
    return replace(
        file,
        column_sizes=None,
        value_counts=None,
        null_value_counts=None,
        lower_bounds=None,
        upper_bounds=None,
    )


def content_bytes(deletes: Sequence[DataFile]) -> int:
    """Bytes to read of these delete files: the blob of a deletion vector, else the whole file."""
    # Written out: an upsert stream brings the same few hundred deletes for hundreds of files.
    return sum(
        [
            each.file_size_in_bytes
            if each.content_size_in_bytes is None
            else each.content_size_in_bytes
            for each in deletes
        ]
    )


class FileScanTask(Frozen):
    """A byte range of one data file with the deletes that apply to it.

    ``start`` and ``length`` are bytes; a row group belongs to the task that holds its midpoint.
    ``residual`` is the rest of the row filter once the partition is known; it is unbound, exact or
    weaker than the WHERE, and evaluated after the deletes.
    """

    data_file: DataFile
    start: int
    length: int
    deletes: tuple[DataFile, ...] = ()
    residual: Predicate = ALWAYS_TRUE

    @property
    def spec_id(self) -> int:
        """The partition spec the file was written by."""
        return self.data_file.spec_id

    @property
    def sequence_number(self) -> int:
        """The data sequence number, which deletes are compared with."""
        return self.data_file.sequence_number

    @property
    def is_whole_file(self) -> bool:
        """Whether the range covers every row of the file."""
        offsets = usable_offsets(self.data_file)
        first = offsets[0] if offsets else 0
        return self.start <= first and self.start + self.length >= self.data_file.file_size_in_bytes


def distinct_deletes(tasks: Iterable[FileScanTask]) -> tuple[DataFile, ...]:
    """Every delete of the tasks once; several deletion vectors may share a path.

    A stream of 500 upserts attaches 125,000 deletes to its 500 files: look through these instead.
    """
    tuples = list({id(task.deletes): task.deletes for task in tasks}.values())
    tuples.sort(key=len, reverse=True)
    found: dict[int, DataFile] = {}
    longest: tuple[DataFile, ...] = ()
    for deletes in tuples:
        # The deletes of newer files are the end of those of older ones; comparing is cheap.
        if longest[len(longest) - len(deletes) :] != deletes:
            found.update(zip(map(id, deletes), deletes, strict=True))
            longest = deletes
    return tuple(found.values())


class CombinedScanTask(Frozen):
    """File tasks that one worker reads in order; with its context it can run anywhere."""

    tasks: tuple[FileScanTask, ...]
    context: ScanContext


# ------------------------------------------------------------------ byte ranges of a file
# Split a data file into byte ranges: at the offsets its writer recorded, else at a fixed size.


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


# ------------------------------------------------------------------ combined tasks
# Pack the splits of a plan into combined tasks of about the same weight.


TARGET_SIZE: Final = "read.split.target-size"
LOOKBACK: Final = "read.split.planning-lookback"
OPEN_FILE_COST: Final = "read.split.open-file-cost"

Item = TypeVar("Item")


class Packing(Frozen):
    """How large combined tasks become; sizes are bytes, ``lookback`` a number of open bins.

    ``open_file_cost`` is the least weight of each file and delete file, so that thousands of small
    files do not become one task. Raises ProgrammingError for values that cannot be.
    """

    target_size: int = 128 << 20
    lookback: int = 10
    open_file_cost: int = 4 << 20

    def __post_init__(self) -> None:
        if self.target_size <= 0:
            raise ProgrammingError(f"Split size must be > 0: {self.target_size}")
        if self.lookback <= 0:
            raise ProgrammingError(f"Split planning lookback must be > 0: {self.lookback}")
        if self.open_file_cost < 0:
            raise ProgrammingError(f"File open cost must be >= 0: {self.open_file_cost}")

    @classmethod
    def choose(cls, settings: Settings, properties: Mapping[str, str]) -> Packing:
        """A setting wins over the table's property, and that over the default.

        Raises ProgrammingError for a property that is not a usable number.
        """
        chosen = (
            _chosen(getattr(settings, option), option, properties, name, default)
            for (option, name), default in zip(_OPTIONS.items(), astuple(cls()), strict=True)
        )
        return cls(*chosen)


# The settings and the properties of the fields.
_OPTIONS: Final = {
    "split_target_size": TARGET_SIZE,
    "split_lookback": LOOKBACK,
    "split_open_file_cost": OPEN_FILE_COST,
}


def _chosen(
    setting: int | None, option: str, properties: Mapping[str, str], name: str, default: int
) -> int:
    if setting is not None:
        return setting
    try:
        return number_property(properties, name, default)
    except ProgrammingError as error:
        raise ProgrammingError(f"{error}; SET {option} overrides it") from error


def pack_files(
    files: Iterable[FileScanTask], packing: Packing
) -> Iterator[tuple[FileScanTask, ...]]:
    """Every byte of ``files`` exactly once, split, packed and merged back where neighbours met.

    The heaviest of more than ``lookback`` open bins comes out first, so the groups are not in
    the order of the files. Source: Java ``TableScanUtil.planTasks``.
    """
    splits = (split for task in files for split in split_file(task, packing.target_size))
    for group in pack(
        splits,
        packing.target_size,
        lambda split: weight(split, packing.open_file_cost),
        lookback=packing.lookback,
        largest_bin_first=True,
    ):
        yield tuple(merge_adjacent(group))


def weight(task: FileScanTask, open_file_cost: int) -> int:
    """The weight of a task in packing: its bytes and its deletes', or the cost of opening them."""
    deletes = content_bytes(task.deletes)
    return max(task.length + deletes, (1 + len(task.deletes)) * open_file_cost)


def pack(
    items: Iterable[Item],
    target: int,
    weigh: Callable[[Item], int],
    *,
    lookback: int,
    largest_bin_first: bool = False,
    most_items: int | None = None,
) -> Iterator[list[Item]]:
    """Groups of ``items`` of weight at most ``target`` each, unless one item alone is heavier.

    An item goes to the first open bin that can take it; once more than ``lookback`` bins are
    open, one comes out: the heaviest (first on ties) or the oldest. Items keep their order
    within a group. Source: Java ``BinPacking``.

    >>> list(pack([5, 4, 1, 3], 6, lambda size: size, lookback=2))
    [[5, 1], [4], [3]]
    """
    bins: list[tuple[list[Item], list[int]]] = []  # items, [weight]
    for item in items:
        item_weight = weigh(item)
        for held, total in bins:
            if total[0] + item_weight <= target and (most_items is None or len(held) < most_items):
                held.append(item)
                total[0] += item_weight
                break
        else:
            bins.append(([item], [item_weight]))
            if len(bins) > lookback:
                index = 0
                if largest_bin_first:
                    index = max(range(len(bins)), key=lambda at: bins[at][1][0])
                yield bins.pop(index)[0]
    for held, _ in bins:
        yield held


def adjust_split_size(scan_size: int, parallelism: int, split_size: int) -> int:
    """A smaller split size when ``split_size`` would leave workers without a task; bytes.

    Never below 16 MB, or ``split_size`` if that is smaller. Raises ProgrammingError for arguments
    that are not positive. Source: Java ``TableScanUtil.adjustSplitSize``.

    >>> [adjust_split_size(1 << 30, workers, 128 << 20) >> 20 for workers in (8, 40, 200)]
    [128, 25, 16]
    """
    if split_size <= 0 or parallelism <= 0 or scan_size < 0:
        raise ProgrammingError(
            "split size and parallelism must be > 0 and scan size >= 0: "
            f"{split_size}, {parallelism}, {scan_size}"
        )
    if -(-scan_size // split_size) >= parallelism:
        return split_size
    return max(scan_size // parallelism, min(16 << 20, split_size))
