"""New files that no commit has yet: what is not handed over to one is removed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from icesql.errors import InternalError
from icesql.storage.new_file import remove_file
from icesql.storage.open import is_local, local_spellings

if TYPE_CHECKING:
    from icesql.storage.open import Storage


class Uncommitted:
    """New files of a statement, within ``with``: leaving it removes those that stay its own.

    A commit that is given files removes them itself if it fails, so that they are handed over
    before it begins: where it is not known whether it was applied, nothing of it may go. Files that
    others write are below ``folder`` and have ``mark`` in their names, which no other files have;
    those that nobody reported are removed, too, where there may be such, as one was ``lost``.
    """

    def __init__(self, storage: Storage, folder: str = "", mark: str = "") -> None:
        self.storage, self.folder, self.mark = storage, folder, mark
        self._own: dict[str, None] = {}
        self._handed_over: set[str] = set()
        self.lost = False

    def take(self, paths: Iterable[str]) -> None:
        """Files that were written."""
        self._own.update(dict.fromkeys(paths))

    def report(self, paths: Iterable[str]) -> None:
        """Files that a task says that it wrote. Raises InternalError where it cannot have."""
        for each in paths:
            if each in self._own or self.mark not in each or not each.startswith(self.folder):
                raise InternalError("a task reported files that it cannot have written")
            self._own[each] = None

    def hand_over(self, paths: Iterable[str] | None = None) -> None:
        """These are another's to remove from now on; None: all."""
        self._handed_over.update(self._own if paths is None else paths)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove some now, unless they are another's."""
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

    Those whose names are in ``kept`` stay. What cannot be listed or removed stays, too, as files
    that no table has.
    """
    if storage.confine is not None and not storage.confine.hold(folder):
        return
    # Each store has its own errors.
    with suppress(Exception):
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
