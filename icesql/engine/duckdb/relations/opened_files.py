"""The paths that DuckDB opens for data files, and the bytes that are fetched for them from stores.

Small files of a store are fetched whole, and DuckDB reads the copies. For larger ones only the
footers are fetched, and DuckDB reads the files through a file system that fetches each range that
DuckDB reads: a sparse copy would return zeros where DuckDB expects, for example, a Bloom filter,
and rows would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from icesql.context import Progress, QueryContext

if TYPE_CHECKING:
    from icesql.engine.duckdb.store_files import QueryFiles
    from icesql.iceberg.types import NestedField
    from icesql.read.formats.parquet_footer import RowCounts
    from icesql.scan.tasks import FileScanTask, ScanContext
    from icesql.storage.cache import BoundedCache
    from icesql.storage.remote import RemoteFiles
    from icesql.storage.stores.blocks import Shelf
    from icesql.storage.stores.files import StoredFile
    from icesql.storage.stores.pool import Request

# The folder of all paths that the file system of ``store_files`` opens.
SCHEME: Final = "icesql"
STORE_FOLDER: Final = f"{SCHEME}://stores"
_FOOTER_BYTES: Final = 128 << 10
# If small files exceed this in sum, the file system fetches only the ranges that are read.
_MOST_COPIED: Final = 2 << 30
# The most bytes that one scan fetches ahead into memory, and the part of a low memory limit that
# it may use; the most bytes between two ranges that are fetched with them.
_MOST_AHEAD: Final = 128 << 20
_AHEAD_PART: Final = 16
_AHEAD_GAP: Final = 64 << 10
_BYTES_OF_CHUNK: Final = 400


class OpenedFiles:
    """The files of one query by location; local ones are opened directly.

    ``begin`` registers the file system with DuckDB, at the first file in a store. ``reads_all``:
    the query is likely to read all rows that satisfy its conditions.
    """

    def __init__(
        self, query: QueryContext, begin: Callable[[], QueryFiles], *, reads_all: bool = False
    ) -> None:
        self._query, self._begin, self._reads_all = query, begin, reads_all
        self._cache: BoundedCache | None = None
        self._files: QueryFiles | None = None
        self._paths: dict[str, str] = {}
        self._stored: dict[str, StoredFile] = {}
        # By location: the ranges to fetch, from the footer. How many more bytes may be fetched.
        self._expected: dict[str, Callable[[RowCounts], list[tuple[int, int]]]] = {}
        self._left = 0

    def path(self, location: str) -> str:
        """The path that DuckDB opens for a location."""
        return self._paths.get(location, location)

    def open(self, location: str) -> BinaryIO:
        """Open a file to read its footer. Raises OSError, and the errors of reading a store."""
        stored = self._stored.get(location)
        if stored is None:
            return open(self.path(location), "rb", buffering=0)
        from icesql.storage.stores.files import StoredStream

        return cast(BinaryIO, StoredStream(stored))

    def is_here(self, location: str) -> bool:
        """True if the whole file can be read without a request."""
        return location not in self._stored

    def note_footer(self, location: str, length: int, counts: RowCounts) -> None:
        """Cache the column chunks that a footer lists, if there is room.

        Requests the ranges of the file that DuckDB will probably read.
        """
        if self._cache is not None and counts.groups is not None:
            chunks = sum(len(group) for _, group in counts.groups)
            self._cache.put(("footer", location, length), counts, chunks * _BYTES_OF_CHUNK)
            self._ask(location, counts)

    def read_ahead(
        self, context: ScanContext, tasks: Sequence[FileScanTask], columns: Iterable[NestedField]
    ) -> None:
        """Request the ranges that DuckDB will read of large files, for all files at once.

        If a file's footer is not known yet, its ranges are requested after the footer arrives.
        """
        cache = context.storage.cache
        if not self._stored or cache is None or not self._reads_all:
            return
        from icesql.engine.duckdb.store_files import ranges_to_read

        field_ids = [column.field_id for column in columns]
        self._left = min(_MOST_AHEAD, self._query.settings.memory_limit // _AHEAD_PART)
        for task, location in zip(tasks, locations(tasks, context), strict=True):
            stored = self._stored.get(location)
            if stored is None or not stored.kept_name:
                continue
            self._expected[location] = partial(
                ranges_to_read,
                columns=field_ids,
                condition=task.residual,
                schema=context.file_schema,
            )
            counts = cache.get(("footer", location, task.data_file.file_size_in_bytes))
            if counts is not None:
                self._ask(location, counts)

    def _ask(self, location: str, counts: RowCounts) -> None:
        """Request the expected ranges of a file, once."""
        ranges_of = self._expected.pop(location, None)
        if ranges_of is None or self._left < 0:
            return
        ranges = ranges_of(counts)
        self._left -= sum(end - first for first, end in ranges)
        if self._left >= 0:
            self._stored[location].fetch(ranges, _AHEAD_GAP)

    def at_end(self, function: Callable[[], None]) -> None:
        """Call ``function`` when the query ends, if it reads object stores."""
        if self._files is not None:
            self._files.at_end(function)

    def fetch(self, context: ScanContext, tasks: Sequence[FileScanTask]) -> None:
        """Fetch small files, and the footers of large ones. Raises StorageError."""
        storage = context.storage
        self._cache = storage.cache
        wanted: dict[str, int] = {}
        for task in tasks:
            if storage.local_path(task.data_file.path) is None:
                location = storage.location(task.data_file.path)
                if location not in self._paths:
                    wanted[location] = task.data_file.file_size_in_bytes
        if not wanted:
            return
        if self._files is None:
            self._files = self._begin()
        remote = storage.remote_files()
        most = self._query.settings.whole_file_size
        small = {location: length for location, length in wanted.items() if length <= most}
        shelf = remote.shelf(next(iter(wanted)))
        if shelf is None or sum(small.values()) > min(_MOST_COPIED, shelf.eviction.most_bytes // 2):
            small = {}
        if small:
            self._copy(remote, small)
        large = {where: length for where, length in wanted.items() if where not in self._paths}
        self._announce(remote, large, most)

    # ------------------------------------------------------------------ small files

    def _copy(self, remote: RemoteFiles, wanted: Mapping[str, int]) -> None:
        from icesql.storage.stores.pool import request_pool

        assert self._files is not None
        shelves = {location: remote.shelf(location) for location in wanted}
        used = {each for each in shelves.values() if each is not None}
        for eviction in {each.eviction for each in used}:
            self._files.at_end(eviction.lease().close)
        for kept in used:
            with kept.eviction.finding():
                for location, length in wanted.items():
                    if shelves[location] is kept:
                        place = kept.whole(kept.name(location, length), length)
                        if place is not None:
                            self._paths[location] = place
        requests = {
            location: request_pool().submit(
                _copying(remote, shelf, location, length), length, self._query
            )
            for location, length in wanted.items()
            if location not in self._paths and (shelf := shelves[location]) is not None
        }
        size, fetched = sum(wanted[location] for location in requests), 0
        try:
            for done, (location, request) in enumerate(requests.items(), 1):
                place = request.result(self._query)
                if place is not None:
                    self._paths[location] = place
                fetched += wanted[location]
                self._query.report(Progress("fetching", done, len(requests), fetched, size))
        finally:
            for request in requests.values():
                if not request.is_done:
                    request_pool().leave(request)

    # ------------------------------------------------------------------ large files

    def _announce(self, remote: RemoteFiles, wanted: Mapping[str, int], whole_size: int) -> None:
        from icesql.storage.stores.files import OtherLength, StoredFile

        assert self._files is not None
        files = {
            location: StoredFile(
                remote, location, length, query=self._query, whole=length <= whole_size
            )
            for location, length in wanted.items()
        }
        for file in files.values():
            file.fetch([(max(file.length - _FOOTER_BYTES, 0), file.length)])
        if files:
            self._files.make_known()
        for location, file in files.items():
            try:
                file.read_at(file.length - 8, 8)
            except OtherLength as other:
                # Some writers record a wrong length; the check of the footer compares the rest.
                file = StoredFile(remote, location, other.length, query=self._query)
            self._stored[location] = file
            self._paths[location] = self._files.announce(file)


def _copying(
    remote: RemoteFiles, shelf: Shelf, location: str, length: int
) -> Callable[[Request[str | None]], str | None]:
    def copy(request: Request[str | None]) -> str | None:
        """The path of the copy; None if it cannot be stored, or has another length."""
        body = remote.get(location, left=request.left)
        if len(body.data) != length:
            return None
        with suppress(OSError):
            return shelf.put_whole(shelf.name(location, length), body.data)
        return None

    return copy


def local_files() -> OpenedFiles:
    """An OpenedFiles for files of which none is in an object store."""

    def begin() -> Any:
        raise AssertionError("a file in an object store")

    return OpenedFiles(QueryContext(), begin)


def locations(files: Iterable[FileScanTask], context: ScanContext) -> list[str]:
    """The location of each file."""
    return [context.storage.location(task.data_file.path) for task in files]
