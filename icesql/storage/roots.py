"""Roots: the places below which a connection may open paths, and local files found there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from icesql.errors import AccessDeniedError, StorageError
from icesql.frozen import Frozen
from icesql.storage.open import components, is_local, local_spellings, one_store, split_path


class Roots(Frozen):
    """Folders of this machine and prefixes of object stores; picklable.

    A path lies below a root by whole names: ``/data`` does not hold ``/database``. Local paths
    are compared absolute, once as text and, only then, with symbolic links resolved: a path outside
    by its text is refused without accessing the file system. Of a ``file:`` URI every meaning
    (percent signs literal or not) must lie below a root. Remote paths must have the root's scheme
    (s3, s3a and s3n are one), its authority to the letter, and no part that a store could take for
    ``.`` or ``..``.
    """

    local: tuple[tuple[str, str], ...]
    remote: tuple[tuple[str, str, tuple[str, ...]], ...]
    texts: tuple[str, ...]
    option: str = ""

    @classmethod
    def of(cls, roots: Iterable[str | os.PathLike[str]], *, option: str = "") -> Roots:
        """The roots as written by the owner. Raises ValueError naming one that cannot be one.

        ``option`` is the option that adds a root, if errors may show it to the author of the paths.
        """
        local, remote, texts = [], [], []
        for root in roots:
            text = os.fspath(root)
            if not isinstance(text, str) or not text.strip() or "\0" in text:
                raise ValueError(f"{text!r} is not a folder")
            texts.append(text)
            if is_local(text):
                place = local_spellings(os.path.expanduser(text))[0]
                local.append((place, os.path.realpath(place)))
                continue
            found = _remote(text)
            if found is None or (not found[1] and found[0] != "hdfs"):
                raise ValueError(f"{text!r} is not a prefix such as s3://bucket/folder")
            remote.append(found)
        return cls(tuple(local), tuple(remote), tuple(texts), option)

    def hold(self, path: str) -> bool:
        """Whether everything that ``path`` may mean lies below a root."""
        if "\0" in path or not path:
            return False
        if is_local(path):
            return all(self.hold_place(place) for place in local_spellings(path))
        found = _remote(path)
        return found is not None and any(
            found[:2] == (scheme, authority) and found[2][: len(names)] == names
            for scheme, authority, names in self.remote
        )

    def hold_for_removal(self, path: str) -> bool:
        """Whether a file that is to be deleted lies below a root, by every reading of its path.

        Escapes count as written and decoded, ``..`` and links are followed. Unlike ``hold`` this
        allows remote paths with empty parts, and escaped slashes as in partitions.
        """
        if "\0" in path or not path:
            return False
        if is_local(path):
            # One folder may be known by several links.
            found = [_split(os.path.realpath(each)) for each in local_spellings(path)]
            # A root that is a URI, too, has several meanings.
            return any(
                _all_below(found, [_split(each) for each in (*places, *_decoded(places[0]))])
                for text in self.texts
                if is_local(text)
                for spelled in (local_spellings(os.path.expanduser(text)),)
                for places in ([os.path.realpath(each) for each in spelled],)
            )
        scheme, authority, rest = split_path(path)
        texts = [rest, *_decoded(rest)]
        if any("\0" in each for each in texts):
            return False
        store = one_store(scheme), authority
        found = [_split(each) for each in texts]
        return any(
            store == (name, own)
            and _all_below(found, [names, *(_split(each) for each in _decoded("/".join(names)))])
            for name, own, names in self.remote
        )

    def hold_place(self, place: str) -> bool:
        """Whether an absolute local path, which may not exist, lies below a root."""
        place = "/" + os.path.normpath(place).lstrip("/")  # two slashes in front are one
        if not any(_below(place, root) or _below(place, real) for root, real in self.local):
            return False
        resolved = os.path.realpath(place)
        return any(_below(resolved, real) for _, real in self.local)


def _decoded(text: str) -> list[str]:
    """The text with its escapes decoded once, twice and so on while there are some."""
    found = [text]
    while (plain := unquote(found[-1]).replace("\\", "/")) != found[-1]:
        found.append(plain)
    return found[1:]


def _split(text: str) -> tuple[str, ...]:
    return components(f"file:///{text}")


def _all_below(found: Sequence[tuple[str, ...]], roots: Sequence[tuple[str, ...]]) -> bool:
    """Whether a path as written lies below a root as written, and all else that it may mean too.

    The root may have escapes in its own name: decoded paths are compared with decoded roots.
    """

    def below(names: tuple[str, ...], root: tuple[str, ...]) -> bool:
        return len(names) > len(root) and names[: len(root)] == root

    first, *others = found
    return below(first, roots[0]) and all(
        any(below(each, root) for root in roots) for each in others
    )


def _below(place: str, root: str) -> bool:
    return place == root or place.startswith(root.rstrip("/") + "/")


def _remote(path: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Scheme, authority and names of a remote path; None for one that has several meanings."""
    scheme, authority, rest = split_path(path)
    names = rest.strip("/").split("/") if rest.strip("/") else []
    for name in (authority, *names):
        plain = unquote(name)
        if name in ("", ".", "..") and name is not authority:
            return None
        if plain in (".", "..") or "/" in plain or "\\" in plain or "\0" in plain:
            return None
    if rest.startswith("//"):
        return None
    return one_store(scheme), authority, tuple(names)


# ------------------------------------------------------------------ files of a path or glob


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
