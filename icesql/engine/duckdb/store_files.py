"""A file system for DuckDB: files of object stores that a running query reads.

DuckDB opens only paths ``icesql://stores/<name>/<number>``; a file that no query has announced
does not exist. Bytes come from the block store, or else from the object store. Ranges that DuckDB
will probably read are requested ahead.

A name identifies the bytes of a file: DuckDB caches bytes and footers in memory by name. Concurrent
queries have different numbers, since each cancels its own requests.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.file_systems import FileSystem
from icesql.engine.duckdb.relations.opened_files import SCHEME, STORE_FOLDER
from icesql.errors import Error
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, holds, leaves
from icesql.iceberg.schema import Schema
from icesql.read.formats.parquet_footer import Chunk, RowCounts
from icesql.scan.pruning.column_summary import ColumnSummary, decoded_bounds, why_none
from icesql.storage.stores.files import StoredStream

if TYPE_CHECKING:
    from icesql.storage.stores.files import StoredFile


_PREFIX: Final = f"{STORE_FOLDER}/"


def load_library() -> None:
    """Import the libraries of the file system, which takes as long as a request to a store."""
    import fsspec  # noqa: F401


class QueryFiles:
    """The files of one query. ``error`` is the first failure to read one.

    ``is_over`` is set when DuckDB has returned all rows: it opens none of the files any more.
    ``close`` is called from any thread when the query has ended, for whatever reason.
    """

    def __init__(self, all_files: StoreFiles) -> None:
        self.error: Error | None = None
        self.is_over = False
        self._all = all_files
        self._files: dict[str, StoredFile] = {}
        self._closing: list[Callable[[], None]] = []

    def make_known(self) -> None:
        """Register the file system with DuckDB, while the first bytes are being fetched."""
        self._all.make_known()

    def announce(self, file: StoredFile) -> str:
        """The path that DuckDB may open for a file."""
        path = self._all.announce(self, file)
        self._files[path] = file
        return path

    def at_end(self, function: Callable[[], None]) -> None:
        """Call ``function`` when the query ends."""
        self._closing.append(function)

    def stop(self) -> None:
        """End the waiting of readers: the query is over."""
        for file in list(self._files.values()):
            file.leave()

    def close(self) -> None:
        """Release all files. May be called again."""
        self.stop()
        files, self._files = self._files, {}
        self._all.forget(self, files)
        closing, self._closing = self._closing, []
        for function in closing:
            function()


class _Handle(StoredStream):
    """A stream that keeps its errors: DuckDB passes on only their text."""

    def __init__(self, files: QueryFiles, file: StoredFile) -> None:
        super().__init__(file)
        self._files = files

    def read(self, size: int | None = -1) -> Any:
        """See ``StoredStream.view``: DuckDB copies the bytes."""
        try:
            return self.view(size)
        except Error as error:
            self._files.error = self._files.error or error
            raise

    def close(self) -> None:
        """Does nothing: other handles share the file, and the query cancels its requests."""


class StoreFiles(FileSystem):
    """The files of all queries of one DuckDB instance."""

    scheme = SCHEME

    def __init__(self, register: Callable[[Any], None]) -> None:
        super().__init__(register)
        self._announced: dict[str, tuple[QueryFiles, StoredFile]] = {}
        # Names are keyed hashes, so that SQL cannot guess them.
        self._key = os.urandom(16)

    def announce(self, files: QueryFiles, file: StoredFile) -> str:
        """The path of a file while a query has it: the same one for the same bytes.

        A finished query that has not released its paths yet loses them.
        """
        name = file.kept_name or os.urandom(16).hex()
        folder = hashlib.blake2b(name.encode(), key=self._key, digest_size=16).hexdigest()
        self.make_known()
        with self._lock:
            paths = (f"{_PREFIX}{folder}/{number}" for number in count())
            path = next(path for path in paths if self._is_free(path))
            self._announced[path] = files, file
        return path

    def _is_free(self, path: str) -> bool:
        found = self._announced.get(path)
        return found is None or found[0].is_over

    def forget(self, files: QueryFiles, paths: Iterable[str]) -> None:
        """Stop serving files of a query."""
        with self._lock:
            for path in paths:
                if path in self._announced and self._announced[path][0] is files:
                    del self._announced[path]

    def find(self, path: str) -> tuple[QueryFiles, StoredFile]:
        """An announced file. Raises FileNotFoundError."""
        found = self._announced.get(path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    def open(self, path: str, mode: str) -> _Handle:
        """A file to read."""
        if mode != "rb":
            raise PermissionError(path)
        return _Handle(*self.find(path))

    def length(self, path: str) -> int:
        """See ``FileSystem``."""
        return self.find(path)[1].length


# ------------------------------------------------------------------ ranges to read
# DuckDB opens one file after the other and reads each row group when it reaches it, with new
# requests each time. These ranges, from the footer and the filter, are requested all at once. The
# prediction affects only requests: DuckDB requests any other range itself.


Range = tuple[int, int]

# Types whose bounds have the same bytes in a footer and in a manifest.
_SAME_BYTES: Final = (
    t.BooleanType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DateType, t.TimeType,
    t.TimestampType, t.TimestamptzType, t.StringType, t.BinaryType,
)  # fmt: skip


def ranges_to_read(
    counts: RowCounts, columns: Collection[int], condition: Predicate, schema: Schema
) -> list[Range]:
    """Bytes (first, end) of ``columns`` (field ids) in row groups that may hold a matching row.

    If Bloom filters decide about a row group, only the filters.
    """
    groups = counts.groups or ()
    conditions = tuple(leaves(condition))
    leaf_columns = [leaf for each in columns for leaf in counts.layout.columns.get(each, ())]
    found: list[Range] = []
    for rows, chunks in groups:
        if not rows or not _may_match(counts, chunks, condition, schema):
            continue
        blooms = [
            chunk.bloom
            for each in conditions
            if each.operation in (Operation.EQ, Operation.IN)
            and (chunk := _chunk(counts, chunks, each.term.field_id)) is not None
            and chunk.bloom[0] > 0
        ]
        if blooms:
            found.extend((first, first + size) for first, size in blooms if size > 0)
        else:
            wanted_chunks = [chunks[leaf] for leaf in leaf_columns if leaf < len(chunks)]
            found.extend((each.first, each.first + each.size) for each in wanted_chunks)
    # Sizes in a footer are a stranger's: they are only used as hints.
    return [each for each in found if 0 <= each[0] < each[1]]


def _may_match(
    counts: RowCounts, chunks: Sequence[Chunk], condition: Predicate, schema: Schema
) -> bool:
    """False only if no row of a row group can satisfy ``condition``."""

    def may_match(leaf: Leaf) -> bool:
        column = schema.field_by_id.get(leaf.term.field_id)
        chunk = _chunk(counts, chunks, leaf.term.field_id)
        if column is None or not isinstance(column.type, _SAME_BYTES) or chunk is None:
            return True
        is_known = chunk.nulls >= 0 and None not in (chunk.lower, chunk.upper)
        if not is_known or leaf.term.transform != "identity":
            return True
        no_nans = not t.is_floating(column.type)
        lower, upper = decoded_bounds(column.type, chunk.lower, chunk.upper)
        summary = ColumnSummary(column.type, lower, upper, chunk.nulls == 0, no_nans=no_nans)
        return why_none(leaf, summary) is None

    return holds(condition, may_match)


def _chunk(counts: RowCounts, chunks: Sequence[Chunk], field_id: int) -> Chunk | None:
    """The chunk of a top-level column that has a single leaf."""
    found = counts.layout.columns.get(field_id, ())
    return chunks[found[0]] if len(found) == 1 and found[0] < len(chunks) else None
