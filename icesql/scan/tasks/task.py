"""Scan tasks: the work of one reader, as frozen values that are sent to any executor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
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
