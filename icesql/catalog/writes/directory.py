"""Commits to a folder of tables: the next version is linked to its name, which one writer can do.

Source: Iceberg Java ``HadoopTableOperations`` and ``HadoopCatalog``.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from icesql.catalog.current_metadata import find_current_metadata, hadoop_version
from icesql.catalog.table import Identifier
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange
from icesql.errors import CatalogError, NotSupportedError, StorageError
from icesql.iceberg.metadata.file_names import is_gzipped
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.storage.open import Storage, os_problem, storage_error
from icesql.storage.reroot import is_local, local_spellings

_OTHER_FOLDER: Final = "write.metadata.path"


def swap(
    identifier: Sequence[str], folder: str, base_location: str | None, change: TableChange
) -> Swap:
    """As ``Catalog.swap`` for the table in ``folder``."""
    metadata, name = os.path.join(folder, "metadata"), ".".join(identifier)
    version = 0
    if base_location is not None:
        found = hadoop_version(os.path.basename(base_location))
        if found is None:
            raise NotSupportedError(
                f"not supported: commits to {name} through a warehouse folder; "
                "its files are named by another catalog, commit through that one"
            )
        version = found
    current = find_current_metadata(metadata, Storage())
    if current != base_location:
        return Conflict(
            f"the table {name} is no longer at {base_location}"
            if base_location is not None
            else f"the table {name} was created meanwhile"
        )
    document = change.document(base_location)
    _check(document, folder, name)
    # Both spellings of a version count as taken. Which one is taken follows from what all
    # writers of that version read, so that two of them never take one each.
    gzipped = is_gzipped({} if base_location is None else _properties(base_location, change))
    final = os.path.join(metadata, f"v{version + 1}{'.gz' if gzipped else ''}.metadata.json")
    if not _link_new(metadata_bytes(document, gzipped=gzipped), final):
        return Conflict(f"{final} was committed meanwhile")
    write_hint(metadata, version + 1)
    return Done(final)


def _properties(base_location: str, change: TableChange) -> dict[str, str]:
    from icesql.catalog.current_metadata import read_metadata

    return dict(read_metadata(base_location, change.storage).properties)


def _check(document: dict[str, Any], folder: str, name: str) -> None:
    """Raise NotSupportedError where other readers of the folder would not find the table."""
    location = str(document["location"])
    here = os.path.realpath(folder)
    places = local_spellings(location) if is_local(location) else []
    if not any(os.path.realpath(place) == here for place in places):
        raise NotSupportedError(
            f"not supported: the table {name} in a warehouse folder at another location, "
            f"{location}; it is found by its folder {folder}"
        )
    if document["properties"].get(_OTHER_FOLDER):
        raise NotSupportedError(
            f"not supported: {_OTHER_FOLDER} for {name}, a table in a warehouse folder"
        )


def _link_new(data: bytes, final: str) -> bool:
    """Let ``data`` appear under a name, whole; False where another writer has taken the name."""
    folder = os.path.dirname(final)
    # No reader takes it for metadata: it begins with a dot.
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.new")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        stem = final.removesuffix(".metadata.json").removesuffix(".gz")
        if any(os.path.lexists(f"{stem}{each}.metadata.json") for each in ("", ".gz")):
            return False
        try:
            os.link(temporary, final)  # unlike rename, this never replaces
        except FileExistsError:
            return False
        except OSError as error:
            # A file system over a network may have done it and lost the answer.
            if not _is_linked(temporary, final):
                raise _without_links(final, error) from error
        _sync_folder(folder)
        return True
    except OSError as error:
        raise StorageError(final, os_problem(error), verb="write") from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _is_linked(temporary: str, final: str) -> bool:
    try:
        return os.path.samefile(temporary, final)
    except OSError:
        return False


def _without_links(final: str, error: OSError) -> StorageError:
    return StorageError(
        final,
        f"a version is committed by a hard link, which failed here ({error.strerror}); "
        "without links two writers could commit the same version",
    )


def _sync_folder(folder: str) -> None:
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def write_hint(folder: str, version: int) -> None:
    """Best effort, as in Java: readers probe upwards from a hint that lags."""
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}-version-hint.temp")
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(str(version))
        os.replace(temporary, os.path.join(folder, "version-hint.text"))
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)


# ------------------------------------------------------------------ folders


def check_parts(parts: Sequence[str]) -> None:
    """Raise CatalogError for names that are no folder names, or are hidden ones."""
    for part in parts:
        if part in ("", ".", "..") or part[0] in "._" or "/" in part or "\0" in part:
            raise CatalogError(
                f'"{part}" cannot be a name in a warehouse folder, where names are folders'
            )


def create_namespace(folder: str, namespace: Identifier) -> None:
    """Make the folder of a namespace, and those around it. Raises CatalogError."""
    check_parts(namespace)
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.mkdir(folder)
    except FileExistsError as error:
        raise CatalogError(f"namespace {'.'.join(namespace)} exists already") from error
    except OSError as error:
        raise storage_error(folder, error) from error


def drop_namespace(folder: str, namespace: Identifier) -> None:
    """Remove the folder of a namespace if nothing is in it. Raises CatalogError."""
    try:
        os.rmdir(folder)
    except OSError as error:
        if os.path.isdir(folder) and os.listdir(folder):
            raise CatalogError(f"namespace {'.'.join(namespace)} is not empty") from error
        raise storage_error(folder, error) from error


def remove_table(folder: str) -> None:
    """Delete the folder of a table: its metadata first, so that no half of it is a table."""
    try:
        gone = os.path.join(folder, f".{uuid.uuid4().hex}.gone")
        os.rename(os.path.join(folder, "metadata"), gone)
        shutil.rmtree(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
