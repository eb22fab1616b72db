"""DirectoryCatalog: a folder of tables, as Hadoop catalogs lay them out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from icesql.catalog.current_metadata import (
    find_current_metadata,
    hadoop_version,
    is_metadata_name,
)
from icesql.catalog.identifiers import matching, not_found
from icesql.catalog.table import Identifier, Table, table_from_metadata
from icesql.errors import (
    CatalogError,
    CommitConflictError,
    NotSupportedError,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage, storage_error
from icesql.storage.roots import Roots

_DATABASE: Final = ".db"


class DirectoryCatalog:
    """The tables below one local folder; folders are namespaces, at any depth.

    A folder is a table if its folder ``metadata`` contains a metadata file; folders inside a table
    are ignored. Hidden folders (``.`` and ``_``) are not namespaces. ``x.db``, as Hive and
    PyIceberg name the folder of namespace x, is found as ``x`` unless a folder x exists too.
    Names match exactly, else case-insensitively if the match is unique.
    Source: Iceberg Java ``HadoopCatalog``.
    """

    # Nobody is asked but this machine's file system.
    may_wait = False
    kind = "directory"

    def __init__(
        self,
        folder: str,
        name: str | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        cache: BoundedCache | None = None,
        confine: bool | Roots = False,
    ) -> None:
        self.folder, self.properties, self.cache = folder, dict(properties or {}), cache
        self.confine = confine
        self.name = name or os.path.basename(folder.rstrip("/")) or "warehouse"
        if _is_table(folder):
            raise CatalogError(
                f"{folder} is a table, not a folder of tables; "
                f"read it with iceberg_scan('{folder}') or name the folder above it"
            )

    def __repr__(self) -> str:
        return f"DirectoryCatalog({self.folder!r})"

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``."""
        return sorted(name for name, _, table in self._walk() if not table)

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``; ``()`` for those outside any namespace."""
        if namespace is None:
            return sorted(name for name, _, table in self._walk() if table)
        here = tuple(namespace)
        folder = self._resolve(here)
        if folder is None or _is_table(folder):
            return []
        return sorted((*here, name) for name, path in _children(folder) if _is_table(path))

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``."""
        wanted = tuple(identifier)
        location = self._current(wanted)
        if location is None:
            everything = self.tables()
            found = matching(wanted, everything)
            location = self._current(found) if found else None
            if found is None or location is None:
                raise not_found(wanted, everything, f"warehouse {self.folder}")
            wanted = found
        return table_from_metadata(
            wanted, location, properties=self.properties, cache=self.cache, confine=self.confine
        )

    def commit(self, identifier: Sequence[str], *, expected: str | None, new: str) -> str:
        """As ``Catalog.commit``, for the Hadoop layout: ``new`` becomes v<N+1>.metadata.json.

        ``new`` is a complete metadata file under another name in the table's metadata folder; it
        is renamed, which fails if another writer has taken the version. NotSupportedError for a
        table whose metadata files a catalog named: only that catalog may commit to it.
        """
        folder = os.path.dirname(os.path.abspath(new))
        if os.path.basename(folder) != "metadata":
            raise CatalogError(f"{new} is not in the metadata folder of {'.'.join(identifier)}")
        current = find_current_metadata(folder, Storage()) if expected is not None else None
        if expected is not None and current != expected:
            raise CommitConflictError(
                f"the table {'.'.join(identifier)} is no longer at {expected}; "
                "load it again and retry"
            )
        version = hadoop_version(os.path.basename(expected)) if expected is not None else 0
        if version is None:
            raise NotSupportedError(
                f"not supported: commits to {'.'.join(identifier)} through a warehouse folder; "
                "its files are named by another catalog, commit through that one"
            )
        gzip = ".gz" if new.endswith((".gz.metadata.json", ".metadata.json.gz")) else ""
        # Both spellings of a version count as taken.
        final = os.path.join(folder, f"v{version + 1}{gzip}.metadata.json")
        for other in ("", ".gz"):
            if os.path.exists(os.path.join(folder, f"v{version + 1}{other}.metadata.json")):
                raise CommitConflictError(f"{final} was committed meanwhile")
        try:
            os.link(new, final)  # unlike rename, this never replaces
            os.unlink(new)
        except FileExistsError as error:
            raise CommitConflictError(f"{final} was committed meanwhile") from error
        except OSError as error:
            raise storage_error(final, error) from error
        _write_hint(folder, version + 1)
        return final

    def drop(self, identifier: Sequence[str]) -> None:
        """NotSupportedError: here the table is its files, and icesql deletes no data."""
        raise NotSupportedError(
            f"not supported: dropping {'.'.join(identifier)} from a warehouse folder would delete "
            "its files; remove the folder yourself"
        )

    def close(self) -> None:
        """Nothing stays open."""

    # ------------------------------------------------------------------ folders

    def _current(self, identifier: Identifier) -> str | None:
        folder = self._resolve(identifier)
        if folder is None:
            return None
        return find_current_metadata(
            os.path.join(folder, "metadata"), Storage(self.properties, cache=self.cache)
        )

    def _resolve(self, identifier: Identifier) -> str | None:
        folder = self.folder
        for part in identifier:
            if part in ("", ".", "..") or "/" in part or "\0" in part:
                return None
            found = os.path.join(folder, part)
            if not os.path.isdir(found):
                found += _DATABASE
                if not os.path.isdir(found):
                    return None
            folder = found
        return folder

    def _walk(self) -> Iterator[tuple[Identifier, str, bool]]:
        """(name, folder, is a table) of everything below; links in circles are followed once."""
        seen: set[str] = set()
        waiting: list[tuple[Identifier, str]] = [((), self.folder)]
        while waiting:
            above, folder = waiting.pop()
            real = os.path.realpath(folder)
            if real in seen:
                continue
            seen.add(real)
            for name, path in _children(folder):
                table = _is_table(path)
                yield (*above, name), path, table
                if not table:
                    waiting.append(((*above, name), path))


def _children(folder: str) -> list[tuple[str, str]]:
    """(name, path) of the folders that may be tables or namespaces in ``folder``."""
    try:
        entries = {entry.name: entry.path for entry in os.scandir(folder) if entry.is_dir()}
    except OSError as error:
        raise storage_error(folder, error) from error
    found = []
    for name, path in entries.items():
        if name.startswith((".", "_")):
            continue
        short = name.removesuffix(_DATABASE)
        if short and short not in entries and not _is_table(path):
            name = short
        found.append((name, path))
    return found


def _is_table(folder: str) -> bool:
    try:
        with os.scandir(os.path.join(folder, "metadata")) as entries:
            return any(is_metadata_name(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(os.path.join(folder, "metadata"), error) from error


def _write_hint(folder: str, version: int) -> None:
    """Best effort, as in Java: readers probe upwards from a hint that lags."""
    temporary = os.path.join(folder, f"{os.urandom(8).hex()}-version-hint.temp")
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(str(version))
        os.replace(temporary, os.path.join(folder, "version-hint.text"))
    except OSError:
        return
