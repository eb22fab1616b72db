"""The rows of any metadata table, for a scan of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema
from icesql.scan.metadata_tables.file_rows import FileRows, engine_metadata
from icesql.scan.metadata_tables.history_rows import (
    engine_snapshot_rows,
    history_rows,
    metadata_log_rows,
    ref_rows,
    snapshot_rows,
)
from icesql.scan.metadata_tables.manifest_rows import all_manifests, manifests
from icesql.scan.metadata_tables.manifest_walk import ManifestWalk, Row
from icesql.scan.metadata_tables.partition_rows import partitions
from icesql.scan.metadata_tables.schemas import FILE_TABLES
from icesql.scan.table_scan import TableScan


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
