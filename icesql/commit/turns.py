"""Makes the writers of one machine take turns at a table.

Turns are only for fairness: commits are correct without them, because the catalog's swap decides.
With turns, a fast writer does not overtake a slow one again and again. A turn is a kernel lock on
one of a fixed number of files in a folder of the user, so it ends with its process, and no lock
file is placed near a table. If such files are not possible, writers do not wait.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from contextlib import suppress
from typing import Final

from icesql.catalog.table import Catalog, Table
from icesql.context import QueryContext
from icesql.storage.file_lock import lock

# Kinds of catalogs whose writers are mostly on this machine.
_LOCAL: Final = ("directory", "sqlite")
# The longest wait for a turn, and the time between two checks of the lock.
_MOST_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.005
# The number of lock files for all tables; tables that share one sometimes wait for each other.
_FILES: Final = 1024
# Pairs of thread and file: a thread does not wait for its own lock.
_held: Final[set[tuple[int, int]]] = set()


class Turn:
    """The turn of one commit at its table; the end of the ``with`` block leaves it."""

    def __init__(self, catalog: Catalog, table: Table, query: QueryContext) -> None:
        self._query, self._number, self._file = query, -1, -1
        if catalog.kind in _LOCAL:
            key = table.metadata.table_uuid or table.metadata.location
            digest = hashlib.sha256(key.lower().encode("utf-8", "surrogateescape")).digest()
            self._number = int.from_bytes(digest[:8]) % _FILES

        self._holder = threading.get_ident(), self._number

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()

    def take(self) -> None:
        """Wait, for a limited time, until other writers have left. Raises as ``query.check``."""
        if self._number < 0 or self._holder in _held or (file := _opened(self._number)) is None:
            return
        self._file = file
        _held.add(self._holder)
        until = time.monotonic() + _MOST_SECONDS
        while not _is_locked(file) and time.monotonic() < until:
            self._query.check()
            time.sleep(_LOOK_SECONDS)

    def leave(self) -> None:
        """Release the lock."""
        file, self._file = self._file, -1
        if file < 0:
            return
        import fcntl

        _held.discard(self._holder)
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked process also has the file open
        os.close(file)


def _is_locked(file: int) -> bool:
    """True if this writer has the lock, or the file system does not support locks."""
    try:
        return lock(file, wait=False)
    except OSError:
        return True


def _opened(number: int) -> int | None:
    """One of the lock files, open; None if no file private to the user is possible."""
    import tempfile

    try:
        import fcntl  # noqa: F401 (which Windows lacks)

        user = os.getuid()
        folder = os.path.join(tempfile.gettempdir(), f"icesql-turns-{user}")
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        # Files are opened relative to the checked folder, so that a link cannot replace it.
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(place)
            if found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(str(number), flags, 0o600, dir_fd=place)
        finally:
            os.close(place)
    except (OSError, ImportError, AttributeError, NotImplementedError):
        return None
