"""Drops tables with their files, and decides where files of a table may be deleted.

Paths in a table's metadata are not trusted. Source: Java ``CatalogUtil.dropTableData``.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal
from weakref import WeakKeyDictionary

from icesql.catalog.table import Catalog, Identifier, Table, table_folder
from icesql.context import QueryContext
from icesql.errors import (
    CatalogError,
    DataError,
    Error,
    NotSupportedError,
    ProgrammingError,
    QueryCancelledError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
)
from icesql.frozen import Frozen
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.many_files import remove_files
from icesql.storage.new_files import check_writable
from icesql.storage.roots import Roots

Class = Literal["own", "named", "elsewhere"]

_MOST_LISTED: Final = 100
# How long the uuids and locations of a catalog's tables are cached: the longer of this time and
# a multiple of the time that loading them took.
_SECONDS_KNOWN: Final = 60
_TIMES_KNOWN: Final = 20
_PASSED_OVER: Final = (
    CatalogError, StorageError, DataError, TableNotFoundError, UnsupportedTableError,
)  # fmt: skip
# By catalog: when the cached marks (uuid and location) of its tables expire, and the marks.
_seen: WeakKeyDictionary[Catalog, tuple[float, dict[Identifier, frozenset[str]]]] = (
    WeakKeyDictionary()
)


class OwnPlaces(Frozen):
    """The table's location according to its catalog, and the folders that the caller names.

    ``everything``: the caller accepts all paths in the metadata. A folder that only the metadata
    names, such as ``write.data.path``, does not count as the table's: a writer of the table could
    have set it to somebody else's folder.
    """

    own: Roots
    named: Roots
    everything: bool

    @classmethod
    def of(
        cls, catalog: Catalog, table: Table, named: Iterable[str] = (), *, everything: bool = False
    ) -> OwnPlaces:
        """The places of a table. Raises ProgrammingError if a name is no folder or prefix."""
        return cls(own_root(catalog, table), named_roots(named), everything)

    def class_of(self, path: str) -> Class:
        """Whether a path is below the table's location, a folder of the caller's, or neither."""
        if self.own.hold_for_removal(path):
            return "own"
        return "named" if self.named.hold_for_removal(path) else "elsewhere"

    def hold(self, path: str) -> bool:
        """True if a file may be deleted; symbolic links are resolved now."""
        return self.everything or self.class_of(path) != "elsewhere"

    def lack(self, path: str) -> bool:
        """The opposite of ``hold``."""
        return not self.hold(path)

    @property
    def text(self) -> str:
        """The places for people."""
        return ", ".join((*self.own.texts, *self.named.texts))


def refuse_twins(catalog: Catalog, table: Table, query: QueryContext) -> None:
    """Raise NotSupportedError if another name of the catalog has the table's uuid or location.

    Deleting files of one would delete files of the other. Tables that cannot be loaded are skipped.
    The marks of the other tables are cached for a minute, or for 20 times as long as loading them
    took: a run over all tables then spends a twentieth of its time on this check.
    """
    began = time.monotonic()
    until, known = _seen.get(catalog, (0.0, {}))
    if is_over := began > until:
        known = {}
    for identifier in query.wait_for(catalog.tables):
        query.check()
        if identifier not in known and identifier != table.identifier:
            with suppress(*_PASSED_OVER):
                other = query.wait_for(partial(catalog.load, identifier))
                check_writable(other.storage)  # the files of a copied folder are its own
                known[identifier] = _marks(other)
    if is_over:
        now = time.monotonic()
        _seen[catalog] = now + max(_SECONDS_KNOWN, _TIMES_KNOWN * (now - began)), known
    mine = _marks(table)
    for identifier, marks in [*known.items()]:
        if identifier == table.identifier or mine.isdisjoint(marks):
            continue
        with suppress(*_PASSED_OVER):
            if mine.isdisjoint(_marks(query.wait_for(partial(catalog.load, identifier)))):
                continue
            one, two = sorted((table.name, ".".join(identifier)))
            raise NotSupportedError(
                f"not supported: deleting files of {one} or {two}, which have one uuid or one "
                "location: the files of one are those of the other. Drop one of the names first, "
                "without PURGE"
            )


def _marks(table: Table) -> frozenset[str]:
    metadata = table.metadata
    found = ((metadata.table_uuid or "").lower(), metadata.location.rstrip("/"))
    return frozenset(filter(None, found))


def own_root(catalog: Catalog, table: Table) -> Roots:
    """A table's folder according to its catalog.

    A REST catalog sends the location. Other catalogs name only the metadata file, and its writer
    chose the location in it, so the folder of the file is used.
    """
    rest = catalog.kind == "rest"
    folder = table.metadata.location if rest else table_folder(table.metadata_location)
    try:
        return Roots.of([] if folder == "/" else [folder])
    except ValueError:  # only a scheme
        return Roots.of([])


def named_roots(folders: Iterable[str]) -> Roots:
    """The folders and prefixes that a caller names. Raises ProgrammingError."""
    try:
        found = Roots.of(folders)
    except ValueError as error:
        raise ProgrammingError(f"delete_below: {error}") from error
    if any("/" in place for place in found.local):
        raise ProgrammingError("delete_below: / is no folder of a table")
    return found


def keeps_files(properties: Mapping[str, str]) -> bool:
    """True if other tables may need files of a table with these properties."""
    return properties.get("gc.enabled", "true").lower() == "false"


def refuse_kept(table: Table, what: str) -> None:
    """Raise NotSupportedError for a table whose files other tables may need."""
    if keeps_files(table.metadata.properties):
        raise NotSupportedError(
            f"not supported: {what} of {table.name}, whose property gc.enabled is false: other "
            "tables may need its files"
        )


def folders_of(setting: str | None) -> list[str]:
    """The folders of the setting ``delete_below``, separated by commas."""
    return [each.strip() for each in (setting or "").split(",") if each.strip()]


def kept_note(paths: Sequence[str], places: OwnPlaces, *options: str) -> str:
    """A note about files that were kept because they lie elsewhere, and the options to delete them.

    "" if there are none. ``options`` are options of the statement that would include them.
    """
    if not paths:
        return ""
    count = len(paths)
    listed = ", ".join(paths[:_MOST_LISTED])
    more = f" and {count - _MOST_LISTED:,} more" if count > _MOST_LISTED else ""
    ways = " or ".join((*options, "SET delete_below = 'folder'"))
    return (
        f"{count:,} file{'s' * (count != 1)} outside of "
        f"{places.text or 'the location of the table'} stayed, whoever they belong to: "
        f"{listed}{more}; if such a folder is the table's, say so with {ways}"
    )


# ------------------------------------------------------------------ dropped tables


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
