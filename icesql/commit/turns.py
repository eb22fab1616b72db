"""Writers of one machine take turns at a table.

A turn is courtesy: commits are right without it, for the catalog's swap alone decides. With it a
slow writer is not overtaken again and again by a quick one. It is a lock of the kernel on one of a
few files in a folder of the user, so that it ends with its process, and nothing lies beside a
table. Where there can be no such file nobody waits.
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

# Catalogs whose writers are on this machine, most of them.
_LOCAL: Final = ("directory", "sqlite")
# The longest wait for a turn, and the time between two looks whether it has come.
_MOST_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.005
# Files for all tables: some tables share one, and wait for each other now and then.
_FILES: Final = 1024
# Of a thread and a file: nobody waits for himself.
_held: Final[set[tuple[int, int]]] = set()


class Turn:
    """The turn of one commit at its table: taken, left, and left at the end of a block."""

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
        """Wait until the others have left theirs, for a while. Raises what ``query.check`` does."""
        if self._number < 0 or self._holder in _held or (file := _opened(self._number)) is None:
            return
        self._file = file
        _held.add(self._holder)
        until = time.monotonic() + _MOST_SECONDS
        while not _is_locked(file) and time.monotonic() < until:
            self._query.check()
            time.sleep(_LOOK_SECONDS)

    def leave(self) -> None:
        """Let others have theirs."""
        file, self._file = self._file, -1
        if file < 0:
            return
        import fcntl

        _held.discard(self._holder)
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked has the file open, too
        os.close(file)


def _is_locked(file: int) -> bool:
    """Whether this one has the lock, or nobody can have it."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _opened(number: int) -> int | None:
    """One of the files, open; None where there can be none that is the user's alone."""
    import tempfile

    try:
        import fcntl  # noqa: F401 (which Windows lacks)

        user = os.getuid()
        folder = os.path.join(tempfile.gettempdir(), f"icesql-turns-{user}")
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        # Files are opened below the folder that was looked at: nobody puts a link into its place.
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
