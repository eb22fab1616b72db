"""Drop a table with all of its files.

Source: Java ``CatalogUtil.dropTableData``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from icesql.catalog.table import Catalog, Table
from icesql.commit.own_places import OwnPlaces, kept_note, refuse_twins
from icesql.context import QueryContext
from icesql.errors import Error, QueryCancelledError
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.new_file import check_writable
from icesql.storage.removal import remove_files


def drop_table(
    catalog: Catalog,
    table: Table,
    *,
    purge: bool = False,
    delete_below: Sequence[str] = (),
    tell: Callable[[str], None] = lambda note: None,
    query: QueryContext | None = None,
) -> int:
    """Take a table out of its catalog; the number of files that were deleted with ``purge``.

    Those go that lie below the table's location or a folder of ``delete_below``; ``tell`` is given
    a note of the others. Data files stay where the property gc.enabled is false: another table may
    have them. Files are looked for before the table is dropped, and deleted after: data first, so
    that a drop that is cut short leaves orphans at most. Catalogs that delete files themselves are
    asked to.

    Raises what ``Catalog.drop`` does, and where a manifest cannot be read, before anything is done;
    a folder of tables removes that of the table all the same.
    """
    places = OwnPlaces.of(catalog, table, delete_below)
    context = query or QueryContext()
    if purge:
        check_writable(table.storage)
        refuse_twins(catalog, table, context)
    if not purge or catalog.kind == "rest":
        catalog.drop(table.identifier, purge=purge)
        return 0
    found: list[str] = []
    note = ""
    try:
        found += dict.fromkeys(_files(table, context))
    except QueryCancelledError:
        raise
    except Error as error:
        if catalog.kind != "directory":
            raise
        note = f"files outside of {places.text} stayed, if there are any: {error}"
    files = [each for each in found if places.hold(each)]
    note = note or kept_note([each for each in found if places.lack(each)], places)
    catalog.drop(table.identifier, purge=True)
    if catalog.kind == "directory":  # the folder is gone with all that is in it
        files = [each for each in files if places.class_of(each) == "named"]
    left = remove_files(table.storage, files, context, allowed=places.hold)
    if note:
        tell(note)
    return len(files) - len(left)


def _files(table: Table, query: QueryContext) -> Iterator[str]:
    metadata = table.metadata
    reader = ManifestReader(table, query)
    manifests = reader.all_manifests_of(metadata.snapshots.values())
    if metadata.properties.get("gc.enabled", "true").lower() != "false":
        for _, entries in reader.entries_of([*manifests.values()]):
            yield from entries.path
    yield from manifests
    for snapshot in metadata.snapshots.values():
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
    for file in metadata.statistics_files:
        yield file.statistics_path
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield table.metadata_location
