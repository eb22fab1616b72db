"""Eviction: keep the block store within its size, and the blocks that running queries use.

A query that opens files by their place holds a lease: a locked file as old as the query. Files used
since the oldest lease began are not evicted. Files are dated under a shared lock of ``gate`` and
removed under an exclusive one, so that none is removed between being found and being dated.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from icesql.storage.file_lock import fcntl, lock

# A sweep leaves this share of the size.
_KEPT: Final = 0.9
# Bytes that a process writes before it reports them; the greatest age of temporary files.
_REPORTED_AT_ONCE: Final = 32 << 20
_ASIDE_SECONDS: Final = 3600.0
_AT_ONCE: Final = 64


class Lease:
    """Keeps the files used from now on, until it is closed or garbage-collected."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{os.getpid()}-{os.urandom(6).hex()}")
        self._handle: int | None = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        lock(self._handle)

    def close(self) -> None:
        """End the lease. Harmless when repeated."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):
                os.unlink(self._path)
            os.close(handle)

    def __del__(self) -> None:
        self.close()


class Eviction:
    """The bytes of one block store, counted for all processes together in the file ``usage``."""

    def __init__(self, folder: str, most_bytes: int) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self._unreported, self._lock = 0, threading.Lock()
        self._sweeping = False

    def lease(self) -> Lease:
        """A lease that begins now."""
        with self.finding():  # a sweep must not meet it before it is locked
            return Lease(os.path.join(self.folder, "leases"))

    def has_leases(self) -> bool:
        """Whether a process holds a lease."""
        try:
            with os.scandir(os.path.join(self.folder, "leases")) as entries:
                return any(_is_held(entry.path) for entry in entries)
        except FileNotFoundError:
            return False

    def finding(self) -> AbstractContextManager[bool]:
        """A block in which files are found and dated, and none of them is removed."""
        return self._locked("gate", shared=True)

    def added(self, size: int) -> None:
        """Count ``size`` written bytes. If the store is too large, sweep in a separate thread."""
        with self._lock:
            self._unreported += size
            if self._unreported < min(_REPORTED_AT_ONCE, self.most_bytes // 16):
                return
        self.report()

    def report(self) -> None:
        """Add the bytes written so far to the common count."""
        with self._lock:
            written, self._unreported = self._unreported, 0
        if not written:
            return
        with self._locked("usage.lock"):
            used = self.usage() + written
            self._write_usage(used)
        with self._lock:
            if used <= self.most_bytes or self._sweeping:
                return
            self._sweeping = True
        with suppress(RuntimeError):
            threading.Thread(target=self._sweep_aside, name="icesql-evict", daemon=True).start()
            return
        self._sweeping = False

    def _sweep_aside(self) -> None:
        again = True
        while again:
            again = False
            try:
                with suppress(OSError):
                    left = self.sweep()
                    with self._lock:
                        # Bytes added meanwhile started no sweep; ``left`` is 0 if another process
                        # sweeps.
                        used = self.usage()
                        again = bool(left) and used > left and used > self.most_bytes
                        self._sweeping = again
            finally:
                if not again:
                    self._sweeping = False

    def sweep(self, most_bytes: int | None = None) -> int:
        """Remove the least recently used files until 9/10 of the size are left; the bytes left."""
        most = self.most_bytes * _KEPT if most_bytes is None else most_bytes
        with self._locked("sweep", wait=False) as mine:
            if not mine:
                return 0  # another process is at it
            before = self.usage()
            files = sorted(self._files())
            total = sum(size for _, size, _ in files)
            with self._locked("gate"):
                horizon = self._horizon()
            for begin in range(0, len(files), _AT_ONCE):
                if total <= most:
                    break
                with self._locked("gate"):
                    for _, size, path in files[begin : begin + _AT_ONCE]:
                        if total > most and self._remove(path, horizon):
                            total -= size
            with self._locked("usage.lock"):
                self._write_usage(total + max(self.usage() - before, 0))
            return total

    def _remove(self, path: str, horizon: int) -> bool:
        with suppress(OSError):
            if os.lstat(path).st_atime_ns < horizon:
                os.unlink(path)
                with suppress(OSError):
                    os.rmdir(os.path.dirname(path))  # of a large object the last part
                return True
        return False

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """(time of use in ns, size, path) of everything that is kept."""
        late = time.time() - _ASIDE_SECONDS
        with suppress(FileNotFoundError):
            for shelf in os.scandir(self.folder):
                if shelf.is_dir(follow_symlinks=False) and len(shelf.name) == 32:
                    yield from _files_below(shelf.path, late)
                elif shelf.name.endswith(".tmp"):  # of the file usage
                    with suppress(OSError):
                        if shelf.stat(follow_symlinks=False).st_mtime < late:
                            os.unlink(shelf.path)

    def _horizon(self) -> int:
        """The beginning of the oldest lease that is held, else now."""
        horizon = time.time_ns()
        with suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(self.folder, "leases")):
                with suppress(OSError):
                    began = entry.stat(follow_symlinks=False).st_mtime_ns
                    if _is_held(entry.path):
                        horizon = min(horizon, began)
                    else:
                        os.unlink(entry.path)
        return horizon

    # ------------------------------------------------------------------ between processes

    def count(self) -> tuple[int, int]:
        """Files and bytes that are kept, counted one by one."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def usage(self) -> int:
        """Bytes that are kept, about."""
        try:
            with open(os.path.join(self.folder, "usage"), "rb") as file:
                return int(file.read(32))
        except (OSError, ValueError):
            return self.count()[1]

    def _write_usage(self, used: int) -> None:
        path = os.path.join(self.folder, "usage")
        aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        with open(aside, "wb") as file:
            file.write(b"%d" % used)
        os.replace(aside, path)

    @contextmanager
    def _locked(self, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of a file; gives False where another holds it and ``wait`` is off."""
        handle = os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield lock(handle, shared=shared, wait=wait)
        finally:
            os.close(handle)


def _files_below(folder: str, late: float) -> Iterator[tuple[int, int, str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(entry.path, late)
                continue
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if not entry.name.endswith(".tmp"):
                    yield found.st_atime_ns, found.st_size, entry.path
                elif found.st_mtime < late:  # its writer was killed
                    os.unlink(entry.path)


def _is_held(path: str) -> bool:
    if fcntl is None:
        return True
    handle = os.open(path, os.O_RDWR)
    try:
        return not lock(handle, wait=False)
    finally:
        os.close(handle)
