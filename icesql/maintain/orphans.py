"""Find files in a table's folder that it does not need: leftovers of failed and killed writes.

Files of other tables of the catalog are never deleted.
Source: Java ``DeleteOrphanFilesSparkAction``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import Final

from icesql.catalog.table import Catalog, Table
from icesql.commit.deletion import OwnPlaces, metadata_files, refuse_kept, refuse_twins
from icesql.context import QueryContext
from icesql.errors import (
    CorruptFileError,
    Error,
    NotSupportedError,
    QueryCancelledError,
    StorageError,
    TableNotFoundError,
)
from icesql.frozen import Frozen
from icesql.iceberg.metadata.table_metadata import TableMetadata, parse_metadata
from icesql.maintain.referenced import Prefixes, Referenced, referenced_paths, wanted_name
from icesql.maintain.relocation.staged import STAGED_LIST, STAGING
from icesql.storage.many_files import ListedFile, list_files
from icesql.storage.new_files import check_writable
from icesql.storage.open import METADATA_BYTES, Storage, is_local, local_spellings
from icesql.write.options import PLACES

# ------------------------------------------------------------------ neighbours in the folder


def refuse_neighbours(
    catalog: Catalog,
    table: Table,
    folder: str,
    files: Sequence[ListedFile],
    query: QueryContext,
    *,
    only_look: bool,
) -> None:
    """Raise NotSupportedError if another table of the catalog has files below ``folder``.

    Checked are its location, write paths and metadata, and, unless ``only_look``, whether its
    manifests name one of ``files``. A table that cannot be read counts as having some. Tables of
    other catalogs are not known.
    """
    inside = _Folder(folder)
    for identifier in catalog.tables():
        if identifier == table.identifier:
            continue
        query.check()
        try:
            other = query.wait_for(partial(catalog.load, identifier))
            found = next((path for path in _places(other) if inside.may_hold(path)), None)
            if found is None and not only_look:
                named = Referenced(other.storage, Prefixes(), referenced_paths(other, query))
                found = next((each.shown for each in files if named.holds(each)), None)
        except TableNotFoundError:
            continue  # dropped meanwhile
        except QueryCancelledError:
            raise
        except Error as error:
            raise NotSupportedError(
                f"not supported: removing orphans in {folder} while nobody can tell whether "
                f"{'.'.join(identifier)} has files there: {error}; mend or drop that table first"
            ) from error
        if found is not None:
            raise NotSupportedError(
                f"not supported: removing orphans in {folder}, where {other.name} has files, too: "
                f"{found}; give a folder of {table.name} alone as location"
            )


def _places(table: Table) -> Iterator[str]:
    metadata = table.metadata
    yield metadata.location
    yield table.metadata_location
    yield from (metadata.properties[each] for each in PLACES if each in metadata.properties)
    yield from metadata_files(table)


class _Folder:
    """A folder, and whether a path may be below it by any of its interpretations."""

    def __init__(self, folder: str) -> None:
        self._names = _names(folder)
        places = local_spellings(folder) if is_local(folder) else []
        self._places = [os.path.realpath(each) for each in places]

    def may_hold(self, path: str) -> bool:
        """True if the path may be below the folder, or be the folder itself."""
        if _names(path)[: len(self._names)] == self._names:
            return True
        if not self._places or not is_local(path) or "\0" in path:
            return False
        found = [os.path.realpath(each) for each in local_spellings(path)]
        return any(
            one == each or one.startswith(each.rstrip("/") + "/")
            for one in found
            for each in self._places
        )


def _names(path: str) -> tuple[str, ...]:
    scheme, authority, inner = Prefixes().of(path)
    return (scheme, authority, *filter(None, inner.split("/")))


# ------------------------------------------------------------------ orphans


DAY_MS: Final = 86_400_000
DEFAULT_AGE_MS: Final = 3 * DAY_MS
# Files of running writers are newer than this.
LEAST_AGE_MS: Final = DAY_MS

# Names of icesql's unfinished files; see storage.output_file and catalog.writes.
_UNFINISHED: Final = re.compile(
    r"\..*\.[0-9a-f]{12}\.part|\.[0-9a-f]{32}\.new|\.[0-9a-f]{16}-version-hint\.temp", re.DOTALL
)
_HINTS: Final = ("version-hint.text", "version-hint.txt")
_METADATA: Final = re.compile(r".*\.metadata\.json(\.gz)?|.*\.gz\.metadata\.json", re.DOTALL)
_UUID: Final = re.compile(rb'"(table|view)-uuid"\s*:\s*"([^"\\]{1,80})"')
_UPDATED: Final = re.compile(rb'"last-updated-ms"\s*:\s*(\d{1,18})\b')
_BEGINNING: Final = 4096


class Orphans(Frozen):
    """The orphans below ``folder``; ``young`` more are too new to be removed."""

    folder: str
    files: tuple[ListedFile, ...]
    listed: int
    young: int
    table: Table

    @property
    def bytes(self) -> int:
        """The total size of the orphans."""
        return sum(each.size for each in self.files)


def find_orphans(
    catalog: Catalog,
    table: Table,
    *,
    older_than_ms: int,
    folder: str | None,
    prefixes: Prefixes,
    delete_below: Sequence[str],
    only_look: bool,
    query: QueryContext,
) -> Orphans:
    """The files below ``folder``, by default the table's location, that the table does not need.

    Only files last modified before ``older_than_ms`` (since 1970). The folder is listed before
    the table is loaded again, so that concurrent commits are known. It must be in the table's
    location, or in a folder of ``delete_below``.

    Raises NotSupportedError for a table with gc.enabled false, for a folder that is not the table's
    own, if it has metadata of another table or view or files of another table of the catalog, and
    if it has metadata of this table newer than the catalog's; StorageError and CorruptFileError if
    a manifest, a folder or possible metadata of another table cannot be read. With ``only_look``
    the manifests of other tables are not read.
    """
    metadata = table.metadata
    refuse_kept(table, "removing orphans")
    check_writable(table.storage)
    refuse_twins(catalog, table, query)
    places = OwnPlaces.of(catalog, table, delete_below)
    start = metadata.location if folder is None else folder
    # Check a name below the folder, since ``hold`` is about files in it.
    if not places.hold(f"{start.rstrip('/')}/x"):
        raise NotSupportedError(
            f"not supported: looking for orphans in {start}, where other tables may have files: "
            f"location is a folder in {places.text or table.metadata_location}. If it is this "
            "table's alone, say so with delete_below => array('folder')"
        )
    fields = {field.name for spec in metadata.specs.values() for field in spec.fields}
    enter = wanted_name(frozenset(each for each in fields if each.startswith(("_", "."))))
    found = list(list_files(table.storage, start, query, enter=enter))
    table = catalog.load(table.identifier)
    referenced = Referenced(table.storage, prefixes, referenced_paths(table, query))
    unneeded = [
        each for each in found if _is_candidate(each.names[-1]) and not referenced.holds(each)
    ]
    _refuse_others(table, unneeded, query)
    old = tuple(each for each in unneeded if each.modified_ms < older_than_ms)
    if old:
        refuse_neighbours(catalog, table, start, old, query, only_look=only_look)
    return Orphans(start, old, len(found), len(unneeded) - len(old), table)


def _is_candidate(name: str) -> bool:
    if name in _HINTS:
        return False
    return not name.startswith(("_", ".")) or _UNFINISHED.fullmatch(name) is not None


def _refuse_others(table: Table, files: Sequence[ListedFile], query: QueryContext) -> None:
    """Raise NotSupportedError if the files include metadata of another table or view.

    Or of this table under another name or catalog: metadata that was written after the known one.
    """
    own = "table", (table.metadata.table_uuid or "").lower()
    log = table.metadata.metadata_log
    since = min((each.timestamp_ms for each in log), default=table.metadata.last_updated_ms)
    later: dict[str, set[str]] = {}
    staged = {each.names[:-1] for each in files if each.names[-1] == STAGED_LIST}
    for each in files:
        if _METADATA.fullmatch(each.names[-1]) is None:
            continue
        query.check()
        owner = _owner(table.storage, each.path)
        if owner is not None and owner != own:
            kind, uuid = owner
            raise NotSupportedError(
                f"not supported: removing orphans where another {kind} lies: {each.shown} is the "
                f"metadata of {kind} {uuid}, this table is {own[1]}; give a folder of this table "
                "alone as location, or remove the other's metadata first if it was dropped"
            )
        if owner == own and not _is_staged(each, staged):
            found = _written_after(table.storage, each.path, since)
            if found is not None and found.last_updated_ms > table.metadata.last_updated_ms:
                raise _copied(table, each)
            if found is not None:
                later[each.names[-1]] = {
                    one.metadata_file.rpartition("/")[2] for one in found.metadata_log
                }
    # A single file may be of a failed commit; one that others were built upon is another history.
    built_upon = {name for names in later.values() for name in names}
    for each in files:
        is_later = each.names[-1] in later and each.names[-1] in built_upon
        if is_later and not _is_staged(each, staged):
            raise _copied(table, each)


def _is_staged(file: ListedFile, staged: Set[tuple[str, ...]]) -> bool:
    """True for a file that rewrite_table_path staged to be copied elsewhere: it is no table."""
    above = [file.names[:length] for length in range(1, len(file.names))]
    return any(each in staged or each[-1].startswith(STAGING) for each in above)


def _written_after(storage: Storage, path: str, since_ms: int) -> TableMetadata | None:
    """Metadata of this table that was written after ``since_ms``; None for other files."""
    start = storage.read(path, length=min(storage.size(path), _BEGINNING))
    updated = _UPDATED.search(start)
    if updated is not None and int(updated[1]) <= since_ms:
        return None
    try:
        found = parse_metadata(storage.read(path, most=METADATA_BYTES), path)
    except CorruptFileError:
        return None  # an incomplete file
    return found if found.last_updated_ms > since_ms else None


def _copied(table: Table, file: ListedFile) -> NotSupportedError:
    return NotSupportedError(
        f"not supported: removing orphans of {table.name} where {file.shown} is metadata of this "
        f"very table (uuid {table.metadata.table_uuid}) that {table.name} does not lead to: the "
        "table may have another name or catalog, too, whose files would go. If a commit failed and "
        "left it, any commit to the table makes it old"
    )


def _owner(storage: Storage, path: str) -> tuple[str, str] | None:
    """The kind ("table" or "view") and uuid of a metadata file; None if it is no metadata.

    Raises StorageError for an existing file that cannot be read: its owner is unknown.
    """
    try:
        size = storage.size(path)
        start = storage.read(path, length=min(size, _BEGINNING))
        found = _UUID.search(start)
        if found is not None:
            return found[1].decode("ascii"), found[2].decode("ascii", "replace").lower()
        from icesql.iceberg.metadata.table_metadata import metadata_document

        try:
            document = metadata_document(storage.read(path, most=METADATA_BYTES), path)
        except CorruptFileError:
            return None  # an incomplete file, or no metadata
    except StorageError:
        if storage.exists(path):
            raise
        return None  # removed meanwhile
    for kind in ("table", "view"):
        uuid = document.get(f"{kind}-uuid")
        if isinstance(uuid, str):
            return kind, uuid.lower()
    return None
