"""Read what is moved: a version of the metadata, a snapshot's manifests, paths that these list.

Rewrites the paths in the JSON of table metadata; everything else in it stays unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.edits import ListedPath, NewPath, edit_manifest
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile, snapshot_manifests
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import (
    TableMetadata,
    metadata_document,
    parse_metadata,
)
from icesql.storage.open import MANIFEST_LIST_BYTES, METADATA_BYTES, Storage
from icesql.write.locations import PLACES

# The kinds of objects in the JSON of metadata that have the path of a file, and its key.
_PATHS: Final = (
    ("snapshots", "manifest-list"),
    ("metadata-log", "metadata-file"),
    ("statistics", "statistics-path"),
    ("partition-statistics", "statistics-path"),
)
Path = Callable[[str], str]


class Version(Frozen):
    """A version of a table's metadata: its file, as JSON and read."""

    path: str
    document: dict[str, Any]
    metadata: TableMetadata
    gzipped: bool


def read_version(storage: Storage, path: str, name: str) -> Version:
    """A version of the table of this name. Raises UnsupportedTableError if it is encrypted."""
    data = storage.read(path, most=METADATA_BYTES)
    document = metadata_document(data, path)
    _refuse_encrypted(document, name)
    return Version(path, document, parse_metadata(data, path), data.startswith(b"\x1f\x8b"))


def manifests_and_list(
    storage: Storage, snapshot: Snapshot
) -> tuple[tuple[ManifestFile, ...], bytes]:
    """The manifests of a snapshot, and the bytes of their list; none if it has no list."""
    data = b""

    def read(named: str) -> bytes:
        nonlocal data
        data = storage.read(named, most=MANIFEST_LIST_BYTES)
        return data

    return snapshot_manifests(snapshot, read, storage.location), data


def listed_deletes(data: bytes, location: str) -> list[ListedPath]:
    """The paths that a manifest of deletes lists."""
    found: list[ListedPath] = []

    def note(each: ListedPath) -> NewPath:
        found.append(each)
        return NewPath(each.path, each.referenced)

    edit_manifest(data, location, ManifestContent.DELETES, note)
    return found


def relocated_document(
    document: Mapping[str, Any],
    location: str,
    path: Path,
    metadata_path: Path,
    place: Callable[[str], str | None],
) -> dict[str, Any]:
    """The metadata document of the table moved to ``location``.

    ``path`` maps paths of files, ``metadata_path`` those of metadata files; ``place`` gives the
    new folder for a property of ``PLACES``, None to remove the property.
    """
    moved = copy.deepcopy(dict(document))
    moved["location"] = location
    for kind, key in _PATHS:
        change = metadata_path if kind == "metadata-log" else path
        for entry in _objects(moved, kind):
            if isinstance(entry.get(key), str):
                entry[key] = change(entry[key])
    for snapshot in _objects(moved, "snapshots"):
        if isinstance(snapshot.get("manifests"), list):
            snapshot["manifests"] = [path(each) for each in snapshot["manifests"]]
    properties = moved.get("properties")
    if isinstance(properties, dict):
        for name in PLACES:
            if isinstance(properties.get(name), str):
                found = place(properties[name])
                if found is None:
                    del properties[name]
                else:
                    properties[name] = found
    return moved


def _objects(document: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    listed = document.get(key)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def _refuse_encrypted(document: Mapping[str, Any], name: str) -> None:
    """Raise UnsupportedTableError for an encrypted table: the copy would not have its keys."""
    properties = document.get("properties")
    keys = isinstance(properties, dict) and properties.get("encryption.key-id")
    if (
        keys
        or document.get("encryption-keys")
        or any(each.get("key-id") is not None for each in _objects(document, "snapshots"))
    ):
        raise UnsupportedTableError("moving a table that is encrypted", table=name)
