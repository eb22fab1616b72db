"""Reroot: where the files of a table lie that was moved after its paths were written down."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from icesql.errors import AccessDeniedError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.storage.roots import Roots

# Two letters at least, so that C:\ stays a path.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?=/|\.)")

# A UUID, or the 16 hex digits of Impala's and Hive's writers: a name that exists only once.
_TELLING: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{16}")


def split_path(path: str) -> tuple[str, str, str]:
    """Scheme (lower case, "" without one), authority and the rest of a path or URI."""
    found = _SCHEME.match(path)
    if found is None:
        return "", "", path
    rest = path[found.end() :]
    if not rest.startswith("//"):
        return found[1].lower(), "", rest
    authority, slash, inner = rest[2:].partition("/")
    return found[1].lower(), authority, slash + inner


def components(path: str) -> tuple[str, ...]:
    """The names along a path, without scheme, authority, empty parts, "." and "..".

    Two spellings of one file have the same components or one ends with the other's.
    """
    names: list[str] = []
    for name in split_path(path)[2].split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)


def is_telling(path: str) -> bool:
    """Whether the last name of a path exists only once: it holds a UUID or 16 hex digits."""
    return _TELLING.search(path.rpartition("/")[2]) is not None


def is_local(path: str) -> bool:
    """True for plain paths and file: URIs."""
    found = _SCHEME.match(path)
    return found is None or found[1].lower() == "file"


def local_spellings(path: str) -> list[str]:
    """The absolute paths that a plain path or file: URI may mean here, likeliest first.

    Percent signs are literal before they are escapes: Hadoop writes file:/a/x%2Fy for a file of
    that very name. The authority of file://wh/t is a folder when a writer pasted a relative path.
    """
    scheme, authority, rest = split_path(path)
    texts = [rest or "/"] if scheme else [path]
    if authority not in ("", "localhost"):
        texts.insert(0, authority + rest)
    if scheme and "%" in path:
        texts += [unquote(text) for text in texts]
    return [os.path.abspath(text) for text in texts]


class Reroot:
    """Maps the paths recorded in a table's metadata to files below the folder it lies in now.

    A path is looked for, in this order,

    1. as written, if it is absolute (file: or no scheme);
    2. at the same place relative to the table: ``folder`` replaces ``recorded_location``, and
       a parent of one for that of the other where the names below them agree, as they do when a
       whole warehouse was moved. Scheme, authority, slash counts and "./" do not matter;
    3. as written, if it is relative (to the working directory);
    4. by its longest suffix that exists under ``folder``, never outside of it, also not through
       a symbolic link.

    A suffix must say enough. The bare file name counts only when it holds a UUID or 16 hex
    digits; a name without these needs two parts. Two recorded paths that would meet in one file
    through step 4 and such a name are an error, so ``p=1/000000_0`` never replaces
    ``p=2/000000_0``. A remote scheme is never opened: a table that was opened from a folder is
    read from there. With ``confine`` no place outside of those roots is looked at in any step.

    Picklable; what was learned about prefixes travels along, what was found does not.
    Source: the layout of the tables that other systems published; Iceberg itself has no rule.
    """

    def __init__(
        self, recorded_location: str, folder: str, *, confine: Roots | None = None
    ) -> None:
        self.recorded_location, self.confine = recorded_location, confine
        self.folder = self._place_of(folder)
        self._base = components(recorded_location)
        self._learned: list[tuple[str, ...]] = []
        self._found: dict[str, tuple[str, bool] | None] = {}
        self._owners: dict[str, tuple[str, bool]] = {}
        # Nearly every path starts like the recorded location, and nothing else has to be tried.
        self._start, self._start_at = recorded_location.rstrip("/") + "/", self.folder + "/"
        self._gone: str | None = None  # text prefix that no path as written can have and exist
        if is_local(recorded_location) and recorded_location.startswith(("/", "file:/")):
            there = next(self._there(recorded_location), None)
            if there is None:
                self._gone = self._start
            else:
                self._start_at = there + "/"

    def __repr__(self) -> str:
        return f"Reroot({self.recorded_location!r}, {self.folder!r})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_found": {}, "_owners": {}}

    def _place_of(self, folder: str) -> str:
        """A folder by its path or URI: the spelling of it that is there, else the likeliest."""
        if split_path(folder)[0] != "file":
            return os.path.abspath(folder)
        return next(self._there(folder), local_spellings(folder)[0])

    def _there(self, path: str) -> Iterator[str]:
        return (place for place in local_spellings(path) if self._is_there(place))

    def _is_there(self, place: str) -> bool:
        return (self.confine is None or self.confine.hold_place(place)) and os.path.exists(place)

    def _is_file(self, place: str) -> bool:
        return (self.confine is None or self.confine.hold_place(place)) and os.path.isfile(place)

    def find(self, path: str) -> str | None:
        """The absolute local path of the file that ``path`` means, None when there is none."""
        found = self._look(path)
        return found[0] if found else None

    def find_inside(self, path: str) -> str | None:
        """As ``find``, of the files below ``folder`` alone: step 4."""
        found = self._by_suffix(components(path))
        return found[0] if found else None

    def locate(self, path: str) -> str:
        """As ``find``, but StorageError naming ``path`` when there is no such file.

        With ``confine`` that is an AccessDeniedError, whether there is one outside or not.

        StorageError, too, when a guessed place already belongs to another recorded path.
        """
        found = self._look(path)
        if found is None and self.confine is not None:
            raise denied(path)
        if found is None:
            raise StorageError(
                path,
                f"no such file, nor one that ends like it under {self.folder}; "
                "expired or removed while reading?",
            )
        location, guessed = found
        owner, owner_guessed = self._owners.setdefault(location, (path, guessed))
        if (guessed or owner_guessed) and not _same_spelling(owner, path):
            raise StorageError(
                path,
                f"{location} could be it, but that is already {owner}; "
                "move the files so that the ends of their paths differ",
            )
        return location

    def _look(self, path: str) -> tuple[str, bool] | None:
        if path not in self._found:
            self._found[path] = self._search(path)
        return self._found[path]

    def _search(self, path: str) -> tuple[str, bool] | None:
        """The place and whether it is a guess: a suffix of a name that may exist twice."""
        if path.startswith(self._start):
            rest = path[len(self._start) :]
            place = self._start_at + rest
            if "//" not in rest and "/." not in rest and rest[:1] != "." and self._is_file(place):
                return place, False
        scheme, _, rest = split_path(path)
        absolute = scheme == "file" or (scheme == "" and rest.startswith("/"))
        if absolute and (self._gone is None or not path.startswith(self._gone)):
            for place in local_spellings(path):
                if self._is_file(place):
                    return place, False
        names = components(path)
        if not names:
            return None
        for place in self._relative_to_table(names):
            if self._is_file(place):
                return place, False
        if scheme == "" and not absolute and self._is_file(os.path.abspath(path)):
            return os.path.abspath(path), False
        return self._by_suffix(names)

    def _relative_to_table(self, names: tuple[str, ...]) -> list[str]:
        shared = 0
        for ours, theirs in zip(self._base, names, strict=False):
            if ours != theirs:
                break
            shared += 1
        up = len(self._base) - shared
        if up and (not shared or self._base[-up:] != components(self.folder)[-up:]):
            return []
        base = self.folder
        for _ in range(up):
            base = os.path.dirname(base)
        if up and base == os.path.dirname(base):
            return []
        return _below(base, names[shared:])

    def _by_suffix(self, names: tuple[str, ...]) -> tuple[str, bool] | None:
        telling = _TELLING.search(names[-1]) is not None
        for prefix in self._learned:
            if names[: len(prefix)] == prefix:
                for place in _below(self.folder, names[len(prefix) :]):
                    if self._is_inside(place):
                        return place, not telling
        for start in range(len(names)):
            suffix = names[start:]
            if len(suffix) < (1 if telling else 2) and start:
                continue
            for place in _below(self.folder, suffix):
                if self._is_inside(place):
                    if len(suffix) > 1:
                        self._learned.append(names[:start])
                    return place, not telling
        return None

    def _is_inside(self, place: str) -> bool:
        """Whether there is such a file, and no link on the way leads out of the folder."""
        if not self._is_file(place):
            return False
        return os.path.realpath(place).startswith(os.path.realpath(self.folder).rstrip("/") + "/")


def denied(path: str) -> AccessDeniedError:
    """The error for a path of a table's metadata that leads outside of the roots."""
    return AccessDeniedError(
        f"{path} is outside the roots that tables are confined to", argument="confine"
    )


def _below(base: str, names: tuple[str, ...]) -> list[str]:
    """``names`` under ``base``, literally and, if that is another place below it, unescaped."""
    places = [os.path.join(base, *names)]
    plain = tuple(unquote(name) for name in names)
    if plain != names and not any(name in ("", ".", "..") or "/" in name for name in plain):
        places.append(os.path.join(base, *plain))
    return places


def _same_spelling(one: str, other: str) -> bool:
    names, others = components(one), components(other)
    least = min(len(names), len(others))
    return names[-least:] == others[-least:]
