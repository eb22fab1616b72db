"""New files that are not committed yet: those not handed over to a commit are removed."""

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
