"""The deletes of one scan: deleted positions of each data file, and groups of equality keys."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import CorruptFileError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.schema import DELETE_FILE_PATH, DELETE_POS, Schema
from icesql.read.columns.numbers import to_numbers
from icesql.read.columns.projection import column_batches, column_reader
from icesql.read.deletes.equality_keys import EqualityGroup, equality_groups
from icesql.read.formats.open import open_reader
from icesql.scan.deletes.vectors import Positions, read_vector
from icesql.scan.tasks import FileScanTask, ScanContext, distinct_deletes
from icesql.storage.cache import kept

# Larger delete files are read for each query, keeping only positions of the query's data files.
_MOST_KEPT_ROWS: Final = 1 << 20

_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))


class PositionDeletes:
    """Loads each position delete file of a scan once, on first use; safe for several threads."""

    def __init__(
        self, context: ScanContext, tasks: Iterable[FileScanTask], query: QueryContext
    ) -> None:
        self._context, self._query = context, query
        self._lock = threading.Lock()
        self._wanted: dict[str, set[str]] = {}
        self._loaded: dict[str, dict[str, Positions]] = {}
        self._checked: set[str] = set()
        tasks = tuple(tasks)
        # Deletes known to hold no positions, by identity: a stream of upserts has hundreds of
        # equality deletes for each of hundreds of files.
        self._without: dict[int, tuple[DataFile, ...]] = {}
        if all(
            each.content is not FileContent.POSITION_DELETES for each in distinct_deletes(tasks)
        ):
            self._without = {id(task.deletes): task.deletes for task in tasks}
        else:
            for task in tasks:
                for delete in _position_files(task):
                    self._wanted.setdefault(delete.path, set()).add(task.data_file.path)

    def positions(self, task: FileScanTask) -> Positions | None:
        """Deleted positions of the task's data file, sorted and distinct; None for none.

        Writers may name positions beyond the end of a file: these are left out, unless the file's
        row count is unknown. Raises CorruptFileError where the row count is not that of the file.
        """
        found, file = self.named(task), task.data_file
        if found is None or file.record_count < 0 or found[-1] < file.record_count:
            return found
        self._check_row_count(file)
        found = found[: np.searchsorted(found, file.record_count)]
        return found if len(found) else None

    def _check_row_count(self, file: DataFile) -> None:
        # A wrong count would bring deleted rows back.
        with self._lock:
            if file.path in self._checked:
                return
        opened = open_reader(file, self._context)
        try:
            for _ in opened.batches(()):
                self._query.check()
        finally:
            opened.close()
        with self._lock:
            self._checked.add(file.path)

    def named(self, task: FileScanTask) -> Positions | None:
        """The same with positions that the file does not have."""
        if id(task.deletes) in self._without:
            return None
        vectors = [delete for delete in task.deletes if delete.is_deletion_vector]
        if vectors:
            if len(vectors) > 1:
                raise CorruptFileError(
                    task.data_file.path,
                    f"{len(vectors)} deletion vectors apply: {', '.join(v.path for v in vectors)}",
                )
            positions = read_vector(vectors[0], self._context.storage, self._context.table)
            return positions if len(positions) else None
        path = task.data_file.path
        files = (self._file(delete, path) for delete in _position_files(task))
        parts = [loaded[path] for loaded in files if path in loaded]
        return _merged(parts) if parts else None

    def _file(self, delete: DataFile, data_path: str) -> dict[str, Positions]:
        with self._lock:
            wanted = self._wanted.setdefault(delete.path, set())
            if data_path not in wanted:
                wanted.add(data_path)
                self._loaded.pop(delete.path, None)
            loaded = self._loaded.get(delete.path)
            if loaded is None:
                loaded = self._loaded[delete.path] = _by_file(self._matched(delete, wanted))
            return loaded

    def _matched(self, delete: DataFile, data_paths: set[str]) -> Iterator[tuple[str, Positions]]:
        key_of = cache(self._context.storage.same_file_key)
        by_key: dict[str, str] = {}
        location = self._context.storage.location(delete.path)
        for path, rows in self._pieces(delete):
            data_path = path if path in data_paths else None
            if data_path is None:
                by_key = by_key or {key_of(each): each for each in data_paths}
                data_path = by_key.get(key_of(path))
            if data_path is not None:
                yield data_path, rows
            elif delete.referenced_data_file is not None or "\0" in path:
                raise CorruptFileError(
                    location, f"a position delete of {path!r}, which it should not name"
                )

    def _pieces(self, delete: DataFile) -> Iterable[tuple[str, Positions]]:
        """The paths in a delete file, each once or more, and rows deleted there.

        Small files are decoded once for all queries: delete files never change.
        """
        if not 0 <= delete.record_count <= _MOST_KEPT_ROWS:
            return self._read_pieces(delete)

        def read() -> tuple[dict[str, Positions], int]:
            merged = _by_file(self._read_pieces(delete))
            return merged, sum(rows.nbytes + 2 * len(path) + 200 for path, rows in merged.items())

        storage = self._context.storage
        return kept(storage.cache, storage.cache_key("positions", delete.path), read).items()

    def _read_pieces(self, delete: DataFile) -> Iterator[tuple[str, Positions]]:
        location = self._context.storage.location(delete.path)
        for paths, stored in stored_columns(delete, _SCHEMA, self._context):
            if paths.null_count or stored.null_count:
                raise CorruptFileError(location, "a position delete without path or position")
            self._query.check()
            positions = to_numbers(stored)
            if len(positions) and positions.min() < 0:
                raise CorruptFileError(location, f"a position delete of row {positions.min()}")
            yield from by_file(paths, positions)


def stored_columns(
    file: DataFile, schema: Schema, context: ScanContext
) -> Iterator[list[pa.Array]]:
    """The values of the columns in a delete file, batch by batch; optional ones may be left out.

    Delete files of other writers may lack field ids; the spec fixes the names.
    """
    names = NameMapping(tuple(MappedField(each.field_id, (each.name,)) for each in schema.fields))
    context = replace(context, schema=schema, file_schema=schema, name_mapping=names)
    location = context.storage.location(file.path)
    opened = open_reader(file, context)
    try:
        stored = {each.field_id for each in opened.fields}
        kept = [each for each in schema.fields if each.field_id in stored or each.required]
        readers = [column_reader(each, opened.fields, {}, location) for each in kept]
        for _, arrays in column_batches(opened, readers, location):
            yield arrays
    finally:
        opened.close()


def _by_file(pieces: Iterable[tuple[str, Positions]]) -> dict[str, Positions]:
    """The rows of all pieces of each file."""
    parts: dict[str, list[Positions]] = {}
    for path, rows in pieces:
        parts.setdefault(path, []).append(rows)
    return {path: _merged(found) for path, found in parts.items()}


def _merged(parts: list[Positions]) -> Positions:
    """Sorted and distinct."""
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
        rows = np.unique(rows)
    return rows


def _position_files(task: FileScanTask) -> list[DataFile]:
    return [
        delete
        for delete in task.deletes
        if delete.content is FileContent.POSITION_DELETES and not delete.is_deletion_vector
    ]


def by_file(files: pa.Array, positions: Positions) -> Iterator[tuple[str, Positions]]:
    """Group positions by file; the positions of each file keep their order."""
    encoded: Any = files if pa.types.is_dictionary(files.type) else files.dictionary_encode()
    codes = to_numbers(encoded.indices)
    paths = encoded.dictionary.to_pylist()
    if len(paths) == 1:
        yield paths[0], positions
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(paths) + 1))
    for code, path in enumerate(paths):
        found = positions[order[bounds[code] : bounds[code + 1]]]
        if len(found):
            yield path, found


# ------------------------------------------------------------------ all deletes of a scan
# Both local readers take their deletes from here: ``read/`` row by row, DuckDB as relations that
# it anti-joins. Each delete file is read once, on first use.


class DeleteRelations(PositionDeletes):
    """The deletes of one scan, shared by all its tasks; safe for several threads.

    ``tasks`` are all tasks that will be read: deletes are taken from what the planner attached.
    """

    def __init__(
        self, context: ScanContext, tasks: Iterable[FileScanTask], query: QueryContext
    ) -> None:
        tasks = tuple(tasks)
        super().__init__(context, tasks, query)
        # One group per equality-id set and scope; for engines that join them themselves. A data row
        # is deleted when its key (NULL = NULL, NaN = NaN), and in a partitioned group its file's
        # partition ordinal, is in the group with a sequence number greater than the file's.
        self.equality_groups = equality_groups(context, tasks, query)

    def groups_for(self, task: FileScanTask) -> tuple[EqualityGroup, ...]:
        """The groups that may delete rows of the task."""
        return tuple(group for group in self.equality_groups if group.applies_to(task))
