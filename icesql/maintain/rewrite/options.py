"""The options of a rewrite: Spark's names, defaults and rules.

Source: Java ``SizeBasedFileRewritePlanner``, ``BinPackRewriteFilePlanner``,
``RewriteDataFilesSparkAction``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, Literal, get_args

from icesql.errors import ProgrammingError, near_or_all
from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.iceberg.metadata.table_metadata import TableMetadata

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
