"""Plans a rewrite from metadata alone: its options, and the groups of files to rewrite.

Source: Java ``SizeBasedFileRewritePlanner``, ``BinPackRewriteFilePlanner``,
``RewriteDataFilesSparkAction``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import compress
from typing import Any, Final, Literal, get_args

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import ProgrammingError, near_or_all
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.json_fields import number_property
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.maintain.rewrite.row_order import RowOrder
from icesql.scan.deletes.delete_index import only_path, partition_key, partition_of
from icesql.scan.plan import ScanPlan
from icesql.scan.planner import plan_snapshot
from icesql.scan.tasks import FileScanTask, ScanContext, pack
from icesql.write.parquet_schema import written_schema

# ------------------------------------------------------------------ options


Strategy = Literal["binpack", "sort", "zorder", "deletes"]
JobOrder = Literal["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"]

_ORDERS: Final = get_args(JobOrder)
_OF_DATA: Final = "rewrite_data_files", "write.target-file-size-bytes", 512 << 20
_OF_DELETE_FILES: Final = (
    "rewrite_position_delete_files", "write.delete.target-file-size-bytes", 64 << 20,
)  # fmt: skip
_UNLIMITED: Final = (1 << 63) - 1
_MOST_DELETES: Final = (1 << 31) - 1
_OF_SORTS: Final = frozenset({"compression-factor", "shuffle-partitions-per-file"})
_OF_Z_ORDER: Final = frozenset({"max-output-size", "var-length-contribution"})
# Options about Spark's jobs are accepted and have no effect.
_OF_DELETES: Final = frozenset({
    "target-file-size-bytes", "min-file-size-bytes", "max-file-size-bytes", "min-input-files",
    "max-file-group-size-bytes", "rewrite-all", "partial-progress.enabled",
    "partial-progress.max-commits", "max-concurrent-file-group-rewrites", "rewrite-job-order",
})  # fmt: skip


class RewriteOptions(Frozen):
    """Sizes are in bytes. Names are those of the options, with ``_`` for ``-`` and ``.``.

    ``output_spec_id`` None means the table's current spec; ``max_files_to_rewrite`` None no limit.
    """

    target_file_size_bytes: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    min_input_files: int = 5
    rewrite_all: bool = False
    max_file_group_size_bytes: int = 100 << 30
    max_file_group_input_files: int = _UNLIMITED
    delete_file_threshold: int = _MOST_DELETES
    delete_ratio_threshold: float = 0.3
    max_files_to_rewrite: int | None = None
    partial_progress_enabled: bool = False
    partial_progress_max_commits: int = 10
    partial_progress_max_failed_commits: int = 10
    max_concurrent_file_group_rewrites: int = 5
    use_starting_sequence_number: bool = True
    remove_dangling_deletes: bool = False
    rewrite_job_order: JobOrder = "none"
    output_spec_id: int | None = None
    compression_factor: float = 1.0
    shuffle_partitions_per_file: int = 1
    max_output_size: int = _MOST_DELETES
    var_length_contribution: int = 8

    @property
    def write_max(self) -> int:
        """The size at which a new file is closed: halfway between target and maximum."""
        half = (self.max_file_size_bytes - self.target_file_size_bytes) * 0.5
        return int(self.target_file_size_bytes + half)


_POSITIVE: Final = (
    "min-input-files", "max-file-group-size-bytes", "max-file-group-input-files",
    "max-concurrent-file-group-rewrites", "compression-factor",
    "shuffle-partitions-per-file", "max-output-size", "var-length-contribution",
)  # fmt: skip
# A larger float, multiplied with a size, would not be a valid size.
_LARGEST: Final = 1e18
_NAMES: Final = {
    name.replace("_", "-")
    .replace("partial-progress-", "partial-progress."): name
    for name in RewriteOptions.__struct_fields__
}  # fmt: skip


def rewrite_options(
    given: Mapping[str, str], metadata: TableMetadata, strategy: Strategy = "binpack"
) -> RewriteOptions:
    """Parse options by Spark's names; missing sizes are derived from the target size.

    "deletes" is the strategy of ``rewrite_position_delete_files``. Raises ProgrammingError for an
    unknown name, and for an invalid value.
    """
    if strategy == "deletes":
        usable: Set[str] = _OF_DELETES
        procedure, target_name, target_size = _OF_DELETE_FILES
    else:
        others = {"binpack": _OF_SORTS | _OF_Z_ORDER, "sort": _OF_Z_ORDER}
        usable = _NAMES.keys() - others.get(strategy, frozenset())
        procedure, target_name, target_size = _OF_DATA
    known = {name: key for name, key in _NAMES.items() if name in usable}
    for name in given:
        if name not in known:
            hint = near_or_all(name, known)
            raise ProgrammingError(f"{procedure} has no option {name!r} ({strategy}); {hint}")
    values: dict[str, Any] = {known[name]: _value(name, text) for name, text in given.items()}
    usual = number_property(metadata.properties, target_name, target_size)
    target = values.setdefault("target_file_size_bytes", usual)
    values.setdefault("min_file_size_bytes", int(target * 0.75))
    values.setdefault("max_file_size_bytes", int(target * 1.8))
    if "partial_progress_max_commits" in values:
        most = values["partial_progress_max_commits"]
        values.setdefault("partial_progress_max_failed_commits", most)
    options = RewriteOptions(**values)
    _check(options, metadata, procedure)
    return options


def _value(name: str, text: str) -> Any:
    word = text.strip().lower()
    match name:
        case (
            "rewrite-all"
            | "partial-progress.enabled"
            | "use-starting-sequence-number"
            | ("remove-dangling-deletes")
        ):
            if word not in ("true", "false"):
                raise ProgrammingError(f"option {name} is {text!r}; it can be true or false")
            return word == "true"
        case "rewrite-job-order":
            if word not in _ORDERS:
                raise ProgrammingError(f"option {name} is {text!r}; it can be {', '.join(_ORDERS)}")
            return word
        case "delete-ratio-threshold" | "compression-factor":
            try:
                return min(float(word), _LARGEST)
            except ValueError as error:
                raise ProgrammingError(f"option {name} is {text!r}, not a number") from error
        case _:
            return number_property({name: text}, name, 0, kind="option")


def _check(options: RewriteOptions, metadata: TableMetadata, procedure: str) -> None:
    o = options
    target, least, most = o.target_file_size_bytes, o.min_file_size_bytes, o.max_file_size_bytes
    rules = [
        (target > 0, "target-file-size-bytes must be > 0"),
        (target > least, f"target-file-size-bytes ({target}) must be > min-file-size-bytes "
         f"({least}): all new files would be too small"),
        (target < most, f"target-file-size-bytes ({target}) must be < max-file-size-bytes "
         f"({most}): all new files would be too large"),
        (0 < o.delete_ratio_threshold <= 1, "delete-ratio-threshold must be > 0 and <= 1"),
        *((getattr(o, _NAMES[name]) > 0, f"{name} must be > 0") for name in _POSITIVE),
        (o.max_files_to_rewrite != 0, "max-files-to-rewrite must be > 0"),
        (not o.partial_progress_enabled or o.partial_progress_max_commits > 0,
         "partial-progress.max-commits must be > 0"),
        (o.output_spec_id is None or o.output_spec_id in metadata.specs,
         f"output-spec-id is {o.output_spec_id}; the table has the partition specs "
         f"{', '.join(map(str, sorted(metadata.specs)))}"),
    ]  # fmt: skip
    for holds, problem in rules:
        if not holds:
            raise ProgrammingError(f"{procedure}: {problem}")


# ------------------------------------------------------------------ groups of files


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


# ------------------------------------------------------------------ plan


class RewriteRequest(Frozen):
    """A request to rewrite whole files of ``branch`` that may have a row of ``row_filter``.

    ``row_filter`` names fields of the current schema. ``order`` is None for bin-packing, which
    keeps the order of the rows.
    """

    options: RewriteOptions
    order: RowOrder | None = None
    row_filter: Predicate = ALWAYS_TRUE
    branch: str = MAIN


class RewritePlan(Frozen):
    """The groups of files of snapshot ``start`` to rewrite, and the files left alone.

    ``context`` is for reading them: all columns, with row lineage in version 3.
    ``schema`` has the columns of the new files. ``start`` is None for an empty branch.
    """

    table: Table
    request: RewriteRequest
    start: Snapshot | None
    context: ScanContext
    schema: Schema
    groups: tuple[FileGroup, ...]
    left: tuple[FileScanTask, ...]

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of the new files."""
        metadata, spec_id = self.table.metadata, self.request.options.output_spec_id
        return metadata.spec if spec_id is None else metadata.specs[spec_id]

    @property
    def bytes(self) -> int:
        """The size of the data files to rewrite."""
        return sum(each.bytes for each in self.groups)


def plan_rewrite(table: Table, request: RewriteRequest, query: QueryContext) -> RewritePlan:
    """Group the files of a branch's head.

    Raises ProgrammingError for a missing branch, and what planning a scan raises.
    """
    metadata = table.metadata
    start = branch_head(metadata, request.branch)
    schema, spec = written_schema(metadata), metadata.spec
    found, files = whole_files(table, start, query, request.row_filter, schema)
    grouped = group_files(
        files, spec.spec_id, len(spec.fields), request.options, frozenset(found.repeated)
    )
    return RewritePlan(table, request, start, found.context, schema, grouped.groups, grouped.left)


def whole_files(
    table: Table,
    start: Snapshot | None,
    query: QueryContext,
    row_filter: Predicate,
    projection: Schema | None = None,
) -> tuple[ScanPlan, list[FileScanTask]]:
    """The files of a snapshot that may have rows of a filter, with all deletes of their rows.

    They have no residual of the filter. The catalog's scan planning gives no sequence numbers.
    """
    known = replace(table, planning=None)
    found = plan_snapshot(known, start, query, row_filter, projection, all_deletes=True)
    return found, [replace(each, residual=ALWAYS_TRUE) for each in found.files]


def branch_head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The head of a branch; None if it has no snapshot. Raises ProgrammingError."""
    ref = metadata.refs.get(branch)
    if ref is None:
        if branch == MAIN:
            return metadata.current_snapshot
        raise ProgrammingError(f"the table has no branch {branch!r}; nothing was rewritten")
    if ref.kind == "tag":
        raise ProgrammingError(f"{branch!r} is a tag; only files of a branch can be rewritten")
    return metadata.snapshots[ref.snapshot_id]
