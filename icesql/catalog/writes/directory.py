"""Commits to a folder of tables: a hard link creates the next version, so only one writer can.

Source: Iceberg Java ``HadoopTableOperations`` and ``HadoopCatalog``.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from icesql.catalog.current_metadata import (
    HINTS,
    find_current_metadata,
    hadoop_spellings,
    hadoop_version,
    hadoop_versions,
    hinted_last,
    is_taken,
    keep_written,
    metadata_names,
    newer_of_catalog,
    read_hint,
    read_metadata,
)
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.errors import Error, NotSupportedError, StorageError
from icesql.iceberg.metadata.changes.snapshots import (
    has_lost_snapshots,
    has_snapshots,
    snapshot_ids,
)
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata.writing import wants_gzip
from icesql.storage.open import Storage, is_local, local_spellings, storage_errors

# How long a commit assumes that a folder of v<N> files still has no files that a catalog named.
# Writers of the two layouts do not synchronize, so no listing would make this certain.
LISTED_SECONDS: Final = 1.0
_OTHER_FOLDER: Final = "write.metadata.path"
# With these errors the link was certainly not made; other errors, as of a network, leave it open.
_REFUSED: Final = frozenset(
    {
        errno.EPERM, errno.EACCES, errno.EROFS, errno.EXDEV, errno.EMLINK, errno.ENOSPC,
        errno.EDQUOT, errno.ENOENT, errno.ENOTDIR, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL,
    }
)  # fmt: skip


def swap(
    identifier: Sequence[str],
    folder: str,
    base_location: str | None,
    change: TableChange,
    *,
    listed: float | None = None,
) -> Swap:
    """As ``Catalog.swap`` for the table in ``folder``.

    If the folder was ``listed`` recently for the base (in ``time.monotonic``), and the hint shows
    no commit since, it is not listed again: after thousands of commits it has thousands of names.
    """
    metadata, name = os.path.join(folder, "metadata"), ".".join(identifier)
    version, seen, base = 0, None, None
    if base_location is None:
        if find_current_metadata(metadata, Storage()) is not None:
            return Conflict(f"the table {name} was created meanwhile")
    else:
        found = hadoop_version(os.path.basename(base_location))
        if found is None:
            raise NotSupportedError(
                f"not supported: commits to {name} through a warehouse folder; "
                "this table is managed by another catalog; commit through it"
            )
        if (
            hinted_last(metadata) != base_location
            and find_current_metadata(metadata, Storage()) != base_location
        ):
            return Conflict(f"the table {name} is no longer at {base_location}")
        version, seen = found, _identity(base_location)
        base = read_metadata(base_location, change.storage)
    made = change.made(base_location)
    _check(made.document, folder, name)
    # A version is taken if any of its spellings exists. The spelling follows from the base, which
    # all writers of the version have read, so that two writers never use different spellings.
    gzipped = wants_gzip({} if base is None else base.properties)
    final = os.path.join(metadata, f"v{version + 1}{'.gz' if gzipped else ''}.metadata.json")
    if base is None:
        with storage_errors(metadata, "write"):
            os.makedirs(metadata, exist_ok=True)
    linked, stamp = _link_new(made.packed(gzipped=gzipped), final)
    if linked is None:
        return Unknown(f"the file system does not tell whether it made {final}", final)
    if not linked:
        return Conflict(f"{final} was committed meanwhile")
    link = _Linked(final, made.document, base, change)
    try:
        if base_location is None or _identity(base_location) == seen or link.later():
            plain = None if listed is None else link.plain_outcome(listed)
            outcome = link.outcome() if plain is None else plain
        else:
            # The table was dropped, and maybe created again in the same folder.
            outcome = link.withdrawn(f"the table {name} is not there any more")
    except (OSError, Error) as error:
        return Unknown(f"{final} was made, and what others made cannot be read: {error}", final)
    if isinstance(outcome, Done) and stamp is not None:
        place = change.storage.location(final)
        keep_written(final, change.storage, made.document, len(made.data), (place, *stamp))
    return outcome


class _Linked:
    """A version whose file was linked; the table may still not include it.

    If old versions are deleted after a commit, a name can be free again although other writers
    committed that version and later ones. The methods raise if the folder cannot be read.
    """

    def __init__(
        self,
        path: str,
        document: Mapping[str, Any],
        base: TableMetadata | None,
        change: TableChange,
    ) -> None:
        self._path, self._base, self._change = path, base, change
        self._uuid = str(document.get("table-uuid") or "").lower()
        self._folder, name = os.path.split(path)
        self._key = hadoop_version(name) or 0, document["last-updated-ms"]

    def later(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """The paths of the higher ones of ``versions`` (default: the folder's), highest first."""
        if versions is None:
            versions = hadoop_versions(os.listdir(self._folder))
        found = [(number, name) for name, number in versions.items() if number > self._key[0]]
        return [os.path.join(self._folder, name) for _, name in sorted(found, reverse=True)]

    def plain_outcome(self, listed: float) -> Done | None:
        """Done if the hint still named the base and there is no later version; else None.

        Readers that follow the hint then read this version, whatever other files exist. ``listed``
        is when the folder was listed for the base. This method writes the hint; if that sets it
        back behind the commit of another writer, ``outcome`` repairs it.
        """
        folder, version = self._folder, self._key[0]
        others = {*hadoop_spellings(version)} - {os.path.basename(self._path)}

        def is_plain() -> bool:
            return time.monotonic() - listed < LISTED_SECONDS and not is_taken(folder, version + 1)

        with suppress(OSError):
            if read_hint(folder) != version - 1 or not is_plain():
                return None
            if any(os.path.lexists(f"{folder}/{each}") for each in others):
                return None
            put_hint(folder, version)
            if is_plain() and hinted_last(folder) == self._path:
                return Done(self._path)
        return None

    def outcome(self) -> Swap:
        """Determine the outcome: if the table has this version, write the hint; else unlink it."""
        folder, version = self._folder, self._key[0]
        versions, others = metadata_names(os.listdir(folder))
        later = self.later(versions)
        highest = max(versions.values(), default=0)
        if not later:
            spelled = {name for name, number in versions.items() if number == version}
            spelled.discard(os.path.basename(self._path))
            if spelled:
                return self.withdrawn(f"{min(spelled)} was committed meanwhile")
            moved = self._of_catalog(others)
            if moved is not None:
                return self.withdrawn(f"a catalog has committed {moved}")
            write_hint(folder, version)
            return Done(self._path)
        if read_hint(folder) == version:
            write_hint(folder, highest)  # our own hint has set it back
        name = os.path.basename(later[0])
        match self._is_held():
            case True:
                return Done(self._path)
            case False:
                return self.withdrawn(f"{name} was committed meanwhile")
        return Unknown(f"{name} does not tell whether it was made of {self._path}", self._path)

    def _of_catalog(self, others: Sequence[str]) -> str | None:
        """The metadata file that another catalog named, if it is newer than the base."""
        if self._base is None:
            return None
        return newer_of_catalog(self._folder, others, self._base, self._change.storage)

    def withdrawn(self, reason: str) -> Swap:
        """Unlink the file: a Conflict, unless another writer has built on this version."""
        # A hint above every version makes reads fail; without a hint the highest version counts.
        self._remove_hint()
        os.unlink(self._path)
        self._remove_hint()  # another writer that saw this version may have written it meanwhile
        _sync_folder(self._folder)
        held = self._is_held() if self.later() else False
        if held:
            return Done(self._path)
        if held is None:
            return Unknown(f"others may have gone on from {self._path}, which was made and removed")
        with suppress(OSError):
            os.rmdir(self._folder)  # succeeds only if empty: the table was dropped
        return Conflict(reason)

    def _remove_hint(self) -> None:
        with suppress(OSError):
            if read_hint(self._folder) == self._key[0]:
                os.unlink(os.path.join(self._folder, HINTS[0]))

    def _is_held(self) -> bool | None:
        """True if the highest version descends from this one; None if that cannot be determined."""
        top, base = self._highest(), self._base
        if base is None or (top.table_uuid or "").lower() != self._uuid:
            return (top.table_uuid or "").lower() == self._uuid
        before = {
            (hadoop_version(each.metadata_file.rpartition("/")[2]), each.timestamp_ms)
            for each in top.metadata_log
        }
        ids = snapshot_ids(self._change.updates)
        if self._key in before or (ids and has_snapshots(top, base, ids)):
            return True
        if any(version == self._key[0] - 1 for version, _ in before):
            return False  # the log has the base, but not this version as its successor
        return False if ids and not has_lost_snapshots(base, top) else None

    def _highest(self) -> TableMetadata:
        for path in self.later():
            with suppress(StorageError):  # deleted meanwhile after a later commit
                return read_metadata(path, self._change.storage)
        raise StorageError(self._folder, "its versions cannot be read")


def _check(document: dict[str, Any], folder: str, name: str) -> None:
    """Raise NotSupportedError if other readers of the folder would not find the table."""
    location = str(document["location"])
    here = os.path.realpath(folder)
    places = local_spellings(location) if is_local(location) else []
    if not any(os.path.realpath(place) == here for place in places):
        raise NotSupportedError(
            f"not supported: the table {name} in a warehouse folder at another location, "
            f"{location}; it is found by its folder {folder}"
        )
    if document["properties"].get(_OTHER_FOLDER):
        raise NotSupportedError(
            f"not supported: {_OTHER_FOLDER} for {name}, a table in a warehouse folder"
        )


def _link_new(data: bytes, final: str) -> tuple[bool | None, tuple[int, int] | None]:
    """Create a file atomically; whether it was created, its modification time (ns) and its size.

    False if another writer has taken the name; None if the file system's answer leaves it open.
    """
    folder, name = os.path.split(final)
    # Readers ignore names that begin with a dot.
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.new")
    try:
        with storage_errors(final, "write"):
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                written = os.fstat(file.fileno())
            if is_taken(folder, hadoop_version(name) or 0):
                return False, None
            try:
                os.link(temporary, final)  # unlike rename, this never replaces
            except OSError as error:
                # A network file system may have made the link and lost the reply, or repeated the
                # call.
                linked = _is_linked(temporary, final)
                if linked is False and isinstance(error, FileExistsError):
                    return False, None
                if linked is False and error.errno in _REFUSED:
                    raise StorageError(
                        final,
                        "a version is committed by a hard link, which failed here "
                        f"({error.strerror}); without links two writers could commit the same "
                        "version",
                    ) from error
                if not linked:
                    return None, None
            _sync_folder(folder)
            return True, (written.st_mtime_ns, written.st_size)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _identity(path: str) -> tuple[int, ...] | None:
    """A fingerprint that distinguishes a file from a later one of the same name."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _is_linked(temporary: str, final: str) -> bool | None:
    try:
        return os.path.samefile(temporary, final)
    except FileNotFoundError:
        return False
    except OSError:
        return None


def _sync_folder(folder: str) -> None:
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def write_hint(folder: str, version: int) -> None:
    """Best effort, as in Java: readers probe upwards from an old hint. Never set it back."""
    with suppress(OSError):
        while put_hint(folder, version):
            # A writer that committed since the hint was read may have written a higher one.
            version = max(hadoop_versions(os.listdir(folder)).values(), default=0)


def put_hint(folder: str, version: int) -> bool:
    """Write a version into the hint if the hint is lower; True if it was written.

    This can set the hint back if another writer commits meanwhile: callers have to check the
    versions in the folder afterwards.
    """
    hint = os.path.join(folder, "version-hint.text")
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}-version-hint.temp")
    with suppress(OSError):
        if (read_hint(folder) or 0) >= version:
            return False
        try:
            with open(temporary, "w", encoding="ascii") as file:
                file.write(str(version))
            os.replace(temporary, hint)
            return True
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    return False
