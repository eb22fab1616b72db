"""Remove many files: one after the other here, many at once in a store."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from icesql.context import Progress, QueryContext
from icesql.storage.new_file import remove_file
from icesql.storage.open import is_local

if TYPE_CHECKING:
    from icesql.storage.listing import ListedFile
    from icesql.storage.open import Storage

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
