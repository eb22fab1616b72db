"""Finds the files that a table references, which are never orphans, and verifies them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from icesql.catalog.table import Table
from icesql.context import Progress, QueryContext
from icesql.errors import CorruptFileError, NotSupportedError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import metadata_document
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.many_files import ListedFile, list_files
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


# ------------------------------------------------------------------ verification


# Counts the live rows of a table at a snapshot.
CountRows = Callable[[Table, Snapshot], int]

_SHOWN = 3


class RefRows(Frozen):
    """The content of a branch or tag; ``rows`` counts live rows."""

    name: str
    kind: str
    snapshot_id: int
    data_files: int
    delete_files: int
    rows: int


class Verified(Frozen):
    """The number and size of the files found, and the content of the refs."""

    files: int
    bytes: int
    refs: tuple[RefRows, ...]


def verify(table: Table, query: QueryContext, count: CountRows) -> Verified:
    """Look for every file of every snapshot in the folder of a table that is complete there.

    Decodes manifests, compares lengths and reads deletes. Raises CorruptFileError naming a file
    that differs from its manifest entry, and what reading a file raises.
    """
    location = table.metadata.location
    lengths = {each.path: each.size for each in list_files(table.storage, location, query)}
    files = total = 0
    problems: list[tuple[str, str]] = []
    for number, (path, length) in enumerate(named_files(table, query)):
        if number % 1000 == 0:
            query.report(Progress("verifying", number))
        found = lengths.get(path)
        if found is None:
            problems.append((path, "it is not there"))
        elif length not in (None, found):
            problems.append((path, f"it has {found} bytes, and is said to have {length}"))
        files, total = files + 1, total + (found or 0)
    if problems:
        path, problem = problems[0]
        more = "".join(f"; {each}: {what}" for each, what in problems[1:_SHOWN])
        left = len(problems) - _SHOWN
        raise CorruptFileError(path, f"{problem}{more}" + (f"; {left} more" if left > 0 else ""))
    return Verified(files, total, refs_of(table, query, count))


def refs_of(table: Table, query: QueryContext, count: CountRows) -> tuple[RefRows, ...]:
    """The content of a table's branches and tags, by name."""
    reader = ManifestReader(table, query)
    found, known = [], {}
    for name, ref in sorted(table.metadata.refs.items()):
        snapshot = table.metadata.snapshot(ref.snapshot_id)
        if snapshot is None:
            raise CorruptFileError(
                table.metadata_location, f"{ref.kind} {name} is of no snapshot of the table"
            )
        if ref.snapshot_id not in known:
            files = [0, 0]
            for entries, index in reader.live(reader.manifests_of(snapshot)):
                files[entries.content[index] != FileContent.DATA] += 1
            known[ref.snapshot_id] = (*files, count(table, snapshot))
        found.append(RefRows(name, ref.kind, ref.snapshot_id, *known[ref.snapshot_id]))
    return tuple(found)


def check_same(source: tuple[RefRows, ...], copy: tuple[RefRows, ...], path: str) -> None:
    """Raise CorruptFileError if the refs of a copy differ from those of the source."""
    for one, other in zip(source, copy, strict=False):
        if one != other:
            raise CorruptFileError(
                path,
                f"{other.kind} {other.name} has {other.rows} rows in {other.data_files} files with "
                f"{other.delete_files} delete files; in the source {one.kind} {one.name} has "
                f"{one.rows} in {one.data_files} with {one.delete_files}",
            )
    if len(source) != len(copy):
        raise CorruptFileError(path, f"{len(copy)} refs, where the source has {len(source)}")
