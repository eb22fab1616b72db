"""The folder of a copy: claimed for one table; files in it appear only when complete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.catalog.current_metadata import find_current_metadata
from icesql.context import QueryContext
from icesql.errors import CatalogError, Error, StorageError
from icesql.iceberg.metadata.json_fields import Malformed, as_object, load_json
from icesql.maintain.relocation.paths import MARKER
from icesql.storage.listing import list_files
from icesql.storage.new_file import NewFile, remove_file, replace_file
from icesql.storage.open import (
    METADATA_BYTES,
    Storage,
    components,
    denied,
    is_local,
    local_spellings,
    split_path,
)

Fill = Callable[[NewFile], object]

_CURRENT: Final = "metadata-file"
_ADVICE: Final = "name an empty folder"


class CopyFolder:
    """The files at ``location``, with their lengths by path when it was opened.

    Raises StorageError, and AccessDeniedError for a location outside of the storage's roots.
    """

    def __init__(self, storage: Storage, location: str, query: QueryContext) -> None:
        self.storage, self.location, self._query = storage, location, query
        self._real: dict[str, bool] = {}
        self._what: dict[str, Any] = {}
        # The metadata file that the last copy wrote, None before the first copy ended.
        self.metadata_name: str | None = None
        self.lengths = self.list()

    def list(self) -> dict[str, int]:
        """List the files that exist now, with their lengths by path."""
        return {
            each.path: each.size for each in list_files(self.storage, self.location, self._query)
        }

    def current(self) -> str | None:
        """The metadata file that readers of the copy find now; None if there is none."""
        return find_current_metadata(f"{self.location}/metadata", self.storage)

    def claim(self, what: Mapping[str, Any]) -> None:
        """Mark the folder as a copy of ``what``, or check that it is one.

        Raises CatalogError if it has files of something else.
        """
        marker = f"{self.location}/{MARKER}"
        if marker not in self.lengths and any(map(self._is_other, self.lengths)):
            raise CatalogError(
                f"cannot copy to {self.location}: there are files, and {MARKER}, which says of "
                f"what they are a copy, is not among them; {_ADVICE}"
            )
        if marker not in self.lengths:
            self.write(marker, json.dumps(what, indent=2).encode())
        # Another copy may have written the marker first.
        data = self.storage.read(marker, most=METADATA_BYTES)
        try:
            found = as_object(load_json(data), MARKER)
        except Malformed as error:
            raise CatalogError(f"cannot copy to {self.location}: {error}; {_ADVICE}") from error
        self.metadata_name = found.get(_CURRENT)
        self._what = {**found, **what}
        for key, value in what.items():
            if found.get(key) != value:
                raise CatalogError(
                    f"cannot copy to {self.location}: it is a copy of another table "
                    f"({key} is {found.get(key)!r}, not {value!r}); {_ADVICE}"
                )

    def _is_other(self, path: str) -> bool:
        """True unless the file is left from a copy that was killed while it wrote the marker."""
        folder, _, name = MARKER.rpartition("/")
        return not (
            path.startswith(f"{self.location}/{folder}/.{name}.") and path.endswith(".part")
        )

    def note(self, metadata_name: str) -> None:
        """Record which metadata file a copy wrote last."""
        if metadata_name != self.metadata_name:
            what = {**self._what, _CURRENT: metadata_name}
            self.replace(f"{self.location}/{MARKER}", json.dumps(what, indent=2).encode())

    def replace(self, path: str, data: bytes) -> None:
        """Overwrite a file of the copy."""
        self._check_inside(path)
        replace_file(self.storage, path, data)

    def write(self, path: str, data: bytes) -> int:
        """Write a file unless it exists; return its length."""
        return self.fill(path, lambda new: new.write(data))

    def fill(self, path: str, fill: Fill) -> int:
        """As ``write``, for a file that ``fill`` writes in parts."""
        self._check_inside(path)
        try:
            new = NewFile(self.storage, path)
        except Error as error:
            return self._there(path, error)
        try:
            fill(new)
        except BaseException:
            new.abandon()
            raise
        try:
            return new.finish()
        except Error as error:
            return self._there(path, error)

    def _there(self, path: str, error: Error) -> int:
        """The length of a file that another copy to this folder wrote; else raises the error."""
        if not self.storage.exists(path):
            raise error
        return self.storage.size(path)

    def remove(self, path: str) -> None:
        """Remove a file of the copy that is wrong."""
        self._check_inside(path)
        if not remove_file(self.storage, path):
            raise StorageError(path, "it is not what it should be, and cannot be removed")

    def _check_inside(self, path: str) -> None:
        """Raise AccessDeniedError if a link in the folder leads out of it."""
        folder = path.rpartition("/")[0]
        inside = self._real.get(folder)
        if inside is None:
            inside = path.startswith(f"{self.location}/")
            if inside and is_local(path):
                root, place = (local_spellings(each)[0] for each in (self.location, folder))
                root = os.path.realpath(root).rstrip("/")
                inside = f"{os.path.realpath(place)}/".startswith(f"{root}/")
            self._real[folder] = inside
        if not inside:
            raise denied(path)


def is_there(storage: Storage, path: str, length: int | None = None) -> bool:
    """True if a file exists now, with ``length`` bytes if that is not None."""
    try:
        return length in (None, storage.size(path))
    except StorageError:
        return False


def target_location(text: str) -> str:
    """The location of a copy: absolute, without a trailing slash. Raises CatalogError."""
    location = text.strip().rstrip("/")
    if location and is_local(location) and not split_path(location)[0]:
        location = os.path.abspath(os.path.expanduser(location))
    if len(components(location)) < 1 or "\0" in location or not location.isprintable():
        raise CatalogError(f"a copy cannot lie at {text!r}; name a folder")
    return location


def check_apart(source: str, target: str) -> None:
    """Raise CatalogError if one of two folders contains the other."""
    one, other = _names(source), _names(target)
    least = min(len(one), len(other))
    if one[:least] == other[:least]:
        raise CatalogError(f"cannot copy a table from {source} to {target}: one lies in the other")


def _names(location: str) -> tuple[str, ...]:
    if is_local(location):
        return ("", *components(os.path.realpath(local_spellings(location)[0])))
    scheme, authority, _ = split_path(location)
    return f"{scheme.rstrip('an')}://{authority}", *components(location)
