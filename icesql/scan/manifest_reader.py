"""Read and decode manifests in order: one by one from disk, several ahead from an object store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from icesql.catalog.table import Table
from icesql.context import Progress, QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.entries import FilterColumns, ManifestEntries
from icesql.iceberg.manifest.manifest import (
    ManifestContent,
    ManifestFile,
    check_content,
    decode_manifest,
    doubtful_contents,
    read_manifest_file,
    snapshot_manifests,
)
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.spec_scan import SpecScans
from icesql.storage.cache import kept
from icesql.storage.open import MANIFEST_LIST_BYTES, most_of_manifest

T = TypeVar("T")

# Requests in flight to an object store, where waiting is all the work: at first, and later.
_AHEAD, _MOST_AHEAD = 16, 48
# Decoded entries keep the inflated bytes, and a few Python objects for each file.
_INFLATED, _BYTES_PER_ENTRY = 4, 600

# Bytes of a manifest that is decoded beside the thread of the query.
_LONG: Final = 4 << 20

# Beside its bytes a narrow entry keeps a few numbers, and each value that the filter needs.
_NARROW, _NARROW_VALUE = 280, 60
_MOST_WANTED: Final = 32

if TYPE_CHECKING:
    from icesql.iceberg.manifest.data_file import DataFile, FileContent
    from icesql.iceberg.manifest.filtered_manifest import NarrowEntries
    from icesql.scan.columns_on_disk import ColumnsOnDisk
    from icesql.storage.stores.pool import Request

# The values of each entry that a filter needs: (map, field id); None for all.
WantedOf = Callable[[], "frozenset[tuple[str, int]] | None"]
FormOf = Callable[[ManifestFile], PartitionForm]


class ManifestReader:
    """The manifests of one table for one statement; the storage's cache keeps decoded ones."""

    def __init__(self, table: Table, query: QueryContext, form_of: FormOf | None = None) -> None:
        self._table, self._storage, self._query = table, table.storage, query
        metadata = table.metadata
        self._form_of = form_of or SpecScans(ALWAYS_TRUE, metadata.schema, metadata).form_of
        self._list: str | None = None
        self._disk: tuple[ColumnsOnDisk, frozenset[tuple[str, int]]] | None = None

    def manifests_of(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot in the order of its list.

        Raises UnsupportedTableError when the list is encrypted.
        """
        storage = self._storage
        if snapshot.key_id is not None:
            raise UnsupportedTableError(
                "encryption (the manifest list is encrypted)", table=self._table.name
            )
        path = self._list = snapshot.manifest_list

        def read() -> tuple[tuple[ManifestFile, ...], int]:
            try:
                found = snapshot_manifests(snapshot, self._read_list, storage.location)
                self._check_contents(snapshot, found)
            except CorruptFileError as error:
                if path is not None:
                    error.was_kept = storage.forget(path)
                raise
            return found, 500 * len(found)

        key = None if path is None else storage.cache_key("manifest list", path)
        return kept(storage.cache, key, read)

    def all_manifests_of(self, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
        """The manifests of several snapshots by their paths, each once."""
        return {
            each.manifest_path: each
            for snapshot in snapshots
            for each in self.manifests_of(snapshot)
        }

    def keep(self, snapshot: Snapshot, listed: Sequence[ManifestFile], head: str | None) -> None:
        """Keep the manifests of a list that was just written, and let go of those of ``head``.

        ``listed`` are the manifests as read from the list; ``head`` is the list that it follows.
        """
        storage, path = self._storage, snapshot.manifest_list
        if storage.cache is None or path is None:
            return
        if not doubtful_contents(snapshot.summary, listed):
            key = storage.cache_key("manifest list", path)
            storage.cache.put(key, tuple(listed), 500 * len(listed))
        if head is not None:
            # A session that commits often would fill its cache with lists that are not read again.
            storage.cache.remove(storage.cache_key("manifest list", head))

    def live(
        self, manifests: Iterable[ManifestFile], content: ManifestContent | None = None
    ) -> Iterator[tuple[ManifestEntries, int]]:
        """Each live file as entries and its place in them.

        With ``content``, only manifests of it that list live files by their counts are read; else
        all.
        """
        listed = [
            each
            for each in manifests
            if content is None or (each.content is content and each.has_live_files)
        ]
        for _, entries in self.entries_of(listed):
            for index, alive in enumerate(entries.live):
                if alive:
                    yield entries, index

    def deletes(
        self, manifests: Iterable[ManifestFile], content: FileContent | None = None
    ) -> Iterator[DataFile]:
        """Each live delete file, of one content or of both."""
        for entries, index in self.live(manifests, ManifestContent.DELETES):
            if content is None or entries.content[index] == content:
                yield entries.data_file(index)

    def entries_of(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestFile, ManifestEntries]]:
        """Each manifest with its entries, in the order given, read on iteration.

        Raises UnsupportedTableError for an encrypted manifest, CorruptFileError for a spec that the
        table does not have, QueryCancelledError between two manifests.
        """
        found = self.filtered_entries_of(manifests, None)
        return cast("Iterator[tuple[ManifestFile, ManifestEntries]]", found)

    def filtered_entries_of(
        self, manifests: Sequence[ManifestFile], wanted_of: WantedOf | None
    ) -> Iterator[tuple[ManifestFile, FilterColumns]]:
        """Like ``entries_of``; of data manifests only the values a filter needs, where that pays.

        ``wanted_of`` is called before each manifest; None reads whole entries.
        """
        for done, (manifest, read) in enumerate(self._ahead(manifests)):
            self._query.check()
            wanted = None if wanted_of is None else wanted_of()
            yield manifest, self._entries(manifest, read, wanted)
            self._query.report(Progress("planning", done + 1, len(manifests)))
        if self._disk is not None:
            self._disk[0].write()

    def _check_contents(self, snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> None:
        for each in doubtful_contents(snapshot.summary, manifests):
            self._query.check()
            self._refuse_encrypted(each)
            path = self._storage.location(each.manifest_path)
            check_content(read_manifest_file(self._read(each), path), each)

    # ------------------------------------------------------------------ reading

    def _ahead(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestFile, Callable[[], bytes]]]:
        storage = self._storage
        if len(manifests) < 2 or storage.local_path(manifests[0].manifest_path) is not None:
            for manifest in manifests:
                yield manifest, partial(self._read, manifest)
            return
        yield from self._ahead_of_store(manifests)

    def _ahead_of_store(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestFile, Callable[[], bytes]]]:
        from icesql.storage.stores.pool import request_pool

        pool = request_pool()
        pending: deque[tuple[ManifestFile, Request[bytes] | None]] = deque()
        left = iter(manifests)

        def submit(manifest: ManifestFile) -> Request[bytes]:
            path, most = manifest.manifest_path, most_of_manifest(manifest.manifest_length)
            size = max(manifest.manifest_length or 0, 0)
            read = self._storage.read
            return pool.submit(lambda _: read(path, most=most), size, self._query)

        def submit_next(count: int) -> None:
            for manifest in islice(left, count):
                key, cache = self._manifest_key(manifest), self._storage.cache
                known = cache is not None and cache.get(key) is not None
                known = known or self._storage.is_kept(manifest.manifest_path)
                pending.append((manifest, None if known else submit(manifest)))

        try:
            submit_next(_AHEAD)
            for done in range(len(manifests)):
                manifest, request = pending.popleft()
                # A long walk reads further ahead; a walk that a limit ends has made few requests.
                submit_next(1 if done < _AHEAD else min(2, _MOST_AHEAD - len(pending)))
                if request is None:
                    yield manifest, partial(self._read, manifest)
                else:
                    yield manifest, partial(request.result, self._query)
        finally:
            # A walk that stops early, or is cancelled, does not wait for pending requests.
            for _, request in pending:
                if request is not None:
                    pool.leave(request)

    def _read_list(self, path: str) -> bytes:
        return self._read_path(path, MANIFEST_LIST_BYTES)

    def _read(self, manifest: ManifestFile) -> bytes:
        most = most_of_manifest(manifest.manifest_length)
        return self._read_path(manifest.manifest_path, most)

    def _read_path(self, path: str, most: int) -> bytes:
        read = partial(self._storage.read, path, most=most)
        if self._storage.local_path(path) is not None:
            return read()
        # A read from the disk cache takes less time than starting a thread to wait for it.
        found = self._storage.kept(path, most=most)
        return self._query.wait_for(read) if found is None else found

    def _entries(
        self,
        manifest: ManifestFile,
        read: Callable[[], bytes],
        wanted: frozenset[tuple[str, int]] | None,
    ) -> FilterColumns:
        """The entries, or with ``wanted`` these values of them where that pays."""
        self._refuse_encrypted(manifest)
        form = self._form_of(manifest)
        cache, key = self._storage.cache, self._manifest_key(manifest)
        # The same manifest read by another schema may have partition values of other types.
        key = None if key is None else (*key, form.types)
        whole: ManifestEntries | None = None if cache is None else cache.get(key)
        if whole is not None:
            return whole
        narrow = self._kept_narrow(key)
        data: bytes | AvroFile
        if narrow is None:
            stored = None if wanted is None else self._stored(manifest, read, wanted, form)
            if stored is not None:
                self._keep_narrow(key, stored)
                return stored
            data = read()
        elif wanted is None:
            if cache is not None:
                cache.put(("narrow", key), None, 0)
            return self._kept(key, narrow.whole, len(narrow.file.data))
        elif wanted <= narrow.wanted:
            return narrow
        else:
            data = narrow.file
            if len(wanted | narrow.wanted) <= _MOST_WANTED:
                wanted |= narrow.wanted

        def decode() -> FilterColumns:
            path = self._storage.location(manifest.manifest_path)
            if wanted is None and isinstance(data, bytes):
                return decode_manifest(data, manifest, path=path, form=form)
            from icesql.iceberg.manifest.filtered_manifest import decode_for_filter

            return decode_for_filter(data, manifest, wanted or frozenset(), path=path, form=form)

        found = self._decode(manifest, data, decode)
        if isinstance(found, ManifestEntries):
            size = _INFLATED * len(data) if isinstance(data, bytes) else len(data.data)
            return self._kept(key, found, size)
        self._keep_narrow(key, found)
        self._store(manifest, found)
        return found

    def _kept(
        self, key: tuple[Any, ...] | None, found: ManifestEntries, size: int
    ) -> ManifestEntries:
        if self._storage.cache is not None:
            self._storage.cache.put(key, found, size + _BYTES_PER_ENTRY * found.count)
        return found

    def _stored(
        self,
        manifest: ManifestFile,
        read: Callable[[], bytes],
        wanted: frozenset[tuple[str, int]],
        form: PartitionForm,
    ) -> NarrowEntries | None:
        """The columns on disk of a manifest that another process has read."""
        if self._list is None:
            return None
        if self._disk is None:
            from icesql.scan.columns_on_disk import ColumnsOnDisk

            self._disk = ColumnsOnDisk(self._storage, self._list, wanted), wanted
        if self._disk[1] != wanted:
            return None
        path = manifest.manifest_path
        stored = self._disk[0].find(path, manifest.manifest_length)
        if stored is None:
            return None
        from icesql.iceberg.manifest.filtered_manifest import from_stored

        location = self._storage.location(path)
        return from_stored(stored, read, manifest, path=location, form=form)

    def _store(self, manifest: ManifestFile, found: NarrowEntries) -> None:
        if self._disk is not None and self._disk[1] == found.wanted:
            self._disk[0].add(manifest.manifest_path, manifest.manifest_length, found)

    def _keep_narrow(self, key: tuple[Any, ...] | None, found: NarrowEntries) -> None:
        cache = self._storage.cache
        if cache is not None:
            each = _NARROW + _NARROW_VALUE * len(found.wanted)
            cache.put(("narrow", key), found, found.kept_bytes + each * found.count)

    def _kept_narrow(self, key: tuple[Any, ...] | None) -> NarrowEntries | None:
        cache = self._storage.cache
        return None if cache is None or key is None else cache.get(("narrow", key))

    def _decode(self, manifest: ManifestFile, data: bytes | AvroFile, decode: Callable[[], T]) -> T:
        # A long manifest takes seconds, in which the caller may cancel.
        long = len(data if isinstance(data, bytes) else data.data) > _LONG
        try:
            found = self._query.wait_for(decode) if long else decode()
        except CorruptFileError as error:
            error.was_kept = self._storage.forget(manifest.manifest_path)
            raise
        if self._storage.cache is not None:
            self._storage.cache.put(self._manifest_key(manifest), True, 1)
        return found

    def _refuse_encrypted(self, manifest: ManifestFile) -> None:
        if manifest.key_metadata:
            raise UnsupportedTableError(
                "encryption (a manifest is encrypted)",
                table=self._table.name,
                path=manifest.manifest_path,
            )

    def _manifest_key(self, manifest: ManifestFile) -> tuple[Any, ...] | None:
        # Entries inherit values from ``manifest``, so it is part of the key.
        return self._storage.cache_key("manifest", manifest.manifest_path, manifest)
