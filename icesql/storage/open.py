"""Storage: the one place where a path of a table's metadata becomes bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from icesql.errors import CorruptFileError, StorageError
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import masked
from icesql.storage.reroot import (
    Reroot,
    components,
    denied,
    is_local,
    local_spellings,
    split_path,
)
from icesql.storage.sizes import check_size

# Bytes to allocate without checking the length of the file.
_UNASKED: Final = 1 << 20

if TYPE_CHECKING:
    from icesql.storage.remote import RemoteFiles
    from icesql.storage.roots import Roots
    from icesql.storage.stores.lease import Lease
    from icesql.storage.stores.signed import Signer


class Storage:
    """Reads the files of one table, on this machine or in an object store.

    ``properties`` are Iceberg's FileIO properties (s3.endpoint, gcs.oauth2.token, …); they may
    hold credentials and are never shown. With ``reroot`` the table lies in a local folder and
    every path, whatever its scheme, is looked for there; without it a path is taken as written.
    ``cache`` is for what outlives a statement, such as decoded manifests; it stays behind when
    the storage is pickled for a worker, as do open connections.

    ``lease`` has the properties in force where a catalog lends credentials for a while, ``signer``
    signs the requests to a store where the catalog does that.

    Every failure of a file or store is a StorageError naming the path. What lies outside of
    ``confine`` is an AccessDeniedError, before anything is touched.
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
        """Where ``path`` is opened: an absolute local path, or a remote URI as written.

        Raises StorageError when the table lies in a folder and has no such file.
        """
        if self.reroot is not None:
            return self.reroot.locate(path)
        if self.confine is not None and not self.confine.hold(path):
            raise denied(path)
        return self._as_written(path)

    def _as_written(self, path: str) -> str:
        if not is_local(path):
            return path
        places = local_spellings(path)
        return next((place for place in places if os.path.exists(place)), places[0])

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
        match scheme:
            case "s3" | "s3a" | "s3n":
                return f"s3://{authority}{inner}"
            case "abfs" | "abfss" | "wasb" | "wasbs":
                return f"abfs://{authority}{inner}"
            case "gs" | "gcs":
                return f"gs://{authority}{inner}"
            case "" | "file":
                return self._as_written(path)
            case "hdfs" | "viewfs":
                return f"hdfs:{inner}"
            case _:
                return f"{scheme}://{authority}{inner}"

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
        try:
            return os.stat(location).st_size
        except OSError as error:
            raise storage_error(location, error) from error

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, most: int | None = None
    ) -> bytes:
        """``length`` bytes from ``offset``, or everything from there.

        Raises CorruptFileError when the file ends before ``length`` bytes are read, and
        ScanLimitError, before anything is read, for a whole file of more than ``most`` bytes.
        """
        location = self.location(path)
        if most is not None:
            data = self._read_whole(location, most)
        elif not is_local(location):
            data = self.remote_files().read(location, offset, length)
        else:
            try:
                with open(location, "rb", buffering=0 if length is None else -1) as file:
                    count = -1 if length is None else length
                    if count > _UNASKED:
                        # The length comes from a manifest; allocate only what the file has.
                        count = max(min(count, os.fstat(file.fileno()).st_size - offset), 0)
                    if offset:
                        file.seek(offset)
                    data = file.read(count)
            except OSError as error:
                raise storage_error(location, error) from error
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
        """A file of a store as it was read before, without a request; None where it is not here.

        Raises ScanLimitError for a file of more than ``most`` bytes.
        """
        location = self.location(path)
        return None if is_local(location) else self.remote_files().kept(location, most)

    def kept_name(self, path: str) -> str | None:
        """The key of a file in ``kept``, another for each store and principal.

        None of files of this machine, and of those that may be written again.
        """
        location = self.location(path)
        return None if is_local(location) else self.remote_files().kept_name(location)

    def forget(self, path: str, length: int | None = None) -> bool:
        """Fetch a file of a store anew next time: what came was not what it should be.

        ``length`` is the recorded one of a data file. Whether anything of it was kept.
        """
        location = self.location(path)
        return not is_local(location) and self.remote_files().forget(location, length)

    def _read_whole(self, location: str, most: int) -> bytes:
        if not is_local(location):
            return self.remote_files().read_whole(location, most)
        try:
            with open(location, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                check_size(location, size, most)
                return file.read(size)
        except OSError as error:
            raise storage_error(location, error) from error

    def open(self, path: str) -> BinaryIO:
        """The file as a seekable binary stream; close it."""
        location = self.location(path)
        if not is_local(location):
            return self.remote_files().open(location)
        try:
            return cast(BinaryIO, open(location, "rb"))
        except OSError as error:
            raise storage_error(location, error) from error

    def open_known(self, path: str, length: int) -> BinaryIO:
        """As ``open`` for a file that metadata says the length of: a store is not asked for it."""
        location = self.location(path)
        return (
            self.open(path) if is_local(location) else self.remote_files().stream(location, length)
        )

    def filesystem(self, path: str) -> tuple[Any, str]:
        """The ``pyarrow.fs.FileSystem`` and the path inside it for ``path``."""
        location = self.location(path)
        if not is_local(location):
            return self.remote_files().filesystem(location)
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem(), location

    def list_folder(self, path: str) -> list[str]:
        """Names of the files directly in a folder, sorted; StorageError when it cannot be listed.

        The folder is taken as written, never re-rooted.
        """
        if self.confine is not None and not self.confine.hold(path):
            raise denied(path)
        if not is_local(path):
            return self.remote_files().list_folder(path)
        folder = local_spellings(path)[0]
        try:
            return sorted([entry.name for entry in os.scandir(folder) if entry.is_file()])
        except OSError as error:
            raise storage_error(folder, error) from error

    def version_of(self, path: str) -> tuple[str, int, int] | None:
        """(location, time of change in ns, size) of a local file, None of others and no file."""
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


# Metadata names files that exist; what is missing has mostly been expired in the meantime.
VANISHED: Final = "no such file; expired or removed while reading?"


def storage_error(path: str, error: OSError) -> StorageError:
    """An OSError in words: what happened, without the errno and the path twice."""
    return StorageError(path, os_problem(error))


def os_problem(error: OSError) -> str:
    """The reason of an OSError; the system's own words begin in lower case."""
    if isinstance(error, FileNotFoundError):
        return VANISHED
    text = error.strerror or str(error)
    known = error.errno is not None and text == os.strerror(error.errno)
    return text[:1].lower() + text[1:] if known else text
