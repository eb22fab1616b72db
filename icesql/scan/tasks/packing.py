"""Pack the splits of a plan into combined tasks of about the same weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from msgspec.structs import astuple

from icesql.config import Settings
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.scan.tasks.split import merge_adjacent, split_file
from icesql.scan.tasks.task import FileScanTask, content_bytes

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
