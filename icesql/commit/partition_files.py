"""The live files of whole partitions, data and deletes, which others replace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icesql.catalog.table import Table
from icesql.commit.validation.validation import Partition
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.deletes.delete_index import partition_key
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import SpecScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icesql.iceberg.manifest.manifest import ManifestFile
    from icesql.iceberg.partitioning import PartitionSpec
    from icesql.iceberg.types import IcebergType


def partition_files(
    table: Table, head: Snapshot | None, partitions: Iterable[Partition], query: QueryContext
) -> tuple[DataFile, ...]:
    """The files of these partitions that a snapshot has; those of other specs are left out."""
    wanted = {(spec_id, partition_key(partition)) for spec_id, partition in partitions}
    if head is None or not wanted:
        return ()
    metadata = table.metadata
    reader = ManifestReader(table.storage, query, table.name)
    specs = {
        spec_id: SpecScan(metadata.specs[spec_id], ALWAYS_TRUE, metadata.schema, metadata)
        for spec_id in {spec_id for spec_id, _ in wanted}
    }
    manifests = [
        each
        for each in reader.manifests_of(head)
        if each.partition_spec_id in specs and each.has_live_files
    ]

    def spec_of(manifest: ManifestFile) -> tuple[PartitionSpec, Sequence[IcebergType]]:
        spec = specs[manifest.partition_spec_id]
        return spec.spec, spec.types

    found: list[DataFile] = []
    for _, entries in reader.entries_of(manifests, spec_of):
        for index, alive in enumerate(entries.live):
            if alive:
                file = entries.data_file(index)
                if (file.spec_id, partition_key(file.partition)) in wanted:
                    found.append(file)
    return tuple(found)
