"""The summary of a snapshot: counts of added and removed files and rows, and totals.

Source: Java ``SnapshotSummary`` and ``SnapshotProducer.updateTotal``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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


def counts(
    files: Iterable[tuple[Literal["added", "removed"], DataFile, str]],
    duplicates: int,
    partition_limit: int,
) -> dict[str, str]:
    """The counts of added and removed files as summary keys; zeros are left out.

    Each file comes with the path of its partition. ``duplicates`` are removed files that the table
    listed more than once, ``partition_limit`` is the largest number of partitions that get their
    own counts.
    """
    whole: Counter[str] = Counter()
    partitions: dict[str, Counter[str]] = {}
    for verb, file, partition in files:
        for each in (whole, partitions.setdefault(partition, Counter())):
            each.update(_counted(file, verb))
    whole["deleted-duplicate-files"] = duplicates
    found = {key: str(number) for key, number in whole.items() if number > 0}
    found["changed-partition-count"] = str(len(partitions))
    if 0 < len(partitions) <= partition_limit:
        found["partition-summaries-included"] = "true"
        for path, each in partitions.items():
            if path:
                text = ",".join(f"{key}={number}" for key, number in each.items() if number)
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
