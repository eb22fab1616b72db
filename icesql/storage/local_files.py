"""Expand a path or glob of a query to local files, inside the allowed roots."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable

from icesql.errors import AccessDeniedError, StorageError
from icesql.storage.reroot import is_local, local_spellings
from icesql.storage.roots import Roots


def local_files(path: str, allowed: bool | Roots, check: Callable[[], None]) -> list[str]:
    """The files, sorted, with all symbolic links resolved; at least one.

    ``*``, ``?``, ``[…]`` and ``**`` match as in a shell. ``check`` is called for each match and
    may raise. Raises AccessDeniedError, with one text whatever is there, for a path that leads
    outside of the roots, also by a link that a glob finds; StorageError where no file matches.
    """
    if not is_local(path) or "\0" in path:
        raise _denied()
    place = local_spellings(os.path.expanduser(path))[0]
    if isinstance(allowed, Roots) and not (allowed.hold(path) and allowed.hold_place(place)):
        raise _denied()
    if os.path.isfile(place) or not glob.has_magic(place):
        found = [place] if os.path.isfile(place) else []
    else:
        found = []
        for match in glob.iglob(place, recursive=True):
            check()
            if isinstance(allowed, Roots) and not allowed.hold_place(match):
                raise _denied()
            if os.path.isfile(match):
                found.append(match)
    if not found:
        raise StorageError(path, "no such file")
    return [os.path.realpath(each) for each in sorted(found)]


def _denied() -> AccessDeniedError:
    return AccessDeniedError("no file may be read by this path", argument="files")
