"""Drops a table, optionally with all of its files.

Source: Java ``CatalogUtil.dropTableData``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from icesql.catalog.table import Catalog, Table
from icesql.commit.own_places import OwnPlaces, keeps_files, kept_note, refuse_twins
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
    query: QueryContext | None = None,
) -> str:
    """Remove a table from its catalog, and with ``purge`` its files; return a note about others.

    Files below the table's location or a folder of ``delete_below`` are deleted. Data files are
    kept if the property gc.enabled is false: another table may use them. Files are listed before
    the table is dropped, and deleted afterwards, data first, so that an interrupted drop leaves
    only orphan files. A REST catalog deletes the files itself.

    Raises as ``Catalog.drop``, and if a manifest cannot be read, before any change; but a catalog
    of folders then still removes the table's folder.
    """
    places = OwnPlaces.of(catalog, table, delete_below)
    context = query or QueryContext()
    if purge:
        check_writable(table.storage)
        refuse_twins(catalog, table, context)
    if not purge or catalog.kind == "rest":
        catalog.drop(table.identifier, purge=purge)
        return ""
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
    if catalog.kind == "directory":  # drop has removed the table's folder
        files = [each for each in files if places.class_of(each) == "named"]
    remove_files(table.storage, files, context, allowed=places.hold)
    return note


def _files(table: Table, query: QueryContext) -> Iterator[str]:
    metadata = table.metadata
    reader = ManifestReader(table, query)
    manifests = reader.all_manifests_of(metadata.snapshots.values())
    if not keeps_files(metadata.properties):
        for _, entries in reader.entries_of([*manifests.values()]):
            yield from entries.path
    yield from manifests
    yield from metadata_files(table)


def metadata_files(table: Table, gone: Collection[int] = ()) -> Iterator[str]:
    """Manifest lists and statistics of all snapshots but those ``gone``; the metadata files."""
    metadata = table.metadata
    stay = [each for number, each in metadata.snapshots.items() if number not in gone]
    yield from (each.manifest_list for each in stay if each.manifest_list is not None)
    for file in metadata.statistics_files:
        if file.snapshot_id not in gone:
            yield file.statistics_path
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield table.metadata_location
