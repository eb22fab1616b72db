"""The summary of a snapshot: counts of added and removed files and rows, and totals.

Source: Java ``SnapshotSummary`` and ``SnapshotProducer.updateTotal``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.property_numbers import whole_number

_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
_PARTITION_PREFIX: Final = "partitions."


class SummaryCounts:
    """Counts of the files that a snapshot adds and removes.

    ``partition_limit`` is the largest number of partitions that get their own counts.
    """

    def __init__(self, partition_limit: int) -> None:
        self._limit = partition_limit
        self._counts: Counter[str] = Counter()
        self._partitions: dict[str, Counter[str]] = {}

    def count(self, file: DataFile, partition: str, verb: Literal["added", "removed"]) -> None:
        """Count a file; ``partition`` is its path."""
        for counts in (self._counts, self._partitions.setdefault(partition, Counter())):
            counts.update(_counted(file, verb))

    def add_duplicates(self, count: int) -> None:
        """Count removed files that the table listed more than once."""
        self._counts["deleted-duplicate-files"] += count

    def written(self) -> dict[str, str]:
        """The counts as summary keys; zeros are left out."""
        found = {key: str(number) for key, number in self._counts.items() if number > 0}
        found["changed-partition-count"] = str(len(self._partitions))
        if 0 < len(self._partitions) <= self._limit:
            found["partition-summaries-included"] = "true"
            for path, counts in self._partitions.items():
                if path:
                    text = ",".join(f"{key}={number}" for key, number in counts.items() if number)
                    found[_PARTITION_PREFIX + path] = text
        return found


def totals(previous: Mapping[str, str] | None, counted: Mapping[str, str]) -> dict[str, str]:
    """The totals after a snapshot; ``previous`` is the summary of the branch's head.

    None starts at zero. A total that the head lacks, or that would be negative, is unknown and left
    out.
    """
    found = {}
    for total, (plus, minus) in _TOTALS.items():
        before = whole_number(previous.get(total)) if previous is not None else 0
        if before is None:
            continue
        after = before + int(counted.get(plus, 0)) - int(counted.get(minus, 0))
        if after >= 0:
            found[total] = str(after)
    return found


def _counted(file: DataFile, verb: str) -> dict[str, int]:
    rows = file.record_count
    if file.content is FileContent.DATA:
        gone = "deleted" if verb == "removed" else verb
        return {
            f"{gone}-data-files": 1,
            f"{gone}-records": rows,
            f"{verb}-files-size": file.file_size_in_bytes,
        }
    size = file.file_size_in_bytes
    if file.is_deletion_vector and file.content_size_in_bytes is not None:
        size = file.content_size_in_bytes  # the Puffin file contains other vectors, too
    found = {f"{verb}-delete-files": 1, f"{verb}-files-size": size}
    if file.content is FileContent.EQUALITY_DELETES:
        return {**found, f"{verb}-equality-delete-files": 1, f"{verb}-equality-deletes": rows}
    kind = f"{verb}-dvs" if file.is_deletion_vector else f"{verb}-position-delete-files"
    return {**found, kind: 1, f"{verb}-position-deletes": rows}
