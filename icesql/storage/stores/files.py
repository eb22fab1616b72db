"""StoredFile: an object of known length, read at any place, from the disk or else from the store.

Missing bytes are requested in parts, many at once; two readers of the same bytes share a request.
``StoredStream`` is a file object over it.
"""

from __future__ import annotations

import io
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from icesql.context import QueryContext
from icesql.errors import CorruptFileError
from icesql.storage.stores.pool import Request, request_pool

if TYPE_CHECKING:
    from icesql.storage.remote import RemoteFiles
    from icesql.storage.stores.blocks import Shelf


# A longer range takes several requests, since a connection gives some 80 MB a second.
PART_BYTES: Final = 4 << 20
# Two ranges with at most this many bytes between them are fetched in one request.
GAP_BYTES: Final = 1 << 20
# With less memory, a reader waits for one part of a read after the other.
_LOW_MEMORY: Final = 1 << 30
# Bytes of a file that may stay in memory when they are not cached on disk.
_HELD_BYTES: Final = 64 << 20

Part = tuple[int, int]
# Bytes of a file, and the request that fetches them; None for bytes already at hand.
Piece = tuple[Part, Request[memoryview] | None]


class OtherLength(CorruptFileError):
    """An object without the length that its table records; ``length`` is the true one."""

    def __init__(self, path: str, length: int, expected: int) -> None:
        self.length, self.expected = length, expected
        super().__init__(path, f"it has {length} bytes where its table says {expected}")


class StoredFile:
    """See the module; safe for threads. ``length`` is the true one once something was fetched.

    With ``whole`` everything comes with the first request. Reads raise StorageError,
    CorruptFileError if the object does not have the recorded length, and QueryCancelledError.
    """

    def __init__(
        self,
        files: RemoteFiles,
        uri: str,
        length: int,
        *,
        query: QueryContext | None = None,
        whole: bool = False,
    ) -> None:
        self._files, self.uri, self.length, self._query = files, uri, length, query
        self.is_whole = whole
        low = query is not None and query.settings.memory_limit < _LOW_MEMORY
        self._step = 2 * PART_BYTES if low else 1 << 62
        self._shelf: Shelf | None = files.shelf(uri)
        self._name = "" if self._shelf is None else self._shelf.name(uri, length)
        self._on_disk: list[Part] | None = None
        self._memory: dict[Part, memoryview] = {}
        self._pending: dict[Part, Request[memoryview]] = {}
        self._lock = threading.Lock()

    @property
    def kept_name(self) -> str:
        """The key of these bytes in the cache, equal for equal bytes; "" if nothing is kept."""
        return "" if self._shelf is None else f"{self._shelf.folder}/{self._name}"

    # ------------------------------------------------------------------ reading

    def read_at(self, offset: int, length: int) -> bytes | memoryview:
        """``length`` bytes from ``offset``; fewer at the end of the object."""
        stop = min(offset + length, self.length)
        if offset >= stop:
            return b""
        for _ in range(3):
            found = self._read(offset, stop)
            if found is not None:
                return found
        raise CorruptFileError(self.uri, "what was fetched cannot be read again from the cache")

    def fetch(self, ranges: Iterable[Part], gap: int = GAP_BYTES) -> None:
        """Request ranges (first byte, end) that will be read; do not wait for them.

        Ranges no farther apart than ``gap`` are fetched as one. Without a cache on disk nothing is
        requested if the bytes do not fit in memory.
        """
        wanted = coalesced(ranges, gap)
        if self._shelf is None and sum(end - first for first, end in wanted) > _HELD_BYTES:
            return
        for first, end in wanted:
            self._cover(max(first, 0), min(end, self.length))

    def leave(self) -> None:
        """End all pending requests, since no reader is left.

        Bytes that have arrived and are being written to disk are kept: the query that read a footer
        goes on to read the file, and must not fetch them again.
        """
        with self._lock:
            for part, request in list(self._pending.items()):
                if self._shelf is None or not request.is_done or request.has_failed:
                    request_pool().leave(request)
                    del self._pending[part]
            self._memory.clear()

    # ------------------------------------------------------------------ parts

    def _cover(self, offset: int, stop: int) -> list[Piece]:
        """Parts that hold these bytes, in order, with the requests for those to come."""
        with self._lock:
            if self._on_disk is None:
                self._on_disk = self._parts_on_disk()
            known = sorted({*self._on_disk, *self._memory, *self._pending})
            pieces: list[Piece] = []
            position = offset
            while position < stop:
                part = _part_at(known, position)
                if part is None:
                    end = min((p[0] for p in known if p[0] > position), default=stop)
                    for part in self._ask(position, min(end, stop)):
                        pieces.append((part, self._pending[part]))
                    position = min(end, stop)
                else:
                    pieces.append((part, self._pending.get(part)))
                    position = part[1]
            return pieces

    def _ask(self, first: int, end: int) -> list[Part]:
        if self.is_whole:
            first, end = 0, self.length
        parts = [(first, end)] if self.is_whole else list(split(first, end))
        for part in parts:
            if part not in self._pending:
                self._pending[part] = request_pool().submit(
                    partial(self._fetched, part),
                    part[1] - part[0],
                    self._query,
                )
        return parts

    def _fetched(self, part: Part, request: Request[memoryview]) -> memoryview:
        """In a thread of the pool."""
        first, end = part
        is_all = (first, end) == (0, self.length)
        body = self._files.get(self.uri, first, None if is_all else end, left=request.left)
        if body.size != self.length:
            raise OtherLength(self.uri, body.size, self.length)
        kept = False
        if self._shelf is not None:
            request.give(body.data)
            # A disk that is full, or missing, only makes reading slower.
            with suppress(OSError):
                if self.is_whole:
                    self._shelf.put_whole(self._name, body.data)
                else:
                    self._shelf.put_part(self._name, first, body.data)
                kept = True
        with self._lock:
            held = sum(len(data) for data in self._memory.values())
            if not kept and held < _HELD_BYTES:
                self._memory[part] = body.data
            if kept and self._on_disk is not None:
                self._on_disk = sorted({*self._on_disk, part})
            if self._shelf is not None:
                self._pending.pop(part, None)
        return body.data

    def _read(self, offset: int, stop: int) -> bytes | memoryview | None:
        """The bytes; None if a part has been removed from the disk in the meantime.

        With little memory only the next part is requested while one is waited for.
        """
        end = min(offset + self._step, stop)
        pieces = self._cover(offset, end)
        if end == stop and len(pieces) == 1:
            return self._piece(*pieces[0], offset, stop)
        # A buffer that is filled in place, so that its bytes need not be copied.
        buffer = BytesIO()
        buffer.seek(stop - offset - 1)
        buffer.write(b"\0")
        with buffer.getbuffer() as view:
            begin = offset
            while begin < stop:
                following = min(end + self._step, stop)
                later = self._cover(end, following) if end < stop else []
                for part, request in pieces:
                    until = min(part[1], end)
                    data = self._piece(part, request, begin, until)
                    if data is None:
                        return None
                    view[begin - offset : until - offset] = data
                    begin = until
                end, pieces = following, later
        return buffer.getvalue()

    def _piece(
        self, part: Part, request: Request[memoryview] | None, begin: int, stop: int
    ) -> bytes | memoryview | None:
        if request is not None:
            try:
                data = request.result(self._query)
            finally:
                with self._lock:
                    # Bytes that are being written to disk are pending until they are there.
                    if request.is_done and (self._shelf is None or request.has_failed):
                        self._pending.pop(part, None)
            return data[begin - part[0] : stop - part[0]]
        with self._lock:
            held = self._memory.get(part)
        if held is not None:
            return held[begin - part[0] : stop - part[0]]
        found = None
        if self._shelf is not None:
            if self.is_whole:
                if place := self._shelf.whole(self._name, self.length):
                    from icesql.storage.stores.blocks import read_own

                    found = read_own(place, begin, stop - begin)
            else:
                found = self._shelf.read_part(self._name, part, begin, stop)
        if found is None:
            with self._lock:
                if self._on_disk is not None and part in self._on_disk:
                    self._on_disk.remove(part)
        return found

    def _parts_on_disk(self) -> list[Part]:
        if self._shelf is None:
            return []
        if self.is_whole:
            there = self._shelf.whole(self._name, self.length)
            return [(0, self.length)] if there else []
        return [part for part in self._shelf.parts(self._name) if part[1] <= self.length]


def _part_at(parts: Sequence[Part], position: int) -> Part | None:
    """The part that reaches farthest among those that hold a position."""
    end = bisect_right(parts, (position, 1 << 62))
    found = [part for part in parts[:end] if part[0] <= position < part[1]]
    return max(found, key=lambda part: part[1]) if found else None


def split(first: int, end: int) -> Iterable[Part]:
    """A range in parts of about equal length, none above ``PART_BYTES``."""
    count = max(-(-(end - first) // PART_BYTES), 1)
    size = -(-(end - first) // count)
    for begin in range(first, end, size):
        yield begin, min(begin + size, end)


def coalesced(ranges: Iterable[Part], gap: int = GAP_BYTES) -> list[Part]:
    """Ranges in order, with those joined that are no farther apart than ``gap``."""
    joined: list[Part] = []
    for first, end in sorted(ranges):
        if joined and first - joined[-1][1] <= gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((first, end))
    return joined


# ------------------------------------------------------------------ file objects


class StoredStream(io.RawIOBase):
    """A seekable, readable binary stream over a file of known length.

    DuckDB's threads share one handle and each seeks before it reads, so each has its own position.
    """

    def __init__(self, file: StoredFile) -> None:
        super().__init__()
        self.file = file
        self._of_thread = threading.local()

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position of this thread."""
        return int(getattr(self._of_thread, "position", 0))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position of this thread."""
        base = (0, self.tell(), self.file.length)[whence]
        self._of_thread.position = max(base + offset, 0)
        return self.tell()

    def size(self) -> int:
        """Length in bytes."""
        return self.file.length

    def read(self, size: int | None = -1) -> Any:
        """The next bytes; fewer only at the end."""
        return bytes(self.view(size))

    def view(self, size: int | None = -1) -> bytes | memoryview:
        """As ``read``, with no copy made for it."""
        position = self.tell()
        rest = max(self.file.length - position, 0)
        count = rest if size is None or size < 0 else min(size, rest)
        data = self.file.read_at(position, count)
        self._of_thread.position = position + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; fewer bytes only at the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """All bytes from the position on."""
        return bytes(self.read())

    def close(self) -> None:
        """End all pending requests."""
        if not self.closed:
            self.file.leave()
        super().close()
