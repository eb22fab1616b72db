"""Find delete files that apply to no live data file: the option remove-dangling-deletes.

Source: Java ``RemoveDanglingDeletesSparkAction``, which uses sequence numbers and partitions.
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


def dangling_deletes(table: Table, snapshot: Snapshot, query: QueryContext) -> list[DataFile]:
    """The live delete files and vectors of a snapshot that apply to no live data file.

    Ignores the bounds of delete files. Reads all manifests.
    """
    reader = ManifestReader(table, query)
    listed = reader.manifests_of(snapshot)
    deletes = [*reader.deletes(listed)]
    if not deletes:
        return []
    data = (
        entries.data_file(index) for entries, index in reader.live(listed, ManifestContent.DATA)
    )
    index = DeleteIndex.of(table, deletes, compare_bounds=False)
    # Files share tuples of many deletes. Each tuple is held, so that its id is not reused.
    applied = {id(each): each for each in map(index.deletes_of, data)}
    needed = {file_key(delete) for each in applied.values() for delete in each}
    return [each for each in deletes if file_key(each) not in needed]
