"""Map the paths of a table's files to the paths that they have at another location."""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import unquote

from icesql.catalog.current_metadata import HINTS, is_metadata_name
from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.maintain.referenced import SCHEMES
from icesql.storage.open import components, split_path

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
