"""New files of a table, local or in a store: each is complete under its name, or absent."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from icesql.errors import Error, OperationalError, StorageError, UnsupportedTableError
from icesql.storage.credentials import redact
from icesql.storage.open import is_local, local_spellings
from icesql.storage.output_file import OutputFile

if TYPE_CHECKING:
    from icesql.storage.open import Storage

T = TypeVar("T")


def check_writable(storage: Storage) -> None:
    """Raise UnsupportedTableError for a table whose metadata records another location than its own.

    New files would lie here and be recorded there, where no other reader finds them.
    """
    reroot = storage.reroot
    if reroot is None:
        return
    recorded = reroot.recorded_location
    if is_local(recorded):
        folder = os.path.realpath(reroot.folder)
        if any(os.path.realpath(each) == folder for each in local_spellings(recorded)):
            return
    raise UnsupportedTableError(
        f"writing to a table that lies in {reroot.folder} and says that it lies in {recorded}: "
        "open it where it says, or register a copy whose metadata was rewritten",
    )


class NewFile:
    """Bytes of a file at ``path``, a new name in the table's own spelling of its location.

    The file appears at ``finish``, and only complete: a local file is written beside its name and
    linked to it, a store shows an object once it is whole. Used as a context, it is finished at the
    end of the block, or removed after an error.

    Raises OperationalError (StorageError for stores) naming the path, also where a file of that
    name is there already, and AccessDeniedError for a path outside of the storage's roots.
    """

    closed = False  # with ``write`` all that pyarrow's PythonFile asks of a file

    def __init__(self, storage: Storage, path: str) -> None:
        storage.check(path)
        self.path, self._storage = path, storage
        self.size = 0
        self._local: OutputFile | None = None
        self._stream: Any = None
        if is_local(path):
            place = local_spellings(path)[0]
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
            except OSError as error:
                raise StorageError(
                    path, f"cannot make its folder: {error.strerror}", verb="write"
                ) from error
            self._local = OutputFile(place)
        else:
            self._stream = self._of_store(self._open_stream)

    def _open_stream(self) -> Any:
        from pyarrow.fs import FileType

        files, inner = self._storage.remote_files().filesystem(self.path)
        if files.get_file_info(inner).type != FileType.NotFound:
            raise StorageError(self.path, "a file of this name is there already", verb="write")
        return files.open_output_stream(inner)

    def _of_store(self, function: Callable[[], T]) -> T:
        return _of_store(self._storage, self.path, function)

    def write(self, data: Any) -> int:
        """Write some more bytes."""
        held = memoryview(data)
        if self._local is not None:
            self._local.write(held)
        elif self._stream is None:
            raise OperationalError(f"cannot write {self.path}: the file is closed")
        else:
            self._of_store(lambda: self._stream.write(held))
        self.size += held.nbytes
        return held.nbytes

    def finish(self) -> int:
        """Make the file appear under its name; returns its length in bytes."""
        if self._local is not None:
            self._local.finish()
        elif self._stream is not None:
            stream = self._stream
            self._of_store(stream.close)
            self._stream = None
        return self.size

    def abandon(self) -> None:
        """Remove the unfinished file. Harmless when repeated, and after ``finish``."""
        if self._local is not None:
            self._local.abandon()
        stream, self._stream = self._stream, None
        if stream is not None:
            # A store keeps the parts of an upload that never ends: end it, and remove the object.
            with suppress(Exception):
                stream.close()
            remove_file(self._storage, self.path)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


def replace_file(storage: Storage, path: str, data: bytes) -> None:
    """Write these bytes to a file, new or existing; readers see the old or the new ones.

    Raises StorageError, and AccessDeniedError for a path outside of the storage's roots.
    """
    storage.check(path)
    if is_local(path):
        with OutputFile(local_spellings(path)[0], overwrite=True) as file:
            file.write(data)
        return
    files, inner = storage.remote_files().filesystem(path)

    def write() -> None:
        with files.open_output_stream(inner) as stream:
            stream.write(data)

    _of_store(storage, path, write)


def _of_store(storage: Storage, path: str, function: Callable[[], T]) -> T:
    """Call ``function``; a store's error becomes a StorageError without secrets."""
    try:
        return function()
    except Error:
        raise
    except Exception as error:  # each store has its own
        properties = storage.properties if storage.lease is None else storage.lease.current()
        raise StorageError(path, redact(str(error), properties), verb="write") from error


def remove_file(storage: Storage, path: str) -> bool:
    """Remove a file of the table; returns whether it succeeded. Never raises."""
    try:
        storage.check(path)
        if is_local(path):
            os.unlink(local_spellings(path)[0])
            return True
        files, inner = storage.remote_files().filesystem(path)
        files.delete_file(inner)
    except Exception:  # each store has its own, and what is left is an orphan at worst
        return False
    return True
