"""Storage: the one place where a path of a table's metadata becomes bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import unquote

from icesql.errors import AccessDeniedError, CorruptFileError, ScanLimitError, StorageError
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import masked

if TYPE_CHECKING:
    from icesql.storage.remote import RemoteFiles
    from icesql.storage.roots import Roots
    from icesql.storage.stores.principal import Lease
    from icesql.storage.stores.signed import Signer

# Limits on the bytes of metadata files; references to a file record its approximate length.

VERSION_HINT_BYTES: Final = 1 << 10
METADATA_BYTES: Final = 256 << 20
# The length of a manifest list is recorded nowhere; one entry takes some hundred bytes.
MANIFEST_LIST_BYTES: Final = 256 << 20
_MANIFEST: Final = 1 << 30
_SLACK: Final = 1 << 20


def most_of_manifest(stated: int | None) -> int:
    """Bytes that a manifest may have where its list says ``stated``.

    A manifest that was rewritten in place, as when a table moves, has another length than listed,
    so twice the length and 1 MiB are allowed; never more than 1 GiB.
    """
    return _MANIFEST if stated is None or stated <= 0 else min(2 * stated + _SLACK, _MANIFEST)


def check_size(location: str, size: int, most: int | None) -> None:
    """Raises ScanLimitError for a file of metadata that is longer than ``most`` bytes."""
    if most is not None and size > most:
        raise ScanLimitError(
            f"{location} has {size:,} bytes, where at most {most:,} are expected and read; "
            "the file is damaged, or it is not what its place in the table says"
        )


# Reroot: find the files of a table that was moved after its paths were recorded.

# Two letters at least, so that C:\ stays a path.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?=/|\.)")

# Schemes that open the same store.
_ONE_STORE: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs",
    "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs", "viewfs": "hdfs",
}  # fmt: skip

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


def one_store(scheme: str) -> str:
    """The one name of the schemes that open the same store, such as s3 for s3a."""
    return _ONE_STORE.get(scheme, scheme)


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


def existing(places: Sequence[str]) -> str:
    """The first of several places that exists, else the first."""
    return next((place for place in places if os.path.exists(place)), places[0])


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

    A suffix must identify the file. A bare file name is enough only when it holds a UUID or 16 hex
    digits; a name without these needs two parts. Two recorded paths that would meet in one file
    through step 4 and such a name are an error, so ``p=1/000000_0`` never replaces
    ``p=2/000000_0``. A remote scheme is never opened: a table that was opened from a folder is read
    from there. With ``confine`` no step accesses a place outside of those roots.

    Picklable, with the knowledge about prefixes, without the files found.
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
        # Nearly every path starts with the recorded location, so this is tried first.
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
        """The path of a folder by its path or URI: the spelling that exists, else the likeliest."""
        if split_path(folder)[0] != "file":
            return os.path.abspath(folder)
        return next(self._there(folder), local_spellings(folder)[0])

    def _there(self, path: str) -> Iterator[str]:
        places = filter(self._allows, local_spellings(path))
        return (place for place in places if os.path.exists(place))

    def _allows(self, place: str) -> bool:
        return self.confine is None or self.confine.hold_place(place)

    def _is_file(self, place: str) -> bool:
        return self._allows(place) and os.path.isfile(place)

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

        With ``confine`` the error is AccessDeniedError, whether or not there is such a file
        outside.

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


# Bytes to allocate without checking the length of the file.
_UNASKED: Final = 1 << 20


class Storage:
    """Reads the files of one table, on this machine or in an object store.

    ``properties`` are Iceberg's FileIO properties (s3.endpoint, gcs.oauth2.token, …); they may
    hold credentials and are never shown. With ``reroot`` the table lies in a local folder and
    every path, whatever its scheme, is looked for there; without it a path is taken as written.
    ``cache`` holds objects that outlive a statement, such as decoded manifests; it is left out when
    the storage is pickled for a worker, as are open connections.

    ``lease`` has the current properties where a catalog lends temporary credentials; ``signer``
    signs the requests to a store where the catalog does that.

    Every failure of a file or store is a StorageError naming the path. A path outside of
    ``confine`` is an AccessDeniedError, before anything is accessed.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        reroot: Reroot | None = None,
        *,
        cache: BoundedCache | None = None,
        confine: Roots | None = None,
        lease: Lease | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.properties: Mapping[str, str] = dict(properties or {})
        self.reroot, self.cache, self.confine = reroot, cache, confine
        self.lease, self.signer = lease, signer
        self._remote: RemoteFiles | None = None

    def __repr__(self) -> str:
        return f"Storage({masked(self.properties)!r}, {self.reroot!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": None, "_remote": None}

    # ------------------------------------------------------------------ names

    def location(self, path: str) -> str:
        """The place where ``path`` is opened: an absolute local path, or a remote URI as written.

        Raises StorageError when the table lies in a folder and has no such file.
        """
        if self.reroot is not None:
            return self.reroot.locate(path)
        self.check(path)
        return self._as_written(path)

    def check(self, path: str) -> None:
        """Raise AccessDeniedError for a path outside of the roots."""
        if self.confine is not None and not self.confine.hold(path):
            raise denied(path)

    def _as_written(self, path: str) -> str:
        return existing(local_spellings(path)) if is_local(path) else path

    def local_path(self, path: str) -> str | None:
        """``location(path)`` when that is on this machine, None when it is remote."""
        location = self.location(path)
        return location if is_local(location) else None

    def same_file_key(self, path: str) -> str:
        """Equal for two spellings of one file, whether the file is there or not; never raises.

        Local: after re-rooting, else without scheme, authority and needless slashes. Remote:
        likewise, but the bucket counts, and s3, s3a and s3n are one scheme.
        """
        if self.reroot is not None:
            return self.reroot.find(path) or "/" + "/".join(components(path))
        scheme, authority, _ = split_path(path)
        inner = "/" + "/".join(components(path))
        match one_store(scheme):
            case "" | "file":
                return self._as_written(path)
            case "hdfs":
                return f"hdfs:{inner}"
            case store:
                return f"{store}://{authority}{inner}"

    # ------------------------------------------------------------------ bytes

    def exists(self, path: str) -> bool:
        """Whether there is such a file; StorageError when the store does not answer."""
        if self.reroot is not None:
            return self.reroot.find(path) is not None
        local = self.local_path(path)
        return os.path.exists(local) if local is not None else self.remote_files().exists(path)

    def size(self, path: str) -> int:
        """Length in bytes."""
        location = self.location(path)
        if not is_local(location):
            return self.remote_files().size(location)
        with storage_errors(location):
            return os.stat(location).st_size

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, most: int | None = None
    ) -> bytes:
        """``length`` bytes from ``offset``, or everything from there.

        Raises CorruptFileError when the file ends before ``length`` bytes are read, and
        ScanLimitError, before anything is read, for a whole file of more than ``most`` bytes.
        """
        location = self.location(path)
        if not is_local(location):
            files = self.remote_files()
            if most is None:
                data = files.read(location, offset, length)
            else:
                data = files.read_whole(location, most)
        else:
            buffering = 0 if length is None and most is None else -1
            with storage_errors(location), open(location, "rb", buffering=buffering) as file:
                count = -1 if length is None else length
                if most is not None:  # a device has no size, and no end
                    count = os.fstat(file.fileno()).st_size
                    check_size(location, count, most)
                if count > _UNASKED:
                    # The length comes from a manifest; allocate only what the file has.
                    count = max(min(count, os.fstat(file.fileno()).st_size - offset), 0)
                if offset:
                    file.seek(offset)
                data = file.read(count)
        if length is not None and len(data) < length:
            raise CorruptFileError(
                location,
                f"the file ends here, {length} bytes were expected from byte {offset}",
                offset=offset + len(data),
            )
        return data

    def is_kept(self, path: str) -> bool:
        """Whether a file of a store lies on disk whole, so that ``kept`` gives it at once."""
        location = self.location(path)
        return not is_local(location) and self.remote_files().is_kept(location)

    def kept(self, path: str, *, most: int) -> bytes | None:
        """A file of a store from the disk cache, without a request; None if it is not there.

        Raises ScanLimitError for a file of more than ``most`` bytes.
        """
        location = self.location(path)
        return None if is_local(location) else self.remote_files().kept(location, most)

    def kept_name(self, path: str) -> str | None:
        """The key of a file in ``kept``, another for each store and principal.

        None for local files, and for those that may be written again.
        """
        location = self.location(path)
        return None if is_local(location) else self.remote_files().kept_name(location)

    def forget(self, path: str, length: int | None = None) -> bool:
        """Fetch a file of a store anew next time, because its cached bytes were wrong.

        ``length`` is the recorded one of a data file. Returns whether any bytes of it were cached.
        """
        location = self.location(path)
        return not is_local(location) and self.remote_files().forget(location, length)

    def open(self, path: str, length: int | None = None) -> BinaryIO:
        """The file as a seekable binary stream; close it.

        No store is requested for a ``length`` that metadata has.
        """
        location = self.location(path)
        if is_local(location):
            with storage_errors(location):
                return cast(BinaryIO, open(location, "rb"))
        files = self.remote_files()
        return files.stream(location, files.size(location) if length is None else length)

    def list_folder(self, path: str) -> list[str]:
        """Names of the files directly in a folder, sorted; StorageError when it cannot be listed.

        The folder is taken as written, never re-rooted.
        """
        self.check(path)
        if not is_local(path):
            return self.remote_files().list_folder(path)
        folder = local_spellings(path)[0]
        with storage_errors(folder):
            return sorted([entry.name for entry in os.scandir(folder) if entry.is_file()])

    def version_of(self, path: str) -> tuple[str, int, int] | None:
        """(location, time of change in ns, size) of a local file; None if remote or missing."""
        location = self.local_path(path)
        if location is None:
            return None
        try:
            found = os.stat(location)
        except OSError:
            return None
        return location, found.st_mtime_ns, found.st_size

    def cache_key(self, kind: str, path: str, *part: Any) -> tuple[Any, ...] | None:
        """The cache key of ``part`` of a file; None without a cache.

        Files never change, but a table that is damaged or restored under the same names does: a
        local file is known by its size and time of change, others by their location.
        """
        if self.cache is None:
            return None
        version = self.version_of(path)
        return (kind, self.location(path) if version is None else version, *part)

    def remote_files(self) -> RemoteFiles:
        """The reader of locations that are not on this machine."""
        if self._remote is None:
            from icesql.storage.remote import RemoteFiles

            blocks = None if self.cache is None else self.cache.blocks
            self._remote = RemoteFiles(self.properties, blocks, self.lease, self.signer)
        return self._remote


# Metadata names files that exist; a missing one has mostly been expired in the meantime.
VANISHED: Final = "no such file; expired or removed while reading?"


@contextmanager
def storage_errors(path: str, verb: str = "read") -> Iterator[None]:
    """An OSError in the block becomes a StorageError: its reason, without errno or second path."""
    try:
        yield
    except OSError as error:
        raise StorageError(path, os_problem(error), verb=verb) from error


def os_problem(error: OSError) -> str:
    """The reason of an OSError; the system's own words begin in lower case."""
    if isinstance(error, FileNotFoundError):
        return VANISHED
    text = error.strerror or str(error)
    known = error.errno is not None and text == os.strerror(error.errno)
    return text[:1].lower() + text[1:] if known else text
