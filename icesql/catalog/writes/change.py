"""A change of one table, applied as a whole or not at all; its outcome; locations of new tables."""

from __future__ import annotations

import gzip
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from icesql.catalog.current_metadata import keep_written, written_document
from icesql.errors import CatalogError, CommitConflictError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.changes.apply import apply_updates
from icesql.iceberg.metadata.changes.updates import (
    AssertTableUuid,
    Requirement,
    SetLocation,
    Update,
)
from icesql.iceberg.metadata.table_metadata import metadata_document
from icesql.iceberg.metadata.writing import (
    metadata_bytes,
    metadata_folder,
    next_metadata_name,
    wants_gzip,
)
from icesql.storage.new_files import NewFile, remove_file
from icesql.storage.open import METADATA_BYTES, Storage, is_local, local_spellings


class MadeMetadata(Frozen):
    """The JSON of a new metadata file, and its bytes without gzip."""

    document: dict[str, Any]
    data: bytes

    def packed(self, *, gzipped: bool) -> bytes:
        """The bytes of the file."""
        return gzip.compress(self.data) if gzipped else self.data


class TableChange(Frozen):
    """Updates of a table, in their order, and the requirements for applying them.

    ``storage`` reads and writes the table's files; ``now_ms`` (since 1970, UTC) is the time of the
    change. For most catalogs icesql writes the next metadata file; a REST catalog gets the updates
    and requirements.
    """

    updates: tuple[Update, ...]
    requirements: tuple[Requirement, ...]
    storage: Storage
    now_ms: int

    def made(self, base_location: str | None) -> MadeMetadata:
        """The metadata after the change of the file ``base_location``; None creates the table.

        Raises as ``apply_updates`` does, and CommitConflictError if ``base_location`` belongs to
        another table by now: a table that is dropped and created again starts at v1 again.
        """
        base = None
        if base_location is not None:
            base = written_document(base_location, self.storage)
            if base is None:
                base = metadata_document(
                    self.storage.read(base_location, most=METADATA_BYTES), base_location
                )
            self._check_table(base)
        document = apply_updates(
            base, self.updates, now_ms=self.now_ms, base_location=base_location
        )
        return MadeMetadata(document, metadata_bytes(document))

    def _check_table(self, base: dict[str, Any]) -> None:
        found = str(base.get("table-uuid") or "").lower()
        for each in self.requirements:
            if isinstance(each, AssertTableUuid) and each.uuid.lower() != found:
                raise CommitConflictError("another table has its name now")


class Done(Frozen):
    """The change was applied; ``location`` is the metadata file that it made current."""

    location: str


class Conflict(Frozen):
    """The change was not applied: the table has changed since its base.

    That is certain, unless the conflict ``may_be_ours``: a client or proxy may send a request
    twice, and the second one then conflicts with the first. The table's metadata shows whether the
    first was applied.
    """

    reason: str
    may_be_ours: bool = False


class Unknown(Frozen):
    """The change was sent; it may have been applied, or may still be applied later.

    ``location`` is its metadata file, None if the catalog chooses its name. If the server
    ``is_busy``, the same change may be sent again.
    """

    reason: str
    location: str | None = None
    is_busy: bool = False


Swap = Done | Conflict | Unknown


def swap_file(change: TableChange, base_location: str | None, point: Callable[[str], Swap]) -> Swap:
    """Write the metadata file of a change, and call ``point`` to make it the current one.

    ``point`` sets a catalog's pointer to the file, and raises only if it did not. The file of a
    change that was certainly not applied is deleted. If ``point`` is interrupted (Ctrl-C may arrive
    after the database has committed), the file stays: it may be the current one.
    """
    made = change.made(base_location)
    document = made.document
    properties = document["properties"]
    gzipped = wants_gzip(properties)
    name = next_metadata_name(base_location, str(uuid.uuid4()), gzipped=gzipped)
    location = f"{metadata_folder(document['location'], properties)}/{name}"
    with NewFile(change.storage, location) as file:
        file.write(made.packed(gzipped=gzipped))
    found = pointed(change.storage, location, point)
    if isinstance(found, Done):
        keep_written(location, change.storage, document, len(made.data))
    return found


def pointed(storage: Storage, location: str, point: Callable[[str], Swap]) -> Swap:
    """Call ``point`` with a metadata file; remove the file if it was certainly not applied."""
    try:
        found = point(location)
    except Exception:
        remove_file(storage, location)
        raise
    if isinstance(found, Conflict):
        remove_file(storage, location)
    return found


class Place(Frozen):
    """The location of a new table, and the storage that writes to it."""

    location: str
    storage: Storage


# ------------------------------------------------------------------ locations of new tables


def requested_location(change: TableChange) -> str | None:
    """The location that a change sets; None if the catalog is to choose it."""
    found = [each.location for each in change.updates if isinstance(each, SetLocation)]
    return found[-1].rstrip("/") or found[-1] if found else None


def default_location(warehouse: str, identifier: Sequence[str]) -> str:
    """``<warehouse>/<namespace…>/<table>``. Raises CatalogError for parts such as "..", "a/b"."""
    for part in identifier:
        if part in ("", ".", "..") or "/" in part or "\0" in part:
            raise CatalogError(f'"{part}" cannot be part of a path; name a LOCATION for the table')
    return "/".join((warehouse.rstrip("/"), *identifier))


def free_location(change: TableChange, location: str, storage: Storage, name: str) -> str:
    """The location, or one with a suffix if files of a dropped table are left there.

    Raises CatalogError if there are files and the change sets this location explicitly.
    """
    if requested_location(change) is not None:
        check_empty(location, storage, name)
        return location
    return f"{location}-{uuid4().hex[:8]}" if _is_taken(location, storage) else location


def check_empty(location: str, storage: Storage, name: str) -> None:
    """Raise CatalogError if there are files at a location: two tables must not share a folder.

    Removing the orphan files of one would remove the files of the other.
    """
    if _is_taken(location, storage):
        raise CatalogError(
            f"cannot create {name}: there are files at {location} already; "
            "name another LOCATION, or remove them"
        )


def _is_taken(location: str, storage: Storage) -> bool:
    if is_local(location):
        folder, taken = local_spellings(location)[0], False
        with suppress(OSError):
            taken = os.path.lexists(folder) and (not os.path.isdir(folder) or _has_files(folder))
    else:
        try:
            taken = bool(storage.list_folder(f"{location}/metadata"))
        except StorageError:
            taken = False
    return taken


def _has_files(folder: str) -> bool:
    """True if a folder contains anything but folders, which DROP TABLE … PURGE leaves behind."""

    def unreadable(error: OSError) -> None:
        raise error

    walk = os.walk(folder, onerror=unreadable)
    return any(
        files or any(os.path.islink(os.path.join(place, name)) for name in folders)
        for place, folders, files in walk
    )
