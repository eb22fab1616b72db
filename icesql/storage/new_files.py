"""New files, of results and of tables: each is complete under its name, or absent."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar

from icesql.errors import (
    AccessDeniedError,
    Error,
    InternalError,
    OperationalError,
    StorageError,
    UnsupportedTableError,
)
from icesql.storage.credentials import redact
from icesql.storage.open import is_local, local_spellings
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.storage.open import Storage


_NAME_BYTES: Final = 255


class OutputFile:
    """Bytes for a file at ``path``, written beside it and renamed by ``finish``.

    Without ``overwrite`` an existing file is left unchanged, also one that another program creates
    meanwhile. A pipe or a device is written to directly. Used as a context, it is finished at the
    end of the block, or removed after an error. ``error`` is the error that stopped a write.

    Raises OperationalError naming the path, and AccessDeniedError, with one text whatever is
    there, for a path that leads outside of ``allowed``.
    """

    def __init__(self, path: str, *, overwrite: bool = False, allowed: bool | Roots = True) -> None:
        self._path, self._overwrite = path, overwrite
        self._given = _given(path)
        self._place = os.path.realpath(self._given)
        if allowed is False or (isinstance(allowed, Roots) and not allowed.hold_place(self._place)):
            raise AccessDeniedError("no file may be written by this path", argument="copy_to")
        self.error: BaseException | None = None
        self._temporary: str | None = None
        self._file: IO[bytes] | None = None
        try:
            self._open()
        except (OSError, ValueError) as error:
            raise self._problem(error) from error

    def _open(self) -> None:
        try:
            mode = os.stat(self._given).st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG
        else:
            if stat.S_ISDIR(mode):
                raise OperationalError(f"cannot write {self._path}: it is a folder")
            if stat.S_ISREG(mode) and not self._overwrite:
                raise self._exists()
        if not stat.S_ISREG(mode):
            self._file = os.fdopen(os.open(self._given, os.O_WRONLY), "wb")
            return
        folder, name = os.path.split(self._place)
        mark = f".{os.urandom(6).hex()}.part"
        short = os.fsdecode(os.fsencode(name)[: _NAME_BYTES - len(mark) - 1])
        temporary = os.path.join(folder, f".{short}{mark}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        self._file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
        self._temporary = temporary

    def write(self, data: bytes | memoryview) -> int:
        """Write some more bytes; an error is also kept in ``error``."""
        try:
            if self._file is None:
                raise ValueError("the file is closed")
            return self._file.write(data)
        except (OSError, ValueError) as error:
            self.error = self._problem(error)
            raise self.error from error

    def restart(self) -> bool:
        """Discard the bytes written so far; False for a pipe or a device, which cannot."""
        if self._temporary is None or self._file is None:
            return False
        self._file.seek(0)
        self._file.truncate()
        return True

    def finish(self) -> None:
        """Make the file appear under its name; after an error no file is left."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.flush()
            if self._temporary is not None:
                os.fsync(file.fileno())
            file.close()
            if self._temporary is not None:
                self._rename(self._temporary)
        except (OSError, ValueError) as error:
            with suppress(OSError):
                file.close()
            self._remove()
            raise self._problem(error) from error
        except BaseException:
            self._remove()
            raise
        self._temporary = None

    def _rename(self, temporary: str) -> None:
        if self._overwrite:
            os.replace(temporary, self._place)
            return
        try:
            # This fails if the name exists meanwhile; a rename would replace it.
            os.link(temporary, self._place)
        except FileExistsError:
            raise self._exists() from None
        except OSError:  # a file system without links
            if os.path.lexists(self._place):
                raise self._exists() from None
            os.replace(temporary, self._place)
            return
        os.unlink(temporary)

    def abandon(self) -> None:
        """Remove the unfinished file. Harmless when repeated, and after ``finish``."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError, ValueError):
                file.close()
        self._remove()

    def _remove(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)

    def _exists(self) -> OperationalError:
        return OperationalError(
            f"cannot write {self._path}: the file exists; --overwrite, or the option OVERWRITE of "
            "COPY, replaces it"
        )

    def _problem(self, error: Exception) -> OperationalError:
        if isinstance(error, OperationalError):
            return error
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return OperationalError(f"cannot write {self._path}: {reason[:1].lower() + reason[1:]}")

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


def _given(path: str) -> str:
    """The absolute path of a file to write."""
    if not path or "\0" in path:
        raise OperationalError(f"cannot write {path!r}: it is not the path of a file")
    if not is_local(path):
        raise OperationalError(
            f"cannot write {path}: results are written to files of this machine, "
            "not to object stores"
        )
    # The last spelling of a file: URI: no file exists yet that could decide between them.
    return local_spellings(os.path.expanduser(path))[-1]


# ------------------------------------------------------------------ files of a table


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


# ------------------------------------------------------------------ files not committed yet


class Uncommitted:
    """New files of a statement, as a context: its end removes those that are not handed over.

    Files are handed over before the commit begins, which removes them itself if it fails: if it is
    unknown whether it was applied, none of its files may be removed. Files of other processes are
    below ``folder`` and have ``mark`` in their names, which no other files have; unreported ones
    are removed, too, if there may be any because a task was ``lost``.
    """

    def __init__(self, storage: Storage, folder: str = "", mark: str = "") -> None:
        self.storage, self.folder, self.mark = storage, folder, mark
        self._own: dict[str, None] = {}
        self._handed_over: set[str] = set()
        self.lost = False

    def take(self, paths: Iterable[str]) -> None:
        """Add files that were written."""
        self._own.update(dict.fromkeys(paths))

    def report(self, paths: Iterable[str]) -> None:
        """Add the written files that a task reports. Raises InternalError for impossible paths."""
        for each in paths:
            if each in self._own or self.mark not in each or not each.startswith(self.folder):
                raise InternalError("a task reported files that it cannot have written")
            self._own[each] = None

    def hand_over(self, paths: Iterable[str] | None = None) -> None:
        """Leave the removal of these files to another; None: all."""
        self._handed_over.update(self._own if paths is None else paths)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove some files now, unless they are handed over."""
        for each in {*paths} - self._handed_over:
            self._own.pop(each, None)
            remove_file(self.storage, each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove(self._own)
        # The folder may be large: it is not listed where all names are known.
        if self.mark and self.lost:
            kept = {each.rpartition("/")[2] for each in self._handed_over}
            _remove_leftovers(self.storage, self.folder, self.mark, kept)


def _remove_leftovers(storage: Storage, folder: str, mark: str, kept: Collection[str]) -> None:
    """Remove the files below ``folder`` that have ``mark`` in their names. Never raises.

    Those whose names are in ``kept`` stay. Files that cannot be listed or removed stay, too, as
    orphans.
    """
    # Each store has its own errors.
    with suppress(Exception):
        storage.check(folder)
        if is_local(folder):
            for place, _, names in os.walk(local_spellings(folder)[0]):
                for name in names:
                    if mark in name and name not in kept:
                        with suppress(OSError):
                            os.unlink(os.path.join(place, name))
            return
        from pyarrow.fs import FileSelector

        files, inner = storage.remote_files().filesystem(folder)
        for each in files.get_file_info(FileSelector(inner, recursive=True, allow_not_found=True)):
            if mark in each.base_name and each.base_name not in kept:
                files.delete_file(each.path)
