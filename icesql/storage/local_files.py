"""Expand a path or glob of a query to local files, inside the allowed roots."""

from __future__ import annotations

import os
from collections.abc import Callable

from icesql.errors import AccessDeniedError, StorageError
from icesql.storage.open import is_local, local_spellings, split_path
from icesql.storage.roots import Roots


def local_files(path: str, allowed: bool | Roots, check: Callable[[], None]) -> list[str]:
    """The files, sorted, with all symbolic links resolved; at least one.

    ``*``, ``?``, ``[…]`` and ``**`` match as in a shell. ``check`` is called for each match and
    may raise. Raises AccessDeniedError for a path that leads outside of the roots, also by a link
    that a glob finds: with one text whatever is there, but naming the folder where an option of
    the roots adds it. StorageError where no regular file matches.
    """
    import glob

    if not is_local(path) or "\0" in path:
        raise _denied(None, allowed)
    path = os.path.expanduser(path)
    place = local_spellings(path)[0]
    if isinstance(allowed, Roots) and not (allowed.hold(path) and allowed.hold_place(place)):
        raise _denied(place, allowed)
    found = [place] if os.path.isfile(place) else []
    if not found and glob.has_magic(path):
        # In the name of the current folder no character is a wildcard.
        root = "/" if split_path(path)[2].startswith("/") else os.getcwd()
        for name in glob.iglob(os.path.relpath(place, root), root_dir=root, recursive=True):
            check()
            match = os.path.normpath(os.path.join(root, name))
            if isinstance(allowed, Roots) and not allowed.hold_place(match):
                raise _denied(match, allowed)
            if os.path.isfile(match):
                found.append(match)
    if not found:
        other = "; a folder, a pipe or a device is there" if os.path.exists(place) else ""
        raise StorageError(path, f"no such file{other}")
    return [os.path.realpath(each) for each in sorted(found)]


def _denied(place: str | None, allowed: bool | Roots) -> AccessDeniedError:
    import glob
    import shlex

    problem = "no file may be read by this path"
    if not isinstance(allowed, Roots) or not allowed.option:
        return AccessDeniedError(problem, argument="files")
    if place is None:
        return AccessDeniedError(f"{problem}; it names no file of this machine", argument="files")
    folder = os.path.dirname(os.path.realpath(place))
    while glob.has_magic(folder) and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    problem = f"the file is in another folder; {allowed.option} {shlex.quote(folder)} allows it"
    return AccessDeniedError(problem, argument="files")
