"""A file system for DuckDB to write to: each of its files is a sink for bytes.

DuckDB opens ``icesql-output://files/<token>``; only one statement knows the token, and no file can
be read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from icesql.engine.protocol import Sink

_SCHEME: Final = "icesql-output"
# The directory that an instance has to allow.
OUTPUT_FOLDER: Final = f"{_SCHEME}://files"


class OutputFiles:
    """The sinks that statements of one DuckDB instance write to.

    ``register`` registers a file system with DuckDB; it is not called before the first sink.
    """

    def __init__(self, register: Callable[[Any], None]) -> None:
        self._register: Callable[[Any], None] | None = register
        self._sinks: dict[str, Sink] = {}
        self._lock = threading.Lock()

    @contextmanager
    def path_of(self, sink: Sink) -> Iterator[str]:
        """The path under which DuckDB may write to ``sink`` in this block."""
        with self._lock:
            register, self._register = self._register, None
            if register is not None:
                register(self._file_system())
        path = f"{OUTPUT_FOLDER}/{os.urandom(12).hex()}"
        self._sinks[path] = sink
        try:
            yield path
        finally:
            del self._sinks[path]

    def _file_system(self) -> Any:
        """An fsspec file system; fsspec is imported only when it is needed."""
        from fsspec import AbstractFileSystem

        sinks = self._sinks

        class _FileSystem(AbstractFileSystem):  # type: ignore[misc]
            protocol = _SCHEME
            cachable = False

            def open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> SinkFile:
                sink = sinks.get(path)
                if sink is None or mode != "wb":
                    raise PermissionError(path)
                return SinkFile(sink)

            def info(self, path: str, **_: Any) -> dict[str, Any]:
                raise FileNotFoundError(path)

            def glob(self, path: str, *_: Any, **__: Any) -> list[str]:
                return []

        return _FileSystem()


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
