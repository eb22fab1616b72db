"""File systems for DuckDB; one to write to, each of whose files is a sink for bytes.

DuckDB opens ``icesql-output://files/<token>``; only one statement knows the token, and no file can
be read.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from icesql.engine.engines import Sink

# The directory that an instance has to allow.
OUTPUT_FOLDER: Final = "icesql-output://files"
# DuckDB requires a modification time, but the bytes behind a name never change.
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


class FileSystem(ABC):
    """A file system that ``register`` registers with DuckDB, when its first file is needed.

    Its paths begin with ``scheme``.
    """

    scheme: str

    def __init__(self, register: Callable[[Any], None]) -> None:
        self._register: Callable[[Any], None] | None = register
        self._lock = threading.RLock()

    @abstractmethod
    def open(self, path: str, mode: str) -> Any:
        """An open file. Raises OSError."""

    @abstractmethod
    def length(self, path: str) -> int:
        """The bytes of a file. Raises FileNotFoundError."""

    def make_known(self) -> None:
        """Register the file system, once."""
        with self._lock:
            register, self._register = self._register, None
            if register is not None:
                register(self._made())

    def _made(self) -> Any:
        """An fsspec file system; fsspec is imported only when it is needed."""
        from fsspec import AbstractFileSystem

        files = self

        class _FileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
            protocol = files.scheme
            cachable = False

            def open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> Any:
                return files.open(path, mode)

            def info(self, path: str, **_: Any) -> dict[str, Any]:
                return {"name": path, "size": files.length(path), "type": "file"}

            def modified(self, path: str) -> datetime:
                return _LONG_AGO

            def glob(self, path: str, *_: Any, **__: Any) -> list[str]:
                return [path] if self.exists(path) else []

        return _FileSystem()


class OutputFiles(FileSystem):
    """The sinks that statements of one DuckDB instance write to."""

    scheme = "icesql-output"

    def __init__(self, register: Callable[[Any], None]) -> None:
        super().__init__(register)
        self._sinks: dict[str, Sink] = {}

    @contextmanager
    def path_of(self, sink: Sink) -> Iterator[str]:
        """The path under which DuckDB may write to ``sink`` in this block."""
        self.make_known()
        path = f"{OUTPUT_FOLDER}/{os.urandom(12).hex()}"
        self._sinks[path] = sink
        try:
            yield path
        finally:
            del self._sinks[path]

    def open(self, path: str, mode: str) -> SinkFile:
        """A file to write to."""
        sink = self._sinks.get(path)
        if sink is None or mode != "wb":
            raise PermissionError(path)
        return SinkFile(sink)

    def length(self, path: str) -> int:
        """No file can be read."""
        raise FileNotFoundError(path)


class SinkFile:
    """A file object for DuckDB and pyarrow that writes to a sink; the sink's owner finishes it."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink, self._position = sink, 0

    def write(self, data: Any) -> int:
        """Write bytes, or a buffer of pyarrow's."""
        held = bytes(data)
        self._sink.write(held)
        self._position += len(held)
        return len(held)

    def tell(self) -> int:
        """The number of bytes so far."""
        return self._position

    def flush(self) -> None:
        """Does nothing: the sink is flushed when it is finished."""

    def close(self) -> None:
        """Does nothing: DuckDB closes the file also after a failed statement."""
