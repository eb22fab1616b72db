"""BlockStore: bytes of object stores in a folder of this user, shared by all of its processes.

    <folder>/v1/salt                        what names are derived with
    <folder>/v1/usage, gate, leases/        see ``eviction``
    <folder>/v1/<shelf>/<aa>/<object>       a whole object
    <folder>/v1/<shelf>/<aa>/<object>.d/<first>-<end>   bytes of a large one

A shelf belongs to one endpoint and principal. A name is a keyed hash of path and length, so no
path leads anywhere. Files are written aside and renamed: they are whole or absent. Reading sets a
file's time of access, which eviction goes by. The nanoseconds of its time of change hold a
checksum, with which each process compares the files it uses; see ``use``.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
import zlib
from contextlib import suppress
from typing import Any, Final

from icesql.errors import OperationalError
from icesql.storage.stores.eviction import Eviction

_VERSION: Final = "v1"
_SALT_BYTES: Final = 32
_TEN_GB: Final = 10 << 30
_CHECKED: Final = 1_000_000_000


class UnusableCache(OperationalError):
    """The folder of the cache cannot be used, or not safely; the message has the reason."""


def default_folder() -> str:
    """The cache folder of this user, by the XDG rules."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    return os.path.join(base, "icesql")


def default_size(folder: str) -> int:
    """10 GB, or a fifth of the free space on the disk of ``folder`` if that is less."""
    place = folder
    while not os.path.exists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        found = os.statvfs(place)
    except (OSError, AttributeError):
        return _TEN_GB
    return min(_TEN_GB, found.f_bavail * found.f_frsize // 5)


class BlockStore:
    """The folder. Raises UnusableCache where another user could write or read in it."""

    def __init__(self, folder: str, size: int | None = None) -> None:
        whole = os.path.abspath(folder)
        self.folder = os.path.join(whole, _VERSION)
        try:
            os.makedirs(whole, mode=0o700, exist_ok=True)
            own_folder(whole, tighten=True)
            own_folder(self.folder)
            self.size = default_size(self.folder) if size is None else size
            self.eviction = Eviction(self.folder, self.size)
            self._salt = self._read_salt()
        except (OSError, ValueError) as error:
            raise UnusableCache(f"cannot use cache_directory = {folder!r}: {error}") from error

    def shelf(self, *identity: str) -> Shelf:
        """The blocks of one endpoint as one principal; secrets may be part of the identity."""
        name = keyed_name(self._salt, *identity)[:32]
        return Shelf(os.path.join(self.folder, name), self._salt, self.eviction)

    def _read_salt(self) -> bytes:
        path = os.path.join(self.folder, "salt")
        for _ in range(3):
            with suppress(FileNotFoundError):
                salt = read_own(path)
                if salt is not None and len(salt) == _SALT_BYTES:
                    return salt
                os.unlink(path)
            aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
            write_new(aside, os.urandom(_SALT_BYTES))
            # Of two processes that start at once one wins, and both read its file.
            with suppress(FileExistsError):
                os.link(aside, path)
            os.unlink(aside)
        raise UnusableCache(f"cannot keep a file in {self.folder}")


class Shelf:
    """The objects of one endpoint and principal.

    Reads return None for a missing or damaged object. Writes raise OSError, also if the disk is
    full.
    """

    def __init__(self, folder: str, salt: bytes, eviction: Eviction) -> None:
        self.folder, self._salt, self.eviction = folder, salt, eviction
        self._made: set[str] = set()

    def name(self, path: str, length: int | None) -> str:
        """The object of a path of this length; None if the length is unknown."""
        return keyed_name(self._salt, path, "" if length is None else str(length))

    def _place(self, name: str) -> str:
        return f"{self.folder}/{name[:2]}/{name}"

    # ------------------------------------------------------------------ whole objects

    def whole(self, name: str, length: int | None = None) -> str | None:
        """The place of a whole object of ``length`` bytes (None: any), dated now.

        Hold a lease of the eviction for as long as the place is used.
        """
        place = self._place(name)
        return place if use(place, length) else None

    def put_whole(self, name: str, data: Any) -> str:
        """Store a whole object; returns its place."""
        return self._put(self._place(name), data)

    def read_whole(self, name: str) -> bytes | None:
        """A whole object."""
        place = self._place(name)
        return read_own(place) if use(place, None) else None

    def remove(self, name: str) -> bool:
        """Remove an object, whole or in parts; returns whether any of it was stored."""
        place, is_here = self._place(name), False
        parts = [f"{place}.d/{first}-{end}" for first, end in self.parts(name)]
        for each in (place, *parts):
            with suppress(OSError):
                os.unlink(each)
                is_here = True
        return is_here

    # ------------------------------------------------------------------ parts

    def parts(self, name: str) -> list[tuple[int, int]]:
        """The stored parts (first byte, end) of an object, sorted."""
        found = []
        try:
            with os.scandir(self._place(name) + ".d") as entries:
                for entry in entries:
                    first, dash, end = entry.name.partition("-")
                    if dash and first.isdecimal() and end.isdecimal():
                        found.append((int(first), int(end)))
        except OSError:
            return []
        return sorted(found)

    def read_part(self, name: str, part: tuple[int, int], begin: int, stop: int) -> bytes | None:
        """Bytes ``begin`` to ``stop`` of the object, which lie in this part."""
        place = f"{self._place(name)}.d/{part[0]}-{part[1]}"
        if not use(place, part[1] - part[0]):
            return None
        return read_own(place, begin - part[0], stop - begin)

    def put_part(self, name: str, first: int, data: Any) -> None:
        """Store the bytes of an object from ``first`` on."""
        self._put(f"{self._place(name)}.d/{first}-{first + len(data)}", data)

    def _put(self, place: str, data: Any) -> str:
        size = len(data)
        if size > self.eviction.most_bytes:
            raise OSError(errno.EFBIG, "larger than the cache")
        folder = os.path.dirname(place)
        aside = f"{place}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        for attempt in (0, 1):
            if folder not in self._made:
                self._make(folder)
            try:
                write_new(aside, data)
                break
            except FileNotFoundError:  # evicted with all that was in it
                self._made.discard(folder)
                if attempt:
                    raise
        try:
            stamp(aside, checksum(place, data))
            os.rename(aside, place)
            note_compared(place)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside)
            raise
        self.eviction.added(size)
        return place

    def _make(self, folder: str) -> None:
        parts = [folder]
        while parts[-1] != self.folder:
            parts.append(os.path.dirname(parts[-1]))
        for each in reversed(parts):
            own_folder(each)
        self._made.add(folder)


# ---------------------------------------------------------------------- files of this user


def keyed_name(salt: bytes, *parts: str) -> str:
    """64 hex digits that do not reveal the parts without the salt."""
    text = b"".join(
        len(data).to_bytes(8, "big") + data
        for data in (part.encode("utf-8", "surrogateescape") for part in parts)
    )
    return hashlib.blake2b(text, key=salt, digest_size=32).hexdigest()


def own_folder(folder: str, *, tighten: bool = False) -> None:
    """Make a folder of mode 700 unless it is there. Raises ValueError if it is not ours alone.

    With ``tighten`` others may read an existing folder: those made below it are closed.
    """
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.stat(folder) if tighten else os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise ValueError(f"{folder} is not a folder")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise ValueError(f"{folder} belongs to another user")
    if found.st_mode & (0o022 if tighten else 0o077):
        raise ValueError(f"other users may {'write to' if tighten else 'open'} {folder}")


def write_new(path: str, data: Any) -> None:
    """Write a new file of mode 600. Raises OSError, and then removes the file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
    except BaseException:
        os.close(handle)
        with suppress(OSError):
            os.unlink(path)
        raise
    os.close(handle)


_NO_LINKS: Final = os.O_NOFOLLOW | os.O_CLOEXEC if os.name == "posix" else 0


def read_own(path: str, offset: int = 0, length: int | None = None) -> bytes | None:
    """Bytes of a file of ours; None when it is not one or ends early."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINKS)
    except OSError:
        return None
    try:
        if length is None:
            length = os.fstat(handle).st_size - offset
        data = os.pread(handle, length, offset)
        while len(data) < length:  # a read gives 2 GB at most
            more = os.pread(handle, length - len(data), offset + len(data))
            if not more:
                return None
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(handle)


def checksum(path: str, data: Any) -> int:
    """A checksum of a file's bytes and name, so that no file is taken for another."""
    name = "/".join(path.split("/")[-2:])
    return zlib.crc32(data, zlib.crc32(name.encode())) % _CHECKED


def stamp(path: str, mark: int) -> None:
    """Date a file now and note its checksum in the nanoseconds of its time of change."""
    now = time.time_ns()
    changed = now // _CHECKED * _CHECKED + mark % _CHECKED
    os.utime(path, ns=(now, changed))


def use(path: str, length: int | None) -> bool:
    """Whether a file of ours is there, whole, and dated now.

    It is compared with its checksum when this process first uses it, and whenever another process
    has changed or dated it since. A damaged file is removed.
    """
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or (length is not None and found.st_size != length):
            return False
        if found.st_uid != _USER:
            return False
        if _compared.get(path) != _state(found) and not _is_intact(path, found):
            os.unlink(path)
            return False
        os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
        note_compared(path)
    except OSError:
        return False
    return True


def note_compared(path: str) -> None:
    """Note that a file matches its checksum: this process has compared or just written it."""
    if len(_compared) >= _MOST_COMPARED:
        _compared.clear()
    _compared[path] = _state(os.lstat(path))


_USER: Final = os.geteuid() if hasattr(os, "geteuid") else 0
# The state of each file that this process compared with its checksum.
_compared: dict[str, tuple[int, ...]] = {}
_MOST_COMPARED: Final = 100_000


def _state(found: os.stat_result) -> tuple[int, ...]:
    # A write to a file always changes its inode's time of change (ctime).
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_intact(path: str, found: os.stat_result) -> bool:
    data = read_own(path)
    return data is not None and checksum(path, data) == found.st_mtime_ns % _CHECKED
