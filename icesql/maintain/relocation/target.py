"""The place that a table is copied to: its folder, and the paths of files there."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from icesql.catalog.current_metadata import HINTS, find_current_metadata, is_metadata_name
from icesql.context import QueryContext
from icesql.errors import CatalogError, Error, StorageError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import Malformed, as_object, load_json
from icesql.maintain.referenced import SCHEMES
from icesql.storage.many_files import list_files
from icesql.storage.new_files import NewFile, remove_file, replace_file
from icesql.storage.open import (
    METADATA_BYTES,
    Storage,
    components,
    denied,
    is_local,
    local_spellings,
    split_path,
)

# ------------------------------------------------------------------ paths


# The folder of a copy for files from outside of the table's location.
OUTSIDE: Final = "outside"
_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,10}", re.ASCII)
_NAME_BYTES: Final = 255
_STORES: Final = {"file": "", **SCHEMES}


class OfPrefix(Frozen):
    """Another prefix: a path below ``source`` keeps its rest below ``target``.

    Source: Java ``RewriteTablePathUtil``.
    """

    source: str
    target: str

    def path(self, path: str) -> str:
        """The new path of a file. Raises UnsupportedTableError for one not below ``source``."""
        if path == self.source:
            return self.target.rstrip("/")
        return _with_slash(self.target) + self.below(path)

    def below(self, path: str) -> str:
        """The part of a path after the prefix."""
        start = _with_slash(self.source)
        if not path.startswith(start):
            raise UnsupportedTableError(
                f"a table with the file {path}, which does not lie below the source prefix "
                f"{self.source}; icesql copy gives such files a place, too"
            )
        rest = path[len(start) :]
        if not is_plain(rest) or "," in rest:
            # A list of files has one pair per line, separated by an unquoted comma.
            raise UnsupportedTableError(f"moving a file whose path has several readings, {path!r}")
        return rest


class OfCopy:
    """Puts all files of a table below ``target``; files in the table's location keep their rest.

    Other files get a path by a hash of their folder, as do files whose path leads elsewhere by one
    of its interpretations (dots, escapes) or is reserved for the copy's own files. No two files get
    the same path, and the same file always gets the same one.
    """

    def __init__(self, location: str, target: str) -> None:
        self._start, self._target = _with_slash(location), target
        self._store, self._base = _store_of(location), components(location)

    def path(self, path: str) -> str:
        """The new path of a file, as the table's metadata spells it."""
        rest = self._below(path)
        if rest is not None and _is_free(rest):
            return f"{self._target}/{rest}"
        return f"{self._target}/{OUTSIDE}/{_place_outside(path)}"

    def metadata_path(self, path: str) -> str:
        """As ``path`` for a metadata file, which goes to the metadata folder, wherever it was."""
        name = path.rpartition("/")[2]
        if is_metadata_name(name) and is_plain(name):
            return f"{self._target}/metadata/{name}"
        return self.path(path)

    def is_outside(self, path: str) -> bool:
        """True if a path of the copy is that of a file from outside of the location."""
        return path.startswith(f"{self._target}/{OUTSIDE}/")

    def _below(self, path: str) -> str | None:
        """The part of a path after the location, in any spelling of both; None if not below."""
        if path.startswith(self._start):
            return path[len(self._start) :]
        names = components(path)
        if _store_of(path) != self._store or names[: len(self._base)] != self._base:
            return None
        return "/".join(names[len(self._base) :])


def is_plain(path: str) -> bool:
    """True if a relative path means one file below any folder, by every reader's interpretation.

    >>> is_plain("data/p=a%2Fb/x.parquet"), is_plain("data/../../x"), is_plain("p=..%2F..%2Fx")
    (True, False, False)
    """
    names = path.split("/")
    if not path.isprintable() or "\\" in path or "" in names:
        return False
    if any(len(each.encode("utf-8", "surrogatepass")) > _NAME_BYTES for each in names):
        return False
    text = path
    while True:
        if not {".", ".."}.isdisjoint(re.split(r"[/\\]", text)) or "\0" in text:
            return False
        plain = unquote(text)
        if plain == text:
            return True
        text = plain


def _is_free(rest: str) -> bool:
    """True if a file may have this path in a copy: readers find metadata by listing the folder."""
    name = rest.rpartition("/")[2]
    is_own = is_metadata_name(name) or name in HINTS or name == MARKER.rpartition("/")[2]
    return is_plain(rest) and not is_own and rest.partition("/")[0] != OUTSIDE


# The file in a copy that records of which table it is a copy.
MARKER: Final = "metadata/copy-of.json"


def _place_outside(path: str) -> str:
    names = components(path)
    spelled = f"{_store_of(path)}/{'/'.join(names)}"
    if split_path(path)[2].strip("/") != "/".join(names):
        spelled = path  # a store distinguishes "a//b" from "a/b"
    folder, _, name = spelled.rpartition("/")
    if is_plain(name) and _is_free(name):
        return f"{_digest(folder)}/{name}"
    ending = re.search(rf"{_ENDING.pattern}$", name)
    return f"{_digest(spelled)}/file{ending[0] if ending else ''}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _store_of(path: str) -> str:
    scheme, authority, _ = split_path(path)
    scheme = _STORES.get(scheme, scheme)
    if scheme == "" and authority == "localhost":
        authority = ""
    return f"{scheme}://{authority}"


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


# ------------------------------------------------------------------ the folder


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
