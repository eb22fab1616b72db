"""The snapshots in the history of a table's branches, and the files they list, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

from msgspec import field

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, StorageError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.many_files import list_files
from icesql.storage.open import is_local

# For each branch, newest first; entries are counted over all manifests.
_MOST_SNAPSHOTS: Final = 200
_MOST_ENTRIES: Final = 1_000_000
# Files in a store that a listing does not show are looked up one by one.
_MOST_REQUESTS: Final = 200


class Listed(Frozen):
    """The live files of a manifest; for data files only their paths, row counts and row ids."""

    paths: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    indexes: tuple[int, ...] = ()
    first_row_ids: Mapping[int, int] = field(default_factory=dict)
    deletes: tuple[DataFile, ...] = ()


class History:
    """``chains`` has the known snapshots of each branch, the newest first.

    ``missing`` has files that are referenced but do not exist: manifest lists and manifests at
    once, other files after ``look_for_files``.
    """

    def __init__(self, table: Table, query: QueryContext) -> None:
        self.table, self.query = table, query
        self._reader = ManifestReader(table, query)
        self._lists: dict[int, tuple[ManifestFile, ...] | None] = {}
        self._listed: dict[ManifestFile, Listed] = {}
        self._indexes: dict[int, DeleteIndex | None] = {}
        self._sets: dict[int, frozenset[ManifestFile]] = {}
        self._where: dict[str, Counter[ManifestFile]] | None = None
        self.missing: set[str] = set()
        self._known: set[ManifestFile] = set()
        self._entries = 0
        self.chains: dict[str, list[Snapshot]] = {
            name: [*self._chain(ref.snapshot_id)]
            for name, ref in table.metadata.refs.items()
            if ref.kind == "branch"
        }
        self._load(each for one in self._lists.values() for each in one or ())

    # ------------------------------------------------------------------ listed files

    def manifests_of(self, snapshot: Snapshot) -> tuple[ManifestFile, ...] | None:
        """The manifests of a snapshot in a chain; None if its manifest list is missing."""
        return self._lists[snapshot.snapshot_id]

    def is_readable(self, snapshot: Snapshot) -> bool:
        """True if the manifest list and all manifests of a snapshot exist."""
        found = self.manifests_of(snapshot)
        return found is not None and all(each in self._listed for each in found)

    def listed(self, manifest: ManifestFile) -> Listed:
        """The live files of a manifest; none if it is missing."""
        return self._listed.get(manifest, Listed())

    def data_files(self, manifest: ManifestFile, wanted: Iterable[str]) -> Iterator[DataFile]:
        """The live data files at these paths, with all fields of their manifest entries."""
        listed, paths = self.listed(manifest), {*wanted}
        chosen = [i for i, path in zip(listed.indexes, listed.paths, strict=True) if path in paths]
        if chosen:
            ((_, entries),) = self._reader.entries_of([manifest])
            yield from map(entries.data_file, chosen)

    def times_listed(self, path: str, snapshot: Snapshot) -> int:
        """The number of times that a snapshot lists a live data file."""
        if self._where is None:
            self._where = {}
            for manifest, listed in self._listed.items():
                for each in listed.paths:
                    self._where.setdefault(each, Counter())[manifest] += 1
        here = self.set_of(snapshot)
        return sum(count for each, count in self._where.get(path, {}).items() if each in here)

    def manifests_with(self, path: str, snapshot: Snapshot) -> list[ManifestFile]:
        """The manifests of a snapshot that list a live data file."""
        if not self.times_listed(path, snapshot):
            return []
        here = self.set_of(snapshot)
        return [each for each in (self._where or {})[path] if each in here]

    def set_of(self, snapshot: Snapshot) -> frozenset[ManifestFile]:
        """As ``manifests_of``, as a set; empty if the manifest list is missing."""
        number = snapshot.snapshot_id
        if number not in self._sets:
            self._sets[number] = frozenset(self.manifests_of(snapshot) or ())
        return self._sets[number]

    def deletes_of(self, snapshot: Snapshot) -> Iterator[DataFile]:
        """The live delete files of a snapshot."""
        for each in self.manifests_of(snapshot) or ():
            yield from self.listed(each).deletes

    def index_of(self, snapshot: Snapshot) -> DeleteIndex | None:
        """The delete index of a snapshot; None for damaged deletes."""
        number = snapshot.snapshot_id
        if number not in self._indexes:
            if len(self._indexes) > 1:  # a snapshot and its parent are compared
                self._indexes.pop(next(iter(self._indexes)))
            try:
                self._indexes[number] = DeleteIndex.of(self.table, self.deletes_of(snapshot))
            except CorruptFileError:
                self._indexes[number] = None
        return self._indexes[number]

    # ------------------------------------------------------------------ missing files

    def look_for_files(self) -> None:
        """Find the live files of the snapshots that do not exist."""
        named = dict.fromkeys(self._paths())
        local = [each for each in named if self._is_here(each)]
        self.missing.update(each for each in local if not self.table.storage.exists(each))
        remote = [each for each in named if not self._is_here(each)]
        if not remote:
            return
        storage, folder = self.table.storage, self.table.metadata.location
        there = {
            storage.same_file_key(each.path) for each in list_files(storage, folder, self.query)
        }
        left = [each for each in remote if storage.same_file_key(each) not in there]
        for each in left[:_MOST_REQUESTS]:
            self.query.check()
            if not storage.exists(each):
                self.missing.add(each)

    def names_missing(self, snapshot: Snapshot) -> list[str]:
        """The missing files that a snapshot needs."""
        if not self.missing:
            return []
        manifests = self.manifests_of(snapshot)
        if manifests is None:
            return [str(snapshot.manifest_list)]
        found = [each.manifest_path for each in manifests if each.manifest_path in self.missing]
        for each in manifests:
            listed = self.listed(each)
            found += [path for path in listed.paths if path in self.missing]
            found += [file.path for file in listed.deletes if file.path in self.missing]
        return [*dict.fromkeys(found)]

    def _paths(self) -> Iterator[str]:
        confine = self.table.storage.confine
        for listed in self._listed.values():
            for each in (*listed.paths, *(file.path for file in listed.deletes)):
                # Files outside of the allowed roots are not looked up.
                if confine is None or confine.hold(each):
                    yield each

    def _is_here(self, path: str) -> bool:
        return self.table.storage.reroot is not None or is_local(path)

    # ------------------------------------------------------------------ reading

    def _chain(self, snapshot_id: int) -> Iterator[Snapshot]:
        metadata = self.table.metadata
        known = metadata.ancestry(metadata.snapshot(snapshot_id))
        yield from takewhile(self._read_list, islice(known, _MOST_SNAPSHOTS))

    def _read_list(self, snapshot: Snapshot) -> bool:
        """Read the manifest list; False if it exceeds the limit of entries."""
        number = snapshot.snapshot_id
        if number in self._lists:
            return True
        found: tuple[ManifestFile, ...] | None = None
        try:
            found = self._reader.manifests_of(snapshot)
        except StorageError:
            path = str(snapshot.manifest_list)
            if self.table.storage.exists(path):
                raise
            self.missing.add(path)
        fresh = {*(found or ())} - self._known
        self._entries += sum(each.entries_count or 0 for each in fresh)
        if self._entries > _MOST_ENTRIES:
            return False
        self._known |= fresh
        self._lists[number] = found
        return True

    def _load(self, manifests: Iterable[ManifestFile]) -> None:
        left: Sequence[ManifestFile] = [*dict.fromkeys(manifests)]
        while left:
            done = 0
            try:
                for manifest, entries in self._reader.entries_of(left):
                    self._listed[manifest] = _listed(manifest, entries)
                    done += 1
            except StorageError:
                path = left[done].manifest_path
                if self.table.storage.exists(path):
                    raise
                self.missing.add(path)
                done += 1
            left = left[done:]


def _listed(manifest: ManifestFile, entries: ManifestEntries) -> Listed:
    live = entries.live_indexes
    if manifest.content is ManifestContent.DELETES:
        files = map(entries.data_file, live)
        return Listed(deletes=tuple(each for each in files if each.content is not FileContent.DATA))
    return Listed(
        tuple(entries.path[index] for index in live),
        tuple(entries.record_count[index] for index in live),
        tuple(live),
        entries.rare.get("first_row_id", {}),
    )
