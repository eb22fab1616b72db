"""Delete files that apply to no live data file any more: the option remove-dangling-deletes.

Source: Java ``RemoveDanglingDeletesSparkAction``, which goes by sequence numbers and partitions.
"""

from __future__ import annotations

from icesql.catalog.table import Table
from icesql.commit.files import file_key
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs


def dangling_deletes(table: Table, snapshot: Snapshot, query: QueryContext) -> list[DataFile]:
    """The live delete files and vectors of a snapshot that no live data file needs.

    What their bounds say is left aside. All manifests are read.
    """
    metadata = table.metadata
    specs = typed_specs(metadata)
    reader = ManifestReader(table.storage, query, table.name)
    listed = [each for each in reader.manifests_of(snapshot) if each.has_live_files]
    found: dict[ManifestContent, list[DataFile]] = {each: [] for each in ManifestContent}
    if all(each.content is ManifestContent.DATA for each in listed):
        return []
    for manifest, entries in reader.entries_of(listed, lambda each: specs[each.partition_spec_id]):
        live = [index for index, alive in enumerate(entries.live) if alive]
        found[manifest.content] += [entries.data_file(index) for index in live]
    deletes = found[ManifestContent.DELETES]
    index = DeleteIndex(
        deletes,
        metadata.specs,
        metadata.file_schema,
        table.storage.same_file_key,
        compare_bounds=False,
    )
    # Files share tuples of many deletes. Each is held, or another might come at its address.
    applied = {id(each): each for each in map(index.deletes_of, found[ManifestContent.DATA])}
    needed = {file_key(delete) for each in applied.values() for delete in each}
    return [each for each in deletes if file_key(each) not in needed]
