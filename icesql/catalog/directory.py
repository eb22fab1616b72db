"""DirectoryCatalog: a folder of tables, as Hadoop catalogs lay them out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icesql.catalog.current_metadata import (
    find_current_metadata,
    hadoop_version,
    hinted_last,
    is_metadata_name,
    read_where_it_is,
)
from icesql.catalog.identifiers import matching, not_found
from icesql.catalog.table import Identifier, Table, table_from_metadata
from icesql.errors import CatalogError, NotSupportedError
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage, is_local, local_spellings, storage_errors
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange

_DATABASE: Final = ".db"
_MOST_LISTED: Final = 1000


class DirectoryCatalog:
    """The tables below one local folder; folders are namespaces, at any depth.

    A folder is a table if its folder ``metadata`` contains a metadata file; folders inside a table
    are ignored. Hidden folders (``.`` and ``_``) are not namespaces. ``x.db``, as Hive and
    PyIceberg name the folder of namespace x, is found as ``x`` unless a folder x exists too.
    Names match exactly, else case-insensitively if the match is unique.
    Source: Iceberg Java ``HadoopCatalog``.
    """

    # Only this machine's file system is read.
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
        # Table folders whose current file is a v<N> file → the time of their last listing.
        self._listed: dict[str, float] = {}
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

        return self._table(wanted, location)

    def load_to_change(self, identifier: Sequence[str]) -> Table:
        """As ``load``, for a commit, which checks the current version again.

        If the folder was listed recently, the hint identifies the current file, without another
        listing: after thousands of commits a folder has thousands of names.
        """
        from icesql.catalog.writes.directory import LISTED_SECONDS

        wanted = tuple(identifier)
        folder = self._resolve(wanted)
        listed = None if folder is None else self._listed.get(folder)
        if folder is None or listed is None or time.monotonic() - listed > LISTED_SECONDS:
            return self.load(identifier)
        place = hinted_last(os.path.join(folder, "metadata"))
        return self.load(identifier) if place is None else self._table(wanted, place)

    def _table(self, wanted: Identifier, location: str) -> Table:
        def read(place: str) -> Table:
            return table_from_metadata(
                wanted, place, properties=self.properties, cache=self.cache, confine=self.confine
            )

        return read_where_it_is(location, read, lambda: self._current(wanted))

    # ------------------------------------------------------------------ changes

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``, for the Hadoop layout: the next version is v<N+1>.metadata.json.

        NotSupportedError for a table whose metadata files a catalog named: only that catalog may
        commit to it; and where the file system has no hard links.
        """
        from icesql.catalog.writes import directory

        folder = self._resolve(tuple(identifier)) or self._folder_of(identifier)
        listed = self._listed.get(folder)
        return directory.swap(identifier, folder, base_location, change, listed=listed)

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """As ``Catalog.place_new``: always the folder that corresponds to the name."""
        from icesql.catalog.writes.change import Place, check_empty, requested_location

        folder, name = self._folder_of(identifier), ".".join(identifier)
        requested = requested_location(change)
        if requested is not None and _real(requested) != _real(folder):
            raise NotSupportedError(
                f"not supported: another LOCATION than {folder} for {name}; a table of a warehouse "
                "folder is found by its folder"
            )
        storage = Storage(self.properties, cache=self.cache)
        if _is_table(folder):
            raise CatalogError(
                f"{name} already exists; CREATE TABLE IF NOT EXISTS leaves it as it is, "
                "CREATE OR REPLACE TABLE makes it anew"
            )
        check_empty(folder, storage, name)
        return Place(folder, storage)

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """As ``Catalog.drop``; NotSupportedError without ``purge``: the table is its files."""
        import shutil

        name = ".".join(identifier)
        if not purge:
            raise NotSupportedError(
                f"not supported: dropping {name} from a warehouse folder would delete "
                "its files; say so with PURGE, or remove the folder yourself"
            )
        folder = self._resolve(tuple(identifier))
        if folder is None or not _is_table(folder):
            raise not_found(tuple(identifier), self.tables(), f"warehouse {self.folder}")
        with storage_errors(folder):
            # Metadata first: a partly deleted folder is no table.
            gone = os.path.join(folder, f".{os.urandom(16).hex()}.gone")
            os.rename(os.path.join(folder, "metadata"), gone)
            shutil.rmtree(folder)

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """NotSupportedError: the folder of the files determines the name of such a table."""
        raise NotSupportedError(
            f"not supported: renaming {'.'.join(identifier)} in a warehouse folder, where the "
            "name of a table is its folder, which its metadata records"
        )

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.create_namespace``: a folder."""
        folder = self._folder_of(namespace)
        with storage_errors(folder):
            try:
                os.makedirs(os.path.dirname(folder), exist_ok=True)
                os.mkdir(folder)
            except FileExistsError as error:
                raise CatalogError(f"namespace {'.'.join(namespace)} already exists") from error

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.drop_namespace``."""
        folder, name = self._resolve(tuple(namespace)) if namespace else None, ".".join(namespace)
        if folder is None or _is_table(folder):
            raise CatalogError(f"namespace {name} not found")
        with storage_errors(folder):
            try:
                os.rmdir(folder)
            except OSError as error:
                if os.path.isdir(folder) and os.listdir(folder):
                    raise CatalogError(f"namespace {name} is not empty") from error
                raise

    def _folder_of(self, identifier: Sequence[str]) -> str:
        """The folder of a table or namespace of that name, whether or not it exists.

        Raises CatalogError for names that cannot be folder names, or are hidden ones.
        """
        for part in identifier:
            if part in ("", ".", "..") or part[0] in "._" or "/" in part or "\0" in part:
                raise CatalogError(
                    f'"{part}" cannot be a name in a warehouse folder, where names are folders'
                )
        folder = os.path.abspath(self.folder)
        for part in identifier[:-1]:
            found = os.path.join(folder, part)
            with_suffix = found + _DATABASE
            folder = (
                found if os.path.isdir(found) or not os.path.isdir(with_suffix) else with_suffix
            )
            if _is_table(folder):
                raise CatalogError(f"{part} is a table; there are no tables in it")
        return os.path.join(folder, identifier[-1])

    def forget(self) -> None:
        """Forget earlier listings: folders are listed again."""
        self._listed.clear()

    def close(self) -> None:
        """Does nothing: the catalog holds nothing open."""

    # ------------------------------------------------------------------ folders

    def _current(self, identifier: Identifier) -> str | None:
        folder = self._resolve(identifier)
        if folder is None:
            return None
        now = time.monotonic()
        found = find_current_metadata(
            os.path.join(folder, "metadata"), Storage(self.properties, cache=self.cache)
        )
        if len(self._listed) >= _MOST_LISTED:
            self._listed.clear()
        if found is None or hadoop_version(os.path.basename(found)) is None:
            self._listed.pop(folder, None)
        else:
            self._listed[folder] = now
        return found

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
        """(name, folder, is a table) of all folders below; circular links are followed once."""
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
    with storage_errors(folder):
        entries = {entry.name: entry.path for entry in os.scandir(folder) if entry.is_dir()}
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
    place = os.path.join(folder, "metadata")
    missing = FileNotFoundError, NotADirectoryError
    with storage_errors(place), suppress(*missing), os.scandir(place) as entries:
        return any(is_metadata_name(entry.name) for entry in entries)
    return False


def _real(location: str) -> str:
    return os.path.realpath(local_spellings(location)[0]) if is_local(location) else location
