"""Write a table's metadata with another path prefix to a folder from which it can be copied.

Source: Java ``RewriteTablePathSparkAction``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from copy import copy
from typing import Final

from icesql.catalog.table import Table
from icesql.catalog.writes.change import check_empty
from icesql.context import QueryContext
from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.edits import ListedPath, NewPath, edit_manifest, edit_manifest_list
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.writing import metadata_bytes, metadata_folder
from icesql.maintain.relocation.documents import (
    DeleteFacts,
    Version,
    facts_of,
    listed_deletes,
    manifests_and_list,
    read_version,
    relocated_document,
    relocated_listing,
    write_relocated,
)
from icesql.maintain.relocation.target import OfPrefix
from icesql.storage.new_files import NewFile
from icesql.storage.open import most_of_manifest

STAGED_LIST: Final = "file-list"
STAGING: Final = "copy-table-staging-"


class PathRewrite(Frozen):
    """The prefixes, and the range of versions, given as names of metadata files.

    With ``start_version`` only files added after it are listed: earlier ones were copied before.
    """

    source_prefix: str
    target_prefix: str
    start_version: str | None
    end_version: str | None
    staging_location: str | None
    create_file_list: bool


class StagedPaths(Frozen):
    """The name of the rewritten version, the path of the list, and counts of rewritten files.

    The list has a line for each file: its path, a comma, and its target path.
    """

    latest_version: str
    file_list: str | None
    manifests: int
    delete_files: int


def rewrite_table_path(table: Table, request: PathRewrite, query: QueryContext) -> StagedPaths:
    """Write metadata, manifests and position deletes with the new prefix; nothing is replaced.

    Raises ProgrammingError for a version that the table does not know, UnsupportedTableError for a
    file outside of the source prefix and for files that cannot be moved, StorageError.
    """
    return _Staging(table, request, query).run()


class _Staging:
    def __init__(self, table: Table, request: PathRewrite, query: QueryContext) -> None:
        self._table, self._request, self._query = table, request, query
        self._source = table.storage
        self._moved = OfPrefix(request.source_prefix, request.target_prefix)
        metadata, reroot = table.metadata, self._source.reroot
        own = metadata_folder(metadata.location, metadata.properties)
        own = own if reroot is None else f"{reroot.folder}/metadata"
        self._folder = request.staging_location or f"{own}/{STAGING}{uuid.uuid4()}"
        # A moved table is read at its new place; staged files are written at their given path.
        self._storage = copy(table.storage)
        self._storage.reroot = None
        self._pairs: dict[str, str] = {}
        self._lengths: dict[str, int] = {}
        self._facts: dict[str, DeleteFacts] = {}
        # Several vectors in one Puffin file count as several delete files.
        self._deletes: set[tuple[str, str | None]] = set()
        self._old: frozenset[int] = frozenset()

    def run(self) -> StagedPaths:
        """Write all files; the list is written last."""
        check_empty(self._folder, self._storage, "a folder of staged metadata")
        start_path = self._path_of(self._request.start_version)
        end = self._version(self._path_of(self._request.end_version))
        start = None if start_path is None else self._version(start_path)
        if start is not None:
            self._old = frozenset(start.metadata.snapshots)
        for each in self._versions(end, start_path):
            document = relocated_document(
                each.document, self._moved.path(each.metadata.location), self._moved.path,
                self._moved.path, self._moved.path,
            )  # fmt: skip
            name = each.path
            if each.path == self._table.metadata_location:
                # A moved table's metadata file is not at the path that the table records.
                name = self._recorded(each)
            self._stage(name, metadata_bytes(document, gzipped=each.gzipped))
        for snapshot in end.metadata.snapshots.values():
            if snapshot.snapshot_id not in self._old:
                self._stage_snapshot(snapshot)
        known = () if start is None else start.metadata.statistics_files
        paths = {each.statistics_path for each in known}
        for file in end.metadata.statistics_files:
            if file.statistics_path not in paths:
                self._list(file.statistics_path)
        name = end.path.rpartition("/")[2]
        listed = self._write_list() if self._request.create_file_list else None
        return StagedPaths(name, listed, len(self._lengths), len(self._deletes))

    def _recorded(self, version: Version) -> str:
        reroot = self._source.reroot
        if reroot is None or not version.path.startswith(f"{reroot.folder}/"):
            return version.path
        return f"{reroot.recorded_location.rstrip('/')}{version.path[len(reroot.folder) :]}"

    # ------------------------------------------------------------------ versions

    def _path_of(self, version: str | None) -> str | None:
        """The path of a version, by its name or path; None for None."""
        if version is None:
            return None
        table = self._table
        log = (each.metadata_file for each in table.metadata.metadata_log)
        for path in (table.metadata_location, *log):
            if version in (path, path.rpartition("/")[2]):
                return path
        raise ProgrammingError(
            f"{version} is no version of {table.name}; its metadata log has those that are, such "
            f"as {table.metadata_location.rpartition('/')[2]}"
        )

    def _version(self, path: str | None) -> Version:
        path = path or self._table.metadata_location
        return read_version(self._source, path, self._table.name)

    def _versions(self, end: Version, start: str | None) -> Iterator[Version]:
        """The versions after the start up to the end, the last one first."""
        yield end
        for each in reversed(end.metadata.metadata_log):
            if each.metadata_file == start:
                return
            self._query.check()
            yield self._version(each.metadata_file)

    # ------------------------------------------------------------------ snapshots

    def _stage_snapshot(self, snapshot: Snapshot) -> None:
        self._query.check()
        path = snapshot.manifest_list
        manifests, data = manifests_and_list(self._source, snapshot)
        # Manifests from before the start, too: the list records their lengths.
        for each in manifests:
            self._stage_manifest(each)
        if path is not None:
            self._stage(
                path,
                edit_manifest_list(
                    data,
                    self._source.location(path),
                    lambda named: (self._moved.path(named), self._lengths[named]),
                ),
            )

    def _stage_manifest(self, manifest: ManifestFile) -> None:
        path = manifest.manifest_path
        if path in self._lengths:
            return
        self._query.check()
        data = self._source.read(path, most=most_of_manifest(manifest.manifest_length))
        location, change = self._source.location(path), self._moved.path

        if manifest.content is ManifestContent.DELETES:
            # An entry for a file may precede the one that marks it as live.
            for each in listed_deletes(data, location):
                if each.is_live and each.names_files:
                    self._stage_deletes(each)

        def moved(listed: ListedPath) -> NewPath:
            added = listed.snapshot_id
            added = manifest.added_snapshot_id if added is None else added
            if listed.is_live and not listed.names_files and added not in self._old:
                self._list(listed.path)
            return relocated_listing(
                listed, change(listed.path), change, self._facts.get(listed.path)
            )

        edited = edit_manifest(data, location, manifest.content, moved)
        self._stage(path, edited)
        self._lengths[path] = len(edited)

    def _stage_deletes(self, listed: ListedPath) -> None:
        path = listed.path
        self._deletes.add((path, listed.referenced))
        if path in self._facts:
            return
        self._query.check()
        staged = self._staged(path)
        with NewFile(self._storage, staged) as new:
            write_relocated(self._source, path, listed.file_format, self._moved.path, new)
        self._facts[path] = facts_of(self._storage, staged, listed.file_format)
        self._pairs[staged] = self._moved.path(path)

    # ------------------------------------------------------------------ files

    def _staged(self, path: str) -> str:
        return f"{self._folder}/{self._moved.below(path)}"

    def _stage(self, path: str, data: bytes) -> None:
        staged = self._staged(path)
        with NewFile(self._storage, staged) as new:
            new.write(data)
        self._pairs[staged] = self._moved.path(path)

    def _list(self, path: str) -> None:
        new = self._moved.path(path)
        place = path if self._source.reroot is None else self._source.location(path)
        self._pairs[place] = new

    def _write_list(self) -> str:
        path = f"{self._folder}/{STAGED_LIST}"
        with NewFile(self._storage, path) as new:
            for pair in self._pairs.items():
                if any("," in each or not each.isprintable() for each in pair):
                    raise UnsupportedTableError(f"a list with the path {pair[0]!r}")
                new.write(f"{','.join(pair)}\n".encode())
        return path
