"""Files of a statement that failed on other machines, found by a name that only it has."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from icesql.storage.reroot import is_local, local_spellings

if TYPE_CHECKING:
    from icesql.storage.open import Storage


def remove_leftovers(
    storage: Storage, folder: str, marks: Collection[str], kept: Collection[str] = ()
) -> None:
    """Remove the files below ``folder`` that have one of ``marks`` in their names. Never raises.

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
                    if _is_left(name, marks, kept):
                        with suppress(OSError):
                            os.unlink(os.path.join(place, name))
            return
        from pyarrow.fs import FileSelector

        files, inner = storage.remote_files().filesystem(folder)
        for each in files.get_file_info(FileSelector(inner, recursive=True, allow_not_found=True)):
            if _is_left(each.base_name, marks, kept):
                files.delete_file(each.path)


def _is_left(name: str, marks: Collection[str], kept: Collection[str]) -> bool:
    return name not in kept and any(mark in name for mark in marks)
