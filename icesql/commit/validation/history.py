"""The snapshots that came to a branch since one of it was scanned, and the files they changed.

Source: Java ``MergingSnapshotProducer.validationHistory``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, rows_changed
from icesql.iceberg.expressions.predicate import Predicate
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.types import IcebergType
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import SpecScan

APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
DELETE: Final = "delete"
REPLACE: Final = "replace"


class History:
    """What happened to a branch of ``table`` between snapshot ``start_id`` and ``head``.

    ``own`` are snapshots of the same change, and what each followed; they are no part of it.
    Raises CommitConflictError where the start is no ancestor of the head any more: what happened
    is not known then, and nothing may be assumed.
    """

    def __init__(
        self,
        table: Table,
        head: Snapshot | None,
        start_id: int | None,
        row_filter: Predicate,
        query: QueryContext,
        *,
        own: Mapping[int, int | None] = MappingProxyType({}),
    ) -> None:
        self.table, self._filter = table, row_filter
        self.snapshots = _since(table, head, start_id, own)
        self._ids = frozenset(each.id_in_manifests for each in self.snapshots)
        self._reader = ManifestReader(table.storage, query, table.name)
        self._specs: dict[int, SpecScan] = {}

    def changed(
        self, operations: Collection[str] | None, content: ManifestContent
    ) -> Iterator[tuple[SpecScan, ManifestFile, ManifestEntries, Sequence[int]]]:
        """The entries that snapshots of these operations (None: all) added or removed."""
        manifests = [
            manifest
            for each in self.snapshots
            if operations is None or each.operation is None or each.operation in operations
            for manifest in self._reader.manifests_of(each)
            if manifest.content is content
            and manifest.added_snapshot_id in (each.id_in_manifests, None)
        ]
        for manifest, entries in self._reader.entries_of(manifests, self._spec_of):
            indexes = [n for n, own in enumerate(entries.snapshot_id) if own in self._ids]
            if indexes:
                yield self.spec(manifest), manifest, entries, indexes

    def spec(self, manifest: ManifestFile) -> SpecScan:
        """The filter as the spec of a manifest sees it."""
        spec_id, metadata = manifest.partition_spec_id, self.table.metadata
        if spec_id not in self._specs:
            spec = metadata.specs.get(spec_id)
            if spec is None:
                raise CorruptFileError(
                    manifest.manifest_path, f"the table has no partition spec {spec_id}"
                )
            self._specs[spec_id] = SpecScan(spec, self._filter, metadata.schema, metadata)
        return self._specs[spec_id]

    def _spec_of(self, manifest: ManifestFile) -> tuple[PartitionSpec, Sequence[IcebergType]]:
        found = self.spec(manifest)
        return found.spec, found.types


def _since(
    table: Table, head: Snapshot | None, start_id: int | None, own: Mapping[int, int | None]
) -> list[Snapshot]:
    """The snapshots after the start, newest first. Only it, and own ones, may be expired."""
    found: list[Snapshot] = []
    current = None if head is None else head.snapshot_id
    seen: set[int] = set()
    while current is not None and current != start_id:
        if current in seen:
            raise CorruptFileError(table.metadata_location, "snapshots are their own ancestors")
        seen.add(current)
        if current in own:
            current = own[current]
            continue
        snapshot = table.metadata.snapshot(current)
        if snapshot is None:
            raise rows_changed(
                f"what happened to {table.name} since the statement read it is not known any "
                f"more: snapshot {current} is expired; run the statement again"
            )
        found.append(snapshot)
        current = snapshot.parent_snapshot_id
    if current is None and start_id is not None:
        raise rows_changed(
            f"the snapshot {start_id} that the statement read is not part of {table.name} any "
            "more; run the statement again"
        )
    return found
