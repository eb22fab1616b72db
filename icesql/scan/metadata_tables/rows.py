"""The rows of any metadata table, for a scan of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.scan.metadata_tables.manifest_rows import (
    FileRows,
    ManifestWalk,
    Row,
    all_manifests,
    engine_metadata,
    manifests,
    partitions,
)
from icesql.scan.metadata_tables.schemas import FILE_TABLES
from icesql.scan.plan import TableScan
from icesql.storage.credentials import redact_urls

# ------------------------------------------------------------------ history


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


# ------------------------------------------------------------------ rows of any table


class PositionDeleteFile(Frozen):
    """A live file of position deletes, with the partition values by partition field id."""

    file: DataFile
    partition: dict[int, Any]


class MetadataRows(Frozen):
    """Rows with the columns of ``schema``, values in the internal form of ``iceberg.types``.

    Structs are dicts by field id. Each pass over ``rows`` reads the metadata again, so that no more
    than one manifest is held. The rows of ``delete_files`` are still to be read: they are those of
    ``position_deletes``.
    """

    schema: Schema
    rows: Iterable[Row] = ()
    delete_files: tuple[PositionDeleteFile, ...] = ()


def metadata_rows(scan: TableScan, query: QueryContext) -> MetadataRows:
    """The rows of ``scan.metadata_table``; a filter is applied only where it saves manifests.

    Only metadata is read, most of it while the rows are. Both raise what planning raises.
    """
    name = scan.metadata_table
    assert name is not None
    walk = ManifestWalk(scan, name, query)
    projection = scan.projection
    if name == "position_deletes":
        return MetadataRows(projection, delete_files=tuple(_position_deletes(walk)))
    return MetadataRows(projection, _Rows(scan, name, walk, query))


class _Rows(Frozen):
    scan: TableScan
    name: str
    walk: ManifestWalk
    query: QueryContext

    def __iter__(self) -> Iterator[Row]:
        rows = self._projected()
        return iter(rows if self.scan.limit is None else islice(rows, self.scan.limit))

    def _projected(self) -> Iterator[Row]:
        scan, name, walk = self.scan, self.name, self.walk
        if name in FILE_TABLES or name in ("entries", "all_entries"):
            made = FileRows(scan.projection, scan.table.metadata.schema, walk)
            found = walk.all_manifests() if name.startswith("all_") else walk.manifests()
            return made.live(found) if name in FILE_TABLES else made.all(found)
        places = {field.field_id: index for index, field in enumerate(scan.schema.fields)}
        wanted = [places[field.field_id] for field in scan.projection.fields]
        rows = _whole_rows(scan, name, walk, self.query)
        return (tuple(row[i] for i in wanted) for row in rows)


_OF_TABLE: Final = {
    "history": history_rows,
    "snapshots": snapshot_rows,
    "iceberg_snapshots": engine_snapshot_rows,
    "refs": ref_rows,
    "metadata_log_entries": metadata_log_rows,
}


def _whole_rows(
    scan: TableScan, name: str, walk: ManifestWalk, query: QueryContext
) -> Iterable[Row]:
    table = scan.table
    if scan.rows is not None:
        return scan.rows(scan, query)
    if name in _OF_TABLE:
        return _OF_TABLE[name](table)
    match name:
        case "manifests":
            return manifests(walk.manifests(), walk, scan.schema)
        case "all_manifests":
            return all_manifests(scan, walk, scan.schema, query)
        case "iceberg_metadata":
            return engine_metadata(walk.manifests(), walk)
        case _:
            assert name == "partitions", name
            return partitions(walk.manifests(), walk, table.metadata)


def _position_deletes(walk: ManifestWalk) -> Iterable[PositionDeleteFile]:
    for entries, index in walk.live(walk.manifests()):
        if entries.content[index] == FileContent.POSITION_DELETES:
            partition = walk.partition_of(entries, index)
            yield PositionDeleteFile(entries.data_file(index), partition)
