"""Rewrite the paths in the JSON of table metadata; everything else in it stays unchanged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from icesql.errors import UnsupportedTableError

# Properties with the folders of new files.
PLACES: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
Path = Callable[[str], str]


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
    for snapshot in _objects(moved, "snapshots"):
        if isinstance(snapshot.get("manifest-list"), str):
            snapshot["manifest-list"] = path(snapshot["manifest-list"])
        if isinstance(snapshot.get("manifests"), list):
            snapshot["manifests"] = [path(each) for each in snapshot["manifests"]]
    for entry in _objects(moved, "metadata-log"):
        if isinstance(entry.get("metadata-file"), str):
            entry["metadata-file"] = metadata_path(entry["metadata-file"])
    for kind in ("statistics", "partition-statistics"):
        for entry in _objects(moved, kind):
            if isinstance(entry.get("statistics-path"), str):
                entry["statistics-path"] = path(entry["statistics-path"])
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


def refuse_encrypted(document: Mapping[str, Any], name: str) -> None:
    """Raise UnsupportedTableError for an encrypted table: the copy would not have its keys."""
    properties = document.get("properties")
    keys = isinstance(properties, dict) and properties.get("encryption.key-id")
    if (
        keys
        or document.get("encryption-keys")
        or any(each.get("key-id") is not None for each in _objects(document, "snapshots"))
    ):
        raise UnsupportedTableError("moving a table that is encrypted", table=name)
