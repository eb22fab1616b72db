"""Choose the files to rewrite and group them, by sizes and deletes; no file is opened.

Source: Java ``BinPackRewriteFilePlanner``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from typing import Any, Final

from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.maintain.rewrite.options import RewriteOptions
from icesql.scan.deletes.delete_index import only_path, partition_key, partition_of
from icesql.scan.tasks.packing import pack
from icesql.scan.tasks.task import FileScanTask

# Java adds this to a group's share for each file, so that pieces of row groups fit.
_SPLIT_OVERHEAD: Final = 5 * 1024


class FileGroup(Frozen):
    """Whole files that are rewritten together; ``number`` counts from 0 in the order of work.

    ``partition`` is that of all files in the table's current spec; None for files of other specs,
    whose rows may go to several partitions. ``reasons`` has for each file the reason why it
    was chosen. ``output_files`` is the expected number, 0 if all rows are known to be deleted;
    ``split_size`` is the number of bytes to read for each.
    """

    number: int
    partition: tuple[Any, ...] | None
    files: tuple[FileScanTask, ...]
    reasons: tuple[str, ...]
    output_files: int
    split_size: int

    @property
    def bytes(self) -> int:
        """The size of the data files."""
        return sum(each.length for each in self.files)


class Grouped(Frozen):
    """The groups, and the files that are in none."""

    groups: tuple[FileGroup, ...]
    left: tuple[FileScanTask, ...]


def group_files(
    files: Sequence[FileScanTask],
    spec_id: int,
    fields: int,
    options: RewriteOptions,
    repeated: Collection[str] = (),
) -> Grouped:
    """Group the files of a scan, which are whole and have all of their deletes.

    ``spec_id`` is the table's current spec and ``fields`` the number of its fields. All listings of
    a file in ``repeated`` are in one group, since a file is removed by its path.
    """
    nothing = (None,) * fields
    by_partition: dict[tuple[Any, ...], list[FileScanTask]] = {}
    places: dict[str, tuple[Any, ...]] = {}
    for each in files:
        file = each.data_file
        # Rows of other specs may go to any partition now: their files are rewritten together.
        own = partition_key(file.partition) if file.spec_id == spec_id else nothing
        if file.path in repeated:
            own = places.setdefault(file.path, own)
        by_partition.setdefault(own, []).append(each)
    chosen: list[tuple[list[FileScanTask], list[str]]] = []
    left: list[FileScanTask] = []
    for members in by_partition.values():
        chosen += _of_partition(_together(members, repeated), options, left)
    chosen = _at_most(chosen, options.max_files_to_rewrite, left, repeated)
    groups = [_group(number, *each, spec_id, options) for number, each in enumerate(chosen)]
    what, _, way = options.rewrite_job_order.partition("-")
    if way:
        groups.sort(
            key=lambda group: group.bytes if what == "bytes" else len(group.files),
            reverse=way == "desc",
        )
    ordered = (replace(each, number=number) for number, each in enumerate(groups))
    return Grouped(tuple(ordered), tuple(left))


def _together(
    files: Iterable[FileScanTask], repeated: Collection[str]
) -> Iterable[list[FileScanTask]]:
    """Each file alone, but all listings of a repeated file together."""
    listed: dict[str, list[FileScanTask]] = {}
    for each in files:
        path = each.data_file.path
        if path not in repeated:
            yield [each]
        else:
            listed.setdefault(path, []).append(each)
    yield from listed.values()


def _of_partition(
    files: Iterable[list[FileScanTask]], options: RewriteOptions, left: list[FileScanTask]
) -> Iterable[tuple[list[FileScanTask], list[str]]]:
    reasons: dict[int, str] = {}
    candidates = []
    for same in files:
        reason = f"listed {len(same)} times" if len(same) > 1 else why_candidate(same[0], options)
        if reason is None:
            left += same
        else:
            reasons |= {id(each): reason for each in same}
            candidates.append(same)
    packed = pack(
        candidates,
        options.max_file_group_size_bytes,
        lambda same: sum(each.length for each in same),
        lookback=1,
        most_items=options.max_file_group_input_files,
    )
    for together in packed:
        group = [each for same in together for each in same]
        if any(len(same) > 1 for same in together) or _is_worth_it(group, options):
            yield group, [reasons[id(each)] for each in group]
        else:
            left += group


def why_candidate(task: FileScanTask, options: RewriteOptions) -> str | None:
    """Why a file is worth rewriting; None if it is not."""
    if options.rewrite_all:
        return "rewrite-all"
    if task.length < options.min_file_size_bytes:
        return f"{task.length:,} bytes, less than {options.min_file_size_bytes:,}"
    if task.length > options.max_file_size_bytes:
        return f"{task.length:,} bytes, more than {options.max_file_size_bytes:,}"
    return deletes_reason(task, options)


def deletes_reason(task: FileScanTask, options: RewriteOptions) -> str | None:
    """Why a file has too many deletes; None if it has not."""
    if len(task.deletes) >= options.delete_file_threshold:
        return f"{len(task.deletes):,} delete files"
    known, rows = known_deleted(task), task.data_file.record_count
    if known and rows > 0 and known / rows >= options.delete_ratio_threshold:
        return f"{known:,} of {rows:,} rows are deleted"
    return None


def known_deleted(task: FileScanTask) -> int:
    """The number of rows deleted by deletes for this file alone; other deletes may delete more."""
    alone = (each for each in task.deletes if not each.equality_ids and only_path(each))
    of_file = sum(each.record_count for each in alone)
    return min(of_file, max(task.data_file.record_count, 0))


def _is_worth_it(group: Sequence[FileScanTask], options: RewriteOptions) -> bool:
    size, count = sum(each.length for each in group), len(group)
    is_enough = count >= options.min_input_files or size > options.target_file_size_bytes
    return (
        options.rewrite_all
        or (count > 1 and is_enough)
        or size > options.max_file_size_bytes
        or any(deletes_reason(each, options) for each in group)
    )


def _at_most(
    groups: list[tuple[list[FileScanTask], list[str]]],
    most: int | None,
    left: list[FileScanTask],
    repeated: Collection[str],
) -> list[tuple[list[FileScanTask], list[str]]]:
    if most is None:
        return groups
    kept = []
    for files, reasons in groups:
        beyond = {each.data_file.path for each in files[most:]}.intersection(repeated)
        fits = [n < most and each.data_file.path not in beyond for n, each in enumerate(files)]
        if any(fits):
            kept.append(([*compress(files, fits)], [*compress(reasons, fits)]))
        left += [each for each, fit in zip(files, fits, strict=True) if not fit]
        most -= sum(fits)
    return kept


def _group(
    number: int,
    files: Sequence[FileScanTask],
    reasons: Sequence[str],
    spec_id: int,
    options: RewriteOptions,
) -> FileGroup:
    size = sum(each.length for each in files)
    first = files[0].data_file
    alike = {partition_of(each.data_file) for each in files} == {
        (spec_id, partition_key(first.partition))
    }
    is_emptied = all(known_deleted(each) >= each.data_file.record_count > 0 for each in files)
    return FileGroup(
        number,
        first.partition if alike else None,
        (*files,),
        (*reasons,),
        0 if is_emptied else expected_files(size, options),
        split_size(size, options),
    )


def expected_files(size: int, options: RewriteOptions) -> int:
    """The number of files for ``size`` bytes: a small remainder is spread over the others.

    >>> options = RewriteOptions(21, 15, 37)
    >>> [expected_files(size, options) for size in (30, 22, 50)]
    [2, 1, 3]
    """
    size = int(size * options.compression_factor)
    target = options.target_file_size_bytes
    if size < target:
        return 1
    whole, rest = divmod(size, target)
    if rest > options.min_file_size_bytes:
        return whole + 1
    if size // whole < min(1.1 * target, float(options.write_max)):
        return whole
    return whole + 1 if rest else whole


def split_size(size: int, options: RewriteOptions) -> int:
    """The bytes to read for each new file."""
    share = size // expected_files(size, options) + _SPLIT_OVERHEAD
    return min(max(share, options.target_file_size_bytes), options.write_max)
