"""Reroot: where the files of a table lie that was moved after its paths were written down."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote

from icesql.errors import StorageError

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


def is_local(path: str) -> bool:
    """True for plain paths and file: URIs."""
    return split_path(path)[0] in ("", "file")


def local_spellings(path: str) -> list[str]:
    """What a plain path or file: URI may mean on this machine, likeliest first, all absolute.

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
    2. at the same place relative to the table: ``folder`` stands for ``recorded_location``, the
       parents of one for the parents of the other. Scheme, authority, slash counts and "./" do
       not matter;
    3. as written, if it is relative (to the working directory);
    4. by its longest suffix that exists under ``folder`` or a parent of it.

    A suffix must say enough. The bare file name counts only directly in ``folder`` and only when
    it holds a UUID or 16 hex digits; a name without these needs two parts under ``folder`` and
    three under a parent. Two recorded paths that would meet in one file through step 4 and such a
    name are an error, so ``p=1/000000_0`` never stands in for ``p=2/000000_0``. A remote scheme
    is never opened: a table that was opened from a folder is read from there.

    Picklable; what was learned about prefixes travels along, what was found does not.
    Source: the layout of the tables that other systems published; Iceberg itself has no rule.
    """

    def __init__(self, recorded_location: str, folder: str) -> None:
        self.recorded_location, self.folder = recorded_location, os.path.abspath(folder)
        self._base = components(recorded_location)
        self._learned: list[tuple[tuple[str, ...], str]] = []
        self._found: dict[str, tuple[str, bool] | None] = {}
        self._owners: dict[str, tuple[str, bool]] = {}
        # Nearly every path starts like the recorded location, and nothing else has to be tried.
        self._start, self._start_at = recorded_location.rstrip("/") + "/", self.folder + "/"
        self._gone: str | None = None  # text prefix that no path as written can have and exist
        if is_local(recorded_location) and recorded_location.startswith(("/", "file:/")):
            places = local_spellings(recorded_location)
            there = next((place for place in places if os.path.exists(place)), None)
            if there is None:
                self._gone = self._start
            else:
                self._start_at = there + "/"

    def __repr__(self) -> str:
        return f"Reroot({self.recorded_location!r}, {self.folder!r})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_found": {}, "_owners": {}}

    def find(self, path: str) -> str | None:
        """The absolute local path of the file that ``path`` means, None when there is none."""
        found = self._look(path)
        return found[0] if found else None

    def locate(self, path: str) -> str:
        """As ``find``, but StorageError naming ``path`` when there is no such file.

        StorageError, too, when a guessed place already belongs to another recorded path.
        """
        found = self._look(path)
        if found is None:
            raise StorageError(
                path, f"there is no such file, nor one that ends like it under {self.folder}"
            )
        location, guessed = found
        owner, owner_guessed = self._owners.setdefault(location, (path, guessed))
        if (guessed or owner_guessed) and not _same_spelling(owner, path):
            raise StorageError(
                path,
                f"{location} could be it, but that is already {owner}; "
                "move the files so that the end of their paths tells them apart",
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
            if "//" not in rest and "/." not in rest and rest[:1] != "." and os.path.isfile(place):
                return place, False
        scheme, _, rest = split_path(path)
        absolute = scheme == "file" or (scheme == "" and rest.startswith("/"))
        if absolute and (self._gone is None or not path.startswith(self._gone)):
            for place in local_spellings(path):
                if os.path.isfile(place):
                    return place, False
        names = components(path)
        if not names:
            return None
        for place in self._relative_to_table(names):
            if os.path.isfile(place):
                return place, False
        if scheme == "" and not absolute and os.path.isfile(path):
            return os.path.abspath(path), False
        return self._by_suffix(names)

    def _relative_to_table(self, names: tuple[str, ...]) -> list[str]:
        shared = 0
        for ours, theirs in zip(self._base, names, strict=False):
            if ours != theirs:
                break
            shared += 1
        up = len(self._base) - shared
        if up and not shared:
            return []
        base = self.folder
        for _ in range(up):
            base = os.path.dirname(base)
        if up and base == os.path.dirname(base):
            return []
        return _below(base, names[shared:])

    def _by_suffix(self, names: tuple[str, ...]) -> tuple[str, bool] | None:
        telling = _TELLING.search(names[-1]) is not None
        for prefix, base in self._learned:
            if names[: len(prefix)] == prefix:
                for place in _below(base, names[len(prefix) :]):
                    if os.path.isfile(place):
                        return place, not telling
        bases = [self.folder]
        while bases[-1] != os.path.dirname(bases[-1]):
            bases.append(os.path.dirname(bases[-1]))
        for start in range(len(names)):
            suffix = names[start:]
            for base in bases:
                here = base == self.folder
                whole = start == 0 and here
                least = (1 if here else 2) if telling else (2 if here else 3)
                if len(suffix) < least and not whole:
                    continue
                for place in _below(base, suffix):
                    if os.path.isfile(place):
                        if len(suffix) > 1:
                            self._learned.append((names[:start], base))
                        return place, not telling
        return None


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
