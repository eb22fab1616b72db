"""Copy a table to another place, for every reader; repeated copies add only what is new.

Files of a table never change, so a file with the same name and length is the same. The metadata
file is written last: until then a reader sees the previous copy, or nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.current_metadata import (
    hadoop_version,
    is_later,
    is_metadata_name,
    read_metadata,
)
from icesql.catalog.table import Table
from icesql.context import Progress, QueryContext
from icesql.engine.side_threads import thread_pool
from icesql.errors import (
    CatalogError,
    CorruptFileError,
    SnapshotNotFoundError,
    StorageError,
)
from icesql.frozen import Frozen
from icesql.iceberg.manifest.edits import ListedPath, NewPath, edit_manifest, edit_manifest_list
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import (
    metadata_document,
)
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.maintain.relocation.documents import (
    DeleteFacts,
    facts_of,
    listed_deletes,
    manifests_and_list,
    read_version,
    relocated_document,
    relocated_listing,
    write_relocated,
)
from icesql.maintain.relocation.target import (
    CopyFolder,
    OfCopy,
    check_apart,
    is_there,
    target_location,
)
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.new_files import NewFile
from icesql.storage.open import (
    METADATA_BYTES,
    Storage,
    is_local,
    most_of_manifest,
)
from icesql.storage.roots import Roots

_CHUNK: Final = 8 << 20
_SIZES: Final = ("total-files-size", "added-files-size", "removed-files-size")
_AT_ONCE_HERE, _AT_ONCE_IN_STORES = 4, 16
# The first bytes of each format: a wrong path may lead to any file of the machine.
_BEGINNINGS: Final = {
    "PARQUET": (b"PAR1",),
    "AVRO": (b"Obj\x01",),
    "ORC": (b"ORC",),
    "PUFFIN": (b"PFA1",),
    "STATISTICS": (b"PFA1", b"PAR1", b"Obj\x01", b"ORC"),
}
# The most bytes of manifests that wait until their files are copied.
_MOST_PENDING: Final = 64 << 20
_HINT: Final = "version-hint.text"


class CopyRequest(Frozen):
    """The location of a copy, and the properties that open its store.

    ``since``: the copy has this snapshot, or ("latest") all its snapshots up to the newest, whose
    files are not checked again. ``confine`` has the roots that the copy must be below.
    """

    location: str
    since: int | Literal["latest"] | None = None
    properties: dict[str, str] | None = None
    confine: Roots | None = None


class Copied(Frozen):
    """The metadata file of the copy, and how many files and bytes were added to it.

    ``rewritten`` files have other paths in them than in the source; ``present`` ones existed
    before.
    """

    metadata_location: str
    snapshot_id: int | None
    copied: int
    copied_bytes: int
    rewritten: int
    present: int
    storage: Storage


def copy_table(table: Table, request: CopyRequest, query: QueryContext) -> Copied:
    """Copy every file that a snapshot of the table names, and change all paths to the copy's.

    Raises CatalogError if the location is not that of a copy of this table, StorageError naming
    a file that disappeared meanwhile (what was copied stays, and the next call continues),
    UnsupportedTableError for tables that cannot be moved, SnapshotNotFoundError for ``since``.
    """
    return _Copy(table, request, query).run()


class _Copy:
    def __init__(self, table: Table, request: CopyRequest, query: QueryContext) -> None:
        self._table, self._query = table, query
        # A copy has no cache: files that are read once would evict those that are read often.
        self._source = copy(table.storage)
        self._version = read_version(self._source, table.metadata_location, table.name)
        self._metadata = self._version.metadata
        location = target_location(request.location)
        reroot = self._source.reroot
        check_apart(self._metadata.location, location)
        if reroot is not None:
            check_apart(reroot.folder, location)
        self._moved = OfCopy(self._metadata.location, location)
        storage = Storage(request.properties, confine=request.confine)
        self._folder = CopyFolder(storage, location, query)
        self._since = request.since
        # The files that the copy needs, with their lengths if known.
        self._needed: dict[str, int | None] = {}
        self._manifests: dict[str, int] = {}
        self._pending: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._facts: dict[str, DeleteFacts] = {}
        # Data files by their new paths, and manifests that are not read again.
        self._data: dict[str, str] = {}
        self._passed: list[ManifestFile] = []
        self._by_key: dict[str, str] | None = None
        self._lock = threading.Lock()
        # By path of a delete manifest, for each file: is it live, its snapshot, its growth in
        # bytes.
        self._longer: dict[str, list[tuple[bool, int | None, int]]] = {}
        self._held: Mapping[int, Snapshot] = {}
        self._sizes: dict[int, Mapping[str, str]] = {}
        self._counts: Counter[str] = Counter()

    # ------------------------------------------------------------------ the whole

    def run(self) -> Copied:
        """Make the copy, and return what was copied."""
        metadata, folder = self._metadata, self._folder
        name = self._table.metadata_location.rpartition("/")[2]
        name = name if is_metadata_name(name) else "v1.metadata.json"
        final = self._moved.metadata_path(f"{metadata.location}/metadata/{name}")
        folder.claim(
            {"table-uuid": metadata.table_uuid, "location": metadata.location, "format": 1}
        )
        self._check_unchanged(final)
        known = self._known_snapshots()
        remote = not (is_local(folder.location) and is_local(self._table.metadata_location))
        at_once = _AT_ONCE_IN_STORES if remote else _AT_ONCE_HERE
        with thread_pool(at_once, "icesql-copy") as threads:
            self._pool = pool = _Pool(threads, 4 * at_once, self._query)
            with self._going_on():
                wanted = [id_ for id_ in metadata.snapshots if id_ not in known]
                # Deletes name data files, in any spelling: copy all data files before them.
                for content in ManifestContent:
                    for snapshot_id in wanted:
                        for manifest in self._manifests_of(metadata.snapshots[snapshot_id])[0]:
                            if manifest.content is content:
                                self._copy_manifest(manifest)
                self._write_pending()
                for snapshot_id in wanted:
                    self._copy_list(metadata.snapshots[snapshot_id])
                for each in metadata.statistics_files:
                    path, size = each.statistics_path, each.file_size_in_bytes
                    size = self._source.size(path) if size is None else size
                    self._copy_file(path, self._moved.path(path), size, "STATISTICS")
                pool.wait()
        self._check_needed()
        self._sizes = {id_: self._sizes_of(each) for id_, each in metadata.snapshots.items()}
        document = self._relocated(self._version.document)
        self._write_metadata(final, document, self._version.gzipped)
        self._write_hint(final)
        self._copy_log(final)
        counts = self._counts
        return Copied(
            final, metadata.current_snapshot_id, counts["copied"], counts["bytes"],
            counts["rewritten"], counts["present"], folder.storage,
        )  # fmt: skip

    def _check_unchanged(self, final: str) -> None:
        """Raise CatalogError if others committed to the copy: it would mix two tables."""
        folder = self._folder
        found = folder.current()
        if found is None:
            return
        log = (each.metadata_file for each in self._metadata.metadata_log)
        own = {final, *map(self._moved.metadata_path, log)}
        known = found in own or _name_of(found) == folder.metadata_name
        if not known or is_later(_name_of(found), _name_of(final)):
            raise CatalogError(
                f"cannot copy to {folder.location}: somebody committed {found} to the copy, or "
                f"{self._table.name} was set back; copy to an empty folder"
            )

    def _known_snapshots(self) -> set[int]:
        """The snapshots that need no check because of ``since``."""
        if self._since is None:
            return set()
        folder = self._folder
        found = folder.current()
        held = {} if found is None else read_metadata(found, folder.storage).snapshots
        self._held = held
        if self._since == "latest":
            if found is None:
                raise SnapshotNotFoundError(
                    "latest", table=folder.location, hint="there is no copy yet; leave SINCE out"
                )
            return {*held}
        if self._since not in held:
            raise SnapshotNotFoundError(
                f"snapshot {self._since}", table=folder.location,
                hint="the copy does not have it; leave SINCE out",
            )  # fmt: skip
        known = self._metadata.ancestry(self._metadata.snapshot(self._since))
        return {each.snapshot_id for each in known if each.snapshot_id in held}

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Explain a missing source file by what it means for the copy."""
        try:
            yield
        except StorageError as error:
            # ``exists`` may answer for the file from a cache of found paths.
            here = self._source.exists(self._table.metadata_location)
            if here and not is_there(self._source, error.path):
                raise StorageError(
                    error.path,
                    f"{error.problem}. {self._table.name} was copied as of "
                    f"{self._table.metadata_location}, whose snapshots may have been expired "
                    "meanwhile; what was copied stays, and the next copy goes on with it",
                ) from error
            raise

    def _check_needed(self) -> None:
        """Raise StorageError if a file of the copy disappeared while others were copied."""
        there = self._folder.list()
        for path, length in self._needed.items():
            if path in there and length in (None, there[path]):
                continue
            # A listing can miss a file while another copy replaces it by an equal one.
            if not is_there(self._folder.storage, path, length):
                raise StorageError(
                    path, "it is no longer what was copied; does another copy go to this place?"
                )

    # ------------------------------------------------------------------ snapshots

    def _manifests_of(self, snapshot: Snapshot) -> tuple[tuple[ManifestFile, ...], bytes]:
        """The manifests of a snapshot, and the bytes of their list."""
        self._query.check()
        return manifests_and_list(self._source, snapshot)

    def _copy_list(self, snapshot: Snapshot) -> None:
        path = snapshot.manifest_list
        if path is None or self._is_there(self._moved.path(path)):
            return
        data = self._manifests_of(snapshot)[1]

        def change(manifest: str) -> tuple[str, int]:
            moved = self._moved.path(manifest)
            return moved, self._manifests[moved]

        edited = edit_manifest_list(data, self._source.location(path), change)
        self._write(self._moved.path(path), edited)

    def _sizes_of(self, snapshot: Snapshot) -> dict[str, str]:
        """The sums of file sizes in a snapshot's summary, with the sizes of the copy."""
        held = self._held.get(snapshot.snapshot_id)
        if held is not None:
            return {name: held.summary[name] for name in _SIZES if name in held.summary}
        longer = dict.fromkeys(_SIZES, 0)
        for manifest in self._manifests_of(snapshot)[0]:
            for is_live, by, difference in self._longer_files(manifest):
                longer["total-files-size"] += difference if is_live else 0
                if by == snapshot.snapshot_id:
                    longer["added-files-size" if is_live else "removed-files-size"] += difference
        return {
            name: str(int(snapshot.summary[name]) + difference)
            for name, difference in longer.items()
            if difference and snapshot.summary.get(name, "").isdecimal()
        }

    def _longer_files(self, manifest: ManifestFile) -> list[tuple[bool, int | None, int]]:
        """The delete files of a manifest whose length differs in the copy, with the difference."""
        path = manifest.manifest_path
        if manifest.content is ManifestContent.DATA:
            return []
        if path not in self._longer:
            old = _listed_paths(self._source, path)
            new = _listed_paths(self._folder.storage, self._moved.path(path))
            self._longer[path] = [
                (
                    now.is_live,
                    now.snapshot_id or manifest.added_snapshot_id,
                    now.length - was.length,
                )
                for was, now in zip(old, new, strict=True)
                # Summaries count the blob of a vector, whose length is the same.
                if now.length != was.length and now.file_format != "PUFFIN"
            ]
        return self._longer[path]

    def _copy_manifest(self, manifest: ManifestFile) -> None:
        path = manifest.manifest_path
        new = self._moved.path(path)
        if new in self._manifests:
            return
        self._query.check()
        length = self._folder.lengths.get(new)
        if length is not None and self._since is not None:
            self._count("present")
            self._manifests[new] = length
            self._passed.append(manifest)
            return
        data = self._source.read(path, most=most_of_manifest(manifest.manifest_length))
        location = self._source.location(path)
        if manifest.content is ManifestContent.DELETES:
            self._rewrite_deletes(data, location)
        edited = edit_manifest(data, location, manifest.content, self._copy_listed)
        if length is not None:
            self._count("present")
            self._needed[new] = length
        else:
            length = len(edited)
            self._pending[new] = edited
            self._pending_bytes += length
        self._manifests[new] = length
        if self._pending_bytes > _MOST_PENDING:
            self._write_pending()

    def _write_pending(self) -> None:
        """Write the waiting manifests, once all their files are copied.

        Thus a manifest in the copy needs no check, even after a copy was killed.
        """
        self._pool.wait()
        for new, data in self._pending.items():
            self._manifests[new] = self._write(new, data)
        self._pending.clear()
        self._pending_bytes = 0

    def _copy_listed(self, listed: ListedPath) -> NewPath:
        """The new path of a file in a manifest; also copies the file if it is live."""
        new = self._moved.path(listed.path)
        if listed.is_live and not listed.names_files:
            self._data[new] = listed.path
            self._copy_file(listed.path, new, listed.length, listed.file_format)
        return relocated_listing(listed, new, self._named, self._facts.get(new))

    def _named(self, path: str) -> str:
        """The new path of a data file that a delete names, possibly in another spelling.

        Two spellings are the same file if a reader of the table treats them so.
        """
        new = self._moved.path(path)
        if new in self._data or new in self._folder.lengths:
            return new
        key_of = self._source.same_file_key
        with self._lock:
            if self._by_key is None:
                self._by_key = {key_of(each): new for new, each in self._data.items()}
                self._by_key |= {key_of(each): self._moved.path(each) for each in self._unread()}
            return self._by_key.get(key_of(path), new)

    def _unread(self) -> Iterator[str]:
        """The data files of manifests that were not read."""
        table = replace(self._table, metadata=self._metadata, storage=self._source)
        reader = ManifestReader(table, self._query)
        passed = (each for each in self._passed if each.content is ManifestContent.DATA)
        for entries, index in reader.live(passed):
            yield entries.path[index]

    # ------------------------------------------------------------------ files

    def _rewrite_deletes(self, data: bytes, location: str) -> None:
        """Rewrite the delete files of a manifest that name data files, several at once."""
        found: dict[str, ListedPath] = {}
        for each in listed_deletes(data, location):
            if each.names_files and each.is_live:
                found.setdefault(self._moved.path(each.path), each)
        requests = [
            (new, self._pool.submit(self._rewrite_delete, listed, new))
            for new, listed in found.items()
            if new not in self._facts
        ]
        for new, future in requests:
            self._facts[new] = future.result()
            self._needed[new] = self._facts[new].length

    def _rewrite_delete(self, listed: ListedPath, new: str) -> DeleteFacts:
        folder = self._folder
        if new in folder.lengths:
            try:
                facts = facts_of(folder.storage, new, listed.file_format)
            except CorruptFileError:
                folder.remove(new)  # incomplete, in a store that shows interrupted writes
            else:
                self._count("present")
                return facts

        def fill(file: NewFile) -> None:
            write_relocated(self._source, listed.path, listed.file_format, self._named, file)

        self._count("rewritten", folder.fill(new, fill))
        return facts_of(folder.storage, new, listed.file_format)

    def _copy_file(self, path: str, new: str, length: int, file_format: str) -> None:
        if new in self._needed:
            return
        there = self._folder.lengths.get(new)
        if there is not None:
            if there == length or there == self._source.size(path):
                self._count("present")
                self._needed[new] = there
                return
            self._folder.remove(new)  # incomplete, in a store that shows interrupted writes
        self._needed[new] = None
        self._pool.submit(self._copy_bytes, path, new, length, file_format)

    def _copy_bytes(self, path: str, new: str, length: int, file_format: str) -> None:
        def fill(file: NewFile) -> None:
            with self._source.open(path) as stream:
                first = True
                while data := stream.read(_CHUNK):
                    self._query.check()
                    if first and not data.startswith(_BEGINNINGS.get(file_format, ())):
                        raise CorruptFileError(
                            self._source.location(path), f"it does not begin as {file_format} does"
                        )
                    first = False
                    file.write(data)
            if file.size not in (length, self._source.size(path)):
                raise StorageError(path, f"{file.size} bytes came, {length} were expected")

        written = self._folder.fill(new, fill)
        self._needed[new] = written
        self._count("copied", written)
        counts = self._counts
        self._query.report(Progress("copying", counts["copied"], None, counts["bytes"]))

    def _is_there(self, new: str) -> bool:
        length = self._folder.lengths.get(new)
        if length is None:
            return False
        self._count("present")
        self._needed[new] = length
        return True

    def _write(self, new: str, data: bytes) -> int:
        length = self._folder.write(new, data)
        self._needed[new] = length
        self._count("rewritten", length)
        return length

    def _count(self, what: str, size: int = 0) -> None:
        """Count a file that was copied, rewritten or present, and the bytes that were written."""
        with self._lock:
            self._counts[what] += 1
            self._counts["bytes"] += size

    # ------------------------------------------------------------------ metadata

    def _relocated(self, document: dict[str, Any]) -> dict[str, Any]:
        moved, location = self._moved, self._folder.location

        def place(folder: str) -> str | None:
            # Writers of the copy must not write into the source: other folders get the default.
            found = moved.path(f"{folder.rstrip('/')}/x").removesuffix("/x")
            return found if found != location and not moved.is_outside(found) else None

        made = relocated_document(document, location, moved.path, moved.metadata_path, place)
        for snapshot in made.get("snapshots", ()):
            if isinstance(summary := snapshot.get("summary"), dict):
                summary.update(self._sizes.get(snapshot.get("snapshot-id"), {}))
        return made

    def _write_metadata(self, path: str, document: dict[str, Any], gzipped: bool) -> None:
        folder = self._folder
        if path not in folder.lengths:
            length = folder.write(path, metadata_bytes(document, gzipped=gzipped))
            self._count("rewritten", length)
        data = folder.storage.read(path, most=METADATA_BYTES)
        if metadata_document(data, path) != document:
            raise CatalogError(
                f"cannot copy to {folder.location}: {path} is there, and not what "
                f"{self._table.metadata_location} makes of it; copy to an empty folder"
            )

    def _write_hint(self, final: str) -> None:
        """Write the version hint; readers continue from an older one."""
        # Another copy may have written a later version meanwhile.
        found = _name_of(self._folder.current() or final)
        name = found if is_later(found, _name_of(final)) else _name_of(final)
        self._folder.note(name)
        version = hadoop_version(name)
        text = name.partition(".")[0] if version is None else str(version)
        self._folder.replace(f"{self._folder.location}/metadata/{_HINT}", text.encode())

    def _copy_log(self, final: str) -> None:
        """Copy the earlier metadata files, the latest first, as far as they exist.

        They are copied after the current one: a reader may take the newest file for the current
        one.
        """
        for each in reversed(self._metadata.metadata_log):
            new = self._moved.metadata_path(each.metadata_file)
            if new == final or new in self._folder.lengths or new in self._needed:
                continue
            if is_later(_name_of(new), _name_of(final)):
                continue  # a reader would take it for the current one
            self._query.check()
            try:
                data = self._source.read(each.metadata_file, most=METADATA_BYTES)
                document = metadata_document(data, each.metadata_file)
            except (StorageError, CorruptFileError):
                continue  # writers may delete them
            if document.get("table-uuid") != self._version.document.get("table-uuid"):
                continue
            gzipped = data.startswith(b"\x1f\x8b")
            self._write(new, metadata_bytes(self._relocated(document), gzipped=gzipped))


def _listed_paths(storage: Storage, path: str) -> list[ListedPath]:
    """The paths that a delete manifest lists."""
    return listed_deletes(storage.read(path, most=most_of_manifest(None)), path)


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


class _Pool(Struct):
    """Runs calls in threads; the first error ends all."""

    threads: ThreadPoolExecutor
    most: int
    query: QueryContext
    waiting: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in a thread; waits while too many calls are pending."""
        self.wait(self.most - 1)
        future = self.threads.submit(function, *arguments)
        self.waiting.append(future)
        return future

    def wait(self, left: int = 0) -> None:
        """Wait until so many calls are left. Raises the error of a call."""
        while len(self.waiting) > left:
            self.waiting.pop(0).result()
            self.query.check()
