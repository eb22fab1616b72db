"""StoredStream: a StoredFile as a file object; each thread has a position of its own."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

from icesql.storage.stores.files import StoredFile


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
