"""Rows of ``partitions``: the totals of the live files of each partition.

Source: Java ``PartitionsTable``; deletion vectors count as position deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.metadata_tables.manifest_walk import ManifestWalk, Row


class PartitionTotals(Struct):
    """The totals of a partition; ``updated_ms`` is since 1970, ``values`` are by field id."""

    values: dict[int, Any]
    spec_id: int
    rows: int = 0
    files: int = 0
    size: int = 0
    position_deletes: int = 0
    position_delete_files: int = 0
    equality_deletes: int = 0
    equality_delete_files: int = 0
    vectors: int = 0
    updated_ms: int | None = None
    updated_by: int | None = None

    def add(self, content: int, rows: int, size: int, *, is_vector: bool = False) -> None:
        """Count a live file."""
        rows = max(rows, 0)
        match content:
            case FileContent.DATA:
                self.rows += rows
                self.files += 1
                self.size += size
            case FileContent.POSITION_DELETES:
                self.position_deletes += rows
                self.position_delete_files += not is_vector
                self.vectors += is_vector
            case _:
                self.equality_deletes += rows
                self.equality_delete_files += 1

    def touch(self, snapshot_id: int | None, spec_id: int, metadata: TableMetadata) -> None:
        """Record the last snapshot that changed the partition, if the table still has it."""
        snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
        if snapshot is not None and (
            self.updated_ms is None or snapshot.timestamp_ms > self.updated_ms
        ):
            self.spec_id = spec_id
            self.updated_ms, self.updated_by = snapshot.timestamp_ms, snapshot.snapshot_id


def partitions(
    manifests: Sequence[ManifestFile], walk: ManifestWalk, metadata: TableMetadata
) -> Iterator[Row]:
    """One row for each partition of each spec, in the order in which manifests name them.

    As in Java, specs with the same number of fields share a row for equal values, all NULL for one;
    ``spec_id`` is then that of the latest update. ``last_updated_*`` are NULL where the snapshot
    has expired.
    """
    fields = [each.field_id for each in united_partition_type(metadata).fields]
    found: dict[tuple[Any, ...], PartitionTotals] = {}
    for entries, index in walk.live(manifests):
        values = walk.partition_of(entries, index)
        width = len(metadata.specs[entries.spec_id].fields)
        key = (width, *(_key(values.get(each)) for each in fields))
        if key not in found:
            found[key] = PartitionTotals(values, entries.spec_id)
        size = entries.file_size_in_bytes[index]
        found[key].add(entries.content[index], entries.record_count[index], size)
        found[key].touch(entries.snapshot_id[index], entries.spec_id, metadata)
    for each in found.values():
        spec = (each.values, each.spec_id) if fields else ()
        updated = None if each.updated_ms is None else each.updated_ms * 1000
        totals = astuple(each)[2:-3]
        yield (*spec, *totals, updated, each.updated_by)


def _key(value: Any) -> Any:
    # NaN differs from itself, and 0.0 equals -0.0, where Iceberg has one and two partitions.
    return repr(value) if isinstance(value, float) else value
