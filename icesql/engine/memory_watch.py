"""How much memory this process has taken since a query began, against its memory limit.

DuckDB counts its buffers; the bytes of texts and lists in its vectors, of rows that became Python
values and of Arrow batches are counted by nobody. Whoever waits for an engine asks here now and
then, so no thread does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Hashable, Iterator
from typing import Final, TypeVar

from icesql.errors import ScanLimitError

Item = TypeVar("Item")

# What a query may take over its limit before it is stopped: modules that it is the first to
# import, and what allocators keep.
_SLACK: Final = 64 << 20
_SLACK_PART: Final = 0.12

# The limits of the connections that are at work, and how many of their queries are.
_at_work: Final[dict[Hashable, tuple[int, int]]] = {}
_lock: Final = threading.Lock()


class MemoryWatch:
    """A context in which one query works; may be entered again inside.

    Counted is what the process grows by while a query is inside; what the program around it takes
    between two visits is not, what it frees is. Where several connections work together, their
    limits are added up. ``owner`` identifies the connection.
    """

    def __init__(self, limit: int, owner: Hashable) -> None:
        self._limit, self._owner = limit, owner
        self._base = self._last = 0
        self._depth = 0

    def __enter__(self) -> MemoryWatch:
        self._depth += 1
        if self._depth == 1:
            now = taken()
            self._base += now - self._last if not self._base else max(now - self._last, 0)
            self._last = now
            with _lock:
                _, queries = _at_work.get(self._owner, (0, 0))
                _at_work[self._owner] = self._limit, queries + 1
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._depth == 1 and kind is None:
                self.check()
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._last = taken()
                with _lock:
                    limit, queries = _at_work.pop(self._owner)
                    if queries > 1:
                        _at_work[self._owner] = limit, queries - 1

    def check(self) -> None:
        """Raises ScanLimitError once the query has taken more than its limit."""
        grown = taken() - self._base
        if grown <= self._limit:
            return
        with _lock:
            limit = sum(limit for limit, _ in _at_work.values())
        if grown > max(limit, self._limit) + max(_SLACK, int(_SLACK_PART * self._limit)):
            raise ScanLimitError(
                f"the query has taken {grown >> 20:,} MiB of memory, more than "
                f"memory_limit = {self._limit >> 20:,} MiB; read fewer columns or rows, read "
                "them in a stream (arrow_reader()), or raise memory_limit"
            )

    def over(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items, each made inside."""
        while True:
            with self:
                item = next(items, None)
            if item is None:
                return
            yield item


def taken() -> int:
    """Bytes of private memory of the process; 0 if the system does not report it.

    Away from Linux it is the most that it ever had, which grows later but grows too.
    """
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return _most_taken()
    try:
        _, resident, shared = os.read(file, 100).split()[:3]
    finally:
        os.close(file)
    return (int(resident) - int(shared)) * _PAGE


def _most_taken() -> int:
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def _page() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4096


_PAGE: Final = _page()
