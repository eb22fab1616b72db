"""Rows of the tables about snapshots, refs and metadata files: metadata JSON alone."""

from __future__ import annotations

from collections.abc import Iterator

from icesql.catalog.table import Table
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.metadata_tables.manifest_walk import Row
from icesql.storage.credentials import redact_urls


def history_rows(table: Table) -> Iterator[Row]:
    """Each time that ``main`` moved, oldest first; parent_id is NULL for an expired snapshot."""
    metadata = table.metadata
    ancestors = {each.snapshot_id for each in metadata.ancestry(metadata.current_snapshot)}
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot(entry.snapshot_id)
        yield (
            entry.timestamp_ms * 1000,
            entry.snapshot_id,
            None if snapshot is None else snapshot.parent_snapshot_id,
            entry.snapshot_id in ancestors,
        )


def snapshot_rows(table: Table) -> Iterator[Row]:
    """The snapshots that the table still has, in the order of its metadata."""
    for each in table.metadata.snapshots.values():
        yield (
            each.timestamp_ms * 1000,
            each.snapshot_id,
            each.parent_snapshot_id,
            each.operation,
            _shown(each.manifest_list),
            {key: redact_urls(value) for key, value in each.summary.items()},
        )


def engine_snapshot_rows(table: Table) -> Iterator[Row]:
    """As DuckDB's ``iceberg_snapshots`` has them."""
    for each in table.metadata.snapshots.values():
        yield (
            each.sequence_number,
            each.snapshot_id,
            each.timestamp_ms * 1000,
            _shown(each.manifest_list),
        )


def ref_rows(table: Table) -> Iterator[Row]:
    """Branches and tags."""
    for name, ref in table.metadata.refs.items():
        yield (
            name,
            ref.kind.upper(),
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
        )


def metadata_log_rows(table: Table) -> Iterator[Row]:
    """The metadata files that the table remembers, the current one last."""
    metadata = table.metadata
    files = [(each.timestamp_ms, each.metadata_file) for each in metadata.metadata_log]
    for timestamp_ms, path in (*files, (metadata.last_updated_ms, table.metadata_location)):
        snapshot_id = _current_at(metadata, timestamp_ms)
        snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
        yield (
            timestamp_ms * 1000,
            redact_urls(path),
            snapshot_id,
            None if snapshot is None else snapshot.schema_id,
            None if snapshot is None else snapshot.sequence_number,
        )


def _current_at(metadata: TableMetadata, timestamp_ms: int) -> int | None:
    """The snapshot id of ``main`` at an instant, even if the snapshot has expired."""
    past = [each for each in metadata.snapshot_log if each.timestamp_ms <= timestamp_ms]
    return past[-1].snapshot_id if past else None


def _shown(path: str | None) -> str | None:
    return None if path is None else redact_urls(path)
