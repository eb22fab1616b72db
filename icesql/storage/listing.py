"""All files below a folder, on this machine or in an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from icesql.context import Progress, QueryContext
from icesql.errors import StorageError
from icesql.frozen import Frozen
from icesql.storage.open import is_local, local_spellings, split_path

if TYPE_CHECKING:
    from icesql.storage.open import Storage

_STEP: Final = 1000


class ListedFile(Frozen):
    """A file as a listing has it.

    ``path`` begins with the listed folder as written, ``names`` are the folders and the name below
    that. ``modified_ms`` is when it last changed, in milliseconds since 1970. ``place`` is its
    local path, None in a store.
    """

    path: str
    names: tuple[str, ...]
    size: int
    modified_ms: int
    place: str | None = None

    @property
    def shown(self) -> str:
        """The path for people: bytes that are not UTF-8 are escaped."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


def list_files(
    storage: Storage,
    folder: str,
    query: QueryContext,
    *,
    enter: Callable[[str], bool] = lambda name: True,
) -> Iterator[ListedFile]:
    """Every file below a folder at any depth; none where there is no such folder.

    Folders for whose name ``enter`` returns False are left out with their contents. Symbolic links
    are neither followed nor listed: their targets are elsewhere. Raises StorageError where any
    folder cannot be read, AccessDeniedError outside of the storage's roots.
    """
    storage.check(folder)
    found = _local(folder, query, enter) if is_local(folder) else _remote(storage, folder, enter)
    for number, each in enumerate(found):
        if number % _STEP == 0:
            query.check()
            query.report(Progress("listing", number))
        yield each


def _local(folder: str, query: QueryContext, enter: Callable[[str], bool]) -> Iterator[ListedFile]:
    root = next((each for each in local_spellings(folder) if os.path.isdir(each)), None)
    if root is None:
        return
    start = folder.rstrip("/")
    waiting: list[tuple[str, tuple[str, ...]]] = [(os.path.realpath(root), ())]
    while waiting:
        query.check()
        place, names = waiting.pop()
        try:
            with os.scandir(place) as entries:
                # The order of a folder is the file system's own.
                for entry in sorted(entries, key=lambda each: each.name):
                    inner = (*names, entry.name)
                    if entry.is_symlink():
                        continue
                    if entry.is_dir():
                        if enter(entry.name):
                            waiting.append((entry.path, inner))
                    elif entry.is_file():
                        status = entry.stat(follow_symlinks=False)
                        changed = status.st_mtime_ns // 1_000_000
                        path = f"{start}/{'/'.join(inner)}"
                        yield ListedFile(path, inner, status.st_size, changed, entry.path)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            raise StorageError(
                place, (error.strerror or str(error)).lower(), verb="list"
            ) from error


def _remote(storage: Storage, folder: str, enter: Callable[[str], bool]) -> Iterator[ListedFile]:
    start = folder.rstrip("/")
    _, authority, _ = split_path(start)
    for inner, size, modified_ms in storage.remote_files().walk(start):
        names = tuple(inner.split("/"))
        if authority and all(enter(name) for name in names[:-1]):
            yield ListedFile(f"{start}/{inner}", names, size, modified_ms)
