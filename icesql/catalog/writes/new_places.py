"""Chooses locations of new tables, without files of other tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

from icesql.catalog.writes.change import TableChange
from icesql.errors import CatalogError, StorageError
from icesql.iceberg.metadata.changes.updates import SetLocation
from icesql.storage.open import Storage, is_local, local_spellings


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
