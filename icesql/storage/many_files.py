"""Many files at once: list those below a folder, and remove them, here or in an object store."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from icesql.context import Progress, QueryContext
from icesql.errors import StorageError
from icesql.frozen import Frozen
from icesql.storage.new_files import remove_file
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


# ------------------------------------------------------------------ removal


T = TypeVar("T")

_AT_ONCE: Final = 16


def remove_files(
    storage: Storage,
    paths: Iterable[str],
    query: QueryContext,
    *,
    allowed: Callable[[str], bool] = lambda path: True,
    at_once: int | None = None,
) -> set[str]:
    """Remove files of a table, as ``remove_file`` does; those that could not be removed.

    ``allowed`` is called just before each removal: a folder may have become a link meanwhile.

    Removals start in the order given; those that have started when the statement is cancelled are
    completed. Raises QueryCancelledError.
    """

    def remove(path: str) -> bool:
        return allowed(path) and remove_file(storage, path)

    return {path for path, done in _each(paths, remove, is_local, query, at_once) if not done}


def remove_listed(
    storage: Storage,
    files: Iterable[ListedFile],
    query: QueryContext,
    *,
    at_once: int | None = None,
) -> list[ListedFile]:
    """As ``remove_files`` for listed files: exactly these, wherever their paths might lead."""

    def remove(file: ListedFile) -> bool:
        if file.place is None:
            return remove_file(storage, file.path)
        return _remove_place(storage, file.place)

    found = _each(files, remove, lambda file: file.place is not None, query, at_once)
    return [file for file, done in found if not done]


def _remove_place(storage: Storage, place: str) -> bool:
    folder = os.path.dirname(place)
    try:
        # A folder that became a link since the listing leads elsewhere.
        if os.path.realpath(folder) != folder:
            return False
        if storage.confine is not None and not storage.confine.hold_place(place):
            return False
        os.unlink(place)
    except OSError:
        return False
    return True


def _each(
    items: Iterable[T],
    remove: Callable[[T], bool],
    is_here: Callable[[T], bool],
    query: QueryContext,
    at_once: int | None,
) -> Iterator[tuple[T, bool]]:
    number = 0
    waiting: deque[tuple[T, Future[bool]]] = deque()
    most = at_once or _AT_ONCE
    # It has no threads until it is given a file of a store.
    pool = ThreadPoolExecutor(most, thread_name_prefix="icesql-remove")
    try:
        for item in items:
            query.check()
            number += 1
            query.report(Progress("removing", number))
            if is_here(item):
                yield item, remove(item)
                continue
            waiting.append((item, pool.submit(remove, item)))
            if len(waiting) >= 2 * most:
                first, done = waiting.popleft()
                yield first, done.result()
        for item, done in waiting:
            yield item, done.result()
    finally:
        pool.shutdown(cancel_futures=True)
