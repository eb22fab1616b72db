"""Locks of open files between processes, held until the file is closed."""

from __future__ import annotations

from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is shared safely there
    fcntl = None


def lock(handle: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file; False if another process has the lock and ``wait`` is off.

    True where the system has no such locks.
    """
    if fcntl is not None:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
