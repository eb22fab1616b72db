"""Drop a table with all of its files.

Source: Java ``CatalogUtil.dropTableData``.
"""

from __future__ import annotations

from collections.abc import Iterator

from icesql.catalog.table import Catalog, Table
from icesql.context import QueryContext
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs
from icesql.storage.new_file import check_writable
from icesql.storage.removal import remove_files

_DELETES_FILES = ("directory", "rest")


def drop_table(
    catalog: Catalog, table: Table, *, purge: bool = False, query: QueryContext | None = None
) -> int:
    """Take a table out of its catalog; the number of files that were deleted with ``purge``.

    Data files stay where the property gc.enabled is false: another table may have them. Files are
    looked for before the table is dropped, and deleted after: data first, so that a drop that is
    cut short leaves orphans at most. Catalogs that delete files themselves are asked to.

    Raises what ``Catalog.drop`` does, and where a manifest cannot be read, before anything is done.
    """
    if not purge or catalog.kind in _DELETES_FILES:
        catalog.drop(table.identifier, purge=purge)
        return 0
    check_writable(table.storage)
    context = query or QueryContext()
    found = list(dict.fromkeys(_files(table, context)))
    catalog.drop(table.identifier, purge=True)
    return len(found) - len(remove_files(table.storage, found, context))


def _files(table: Table, query: QueryContext) -> Iterator[str]:
    metadata = table.metadata
    reader = ManifestReader(table.storage, query, table.name)
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots.values():
        for each in reader.manifests_of(snapshot):
            manifests.setdefault(each.manifest_path, each)
    if metadata.properties.get("gc.enabled", "true").lower() != "false":
        specs = typed_specs(metadata)
        walk = reader.entries_of(
            [*manifests.values()], lambda manifest: specs[manifest.partition_spec_id]
        )
        for _, entries in walk:
            yield from entries.path
    yield from manifests
    for snapshot in metadata.snapshots.values():
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
    for file in (*metadata.statistics, *metadata.partition_statistics):
        yield file.statistics_path
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield table.metadata_location
