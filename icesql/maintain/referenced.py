"""Find all files that a table references, which are never orphans."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import NotSupportedError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.table_metadata import metadata_document
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.listing import ListedFile
from icesql.storage.open import (
    METADATA_BYTES,
    Storage,
    components,
    is_local,
    local_spellings,
    split_path,
)

Mismatch = Literal["error", "ignore", "delete"]

SCHEMES: Final = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs",
}  # fmt: skip


class Prefixes(Frozen):
    """Schemes and authorities that mean the same store: maps each spelling to the canonical one.

    ``mismatch``: how to treat a file whose path is that of a file of the table, but with another
    scheme or authority.
    """

    schemes: Mapping[str, str] = MappingProxyType(SCHEMES)
    authorities: Mapping[str, str] = MappingProxyType({})
    mismatch: Mismatch = "error"

    def of(self, path: str) -> tuple[str, str, str]:
        """The canonical scheme and authority of a path, and the rest of the path."""
        scheme, authority, _ = split_path(path)
        inner = "/" + "/".join(components(path))
        scheme = self.schemes.get(scheme, scheme)
        return "" if scheme == "file" else scheme, self.authorities.get(authority, authority), inner


class Referenced:
    """The files that a table needs, in any spelling of their paths."""

    def __init__(self, storage: Storage, prefixes: Prefixes, paths: Iterable[str]) -> None:
        self._prefixes = prefixes
        # By the path without scheme and authority: the schemes, authorities and full paths.
        self._by_path: dict[str, list[tuple[str, str, str]]] = {}
        self._places: set[str] = set()
        folders: dict[str, str] = {}
        for path in paths:
            scheme, authority, inner = prefixes.of(path)
            self._by_path.setdefault(inner, []).append((scheme, authority, path))
            if storage.reroot is not None:
                self._places.add(storage.same_file_key(path))
            if is_local(path):
                self._places.update(_real_places(path, folders))
            elif inner != split_path(path)[2]:
                # Stores distinguish "a//b" from "a/b", and readers of tables may not.
                self._by_path.setdefault(split_path(path)[2], []).append((scheme, authority, path))

    def holds(self, file: ListedFile) -> bool:
        """True if the table needs a file. Raises NotSupportedError if that cannot be decided."""
        if file.place is not None and file.place in self._places:
            return True
        scheme, authority, inner = self._prefixes.of(file.path)
        found = self._by_path.get(inner) or self._by_path.get(split_path(file.path)[2])
        if not found:
            return False
        if any(
            each[0] in ("", scheme) and each[1].lower() in ("", authority.lower()) for each in found
        ):
            return True
        if self._prefixes.mismatch == "error":
            raise NotSupportedError(
                f"not supported: removing orphans where {file.shown} may be {found[0][2]}, a file "
                "of the table: if they are the same, say so with equal_schemes or "
                "equal_authorities; else prefix_mismatch_mode => 'IGNORE' keeps such files and "
                "'DELETE' removes them"
            )
        return self._prefixes.mismatch == "ignore"


def _real_places(path: str, folders: dict[str, str]) -> Iterator[str]:
    """The possible spellings of a local path, also with links resolved."""
    for place in local_spellings(path):
        if "\0" in place:
            continue  # a decoded partition value: no file system has such a name
        yield place
        folder, name = os.path.split(place)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        real = os.path.join(folders[folder], name)
        yield real
        if os.path.islink(real):
            yield os.path.realpath(real)


def referenced_paths(table: Table, query: QueryContext) -> Iterator[str]:
    """Every path that a table names: metadata, manifest lists, manifests, live files, statistics.

    Includes all snapshots, also those of no branch. Raises what reading a manifest raises: an
    unreadable one may name any file.
    """
    yield table.metadata_location
    yield from _texts_of(table)
    metadata = table.metadata
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield from (path for path, _ in named_files(table, query))


def named_files(table: Table, query: QueryContext) -> Iterator[tuple[str, int | None]]:
    """Every file that a snapshot names, once, with its recorded length, None if unknown."""
    metadata, reader = table.metadata, ManifestReader(table, query)
    snapshots = metadata.snapshots.values()
    yield from ((each.manifest_list, None) for each in snapshots if each.manifest_list is not None)
    manifests = reader.all_manifests_of(snapshots)
    for manifest in manifests.values():
        yield manifest.manifest_path, manifest.manifest_length
    seen: set[str] = set()
    for entries, index in reader.live(manifests.values()):
        path = entries.path[index]
        if path not in seen:
            seen.add(path)
            yield path, entries.file_size_in_bytes[index]
    for each in metadata.statistics_files:
        yield each.statistics_path, each.file_size_in_bytes


def _texts_of(table: Table) -> Iterator[str]:
    """All strings in the metadata file that look like paths, also of kinds unknown to icesql."""
    try:
        data = table.storage.read(table.metadata_location, most=METADATA_BYTES)
    except StorageError:
        return  # a REST catalog may not give access to the file
    document = metadata_document(data, table.metadata_location)
    waiting: list[Any] = [document]
    while waiting:
        match waiting.pop():
            case dict() as node:
                waiting.extend(node.values())
            case list() as items:
                waiting.extend(items)
            case str() as text if "/" in text and len(text) < 10_000:
                yield text


def wanted_name(enter_partitions: frozenset[str]) -> Callable[[str], bool]:
    """A filter of folders to list: hidden ones only if they are folders of a partition field.

    Source: Java ``PartitionAwareHiddenPathFilter``.
    """

    def enter(name: str) -> bool:
        hidden = name.startswith(("_", "."))
        return not hidden or any(name.startswith(f"{field}=") for field in enter_partitions)

    return enter
