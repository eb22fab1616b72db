"""A file that a result is written to: complete under its name, or not there."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import IO, Final

from icesql.errors import AccessDeniedError, OperationalError
from icesql.storage.open import is_local, local_spellings
from icesql.storage.roots import Roots

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
