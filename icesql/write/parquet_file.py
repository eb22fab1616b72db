"""Parquet files of one partition: row groups by bytes, a new file at the target size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.schema import Schema
from icesql.storage.new_file import NewFile, remove_file
from icesql.write.file_metrics import (
    FileMetrics,
    FloatColumn,
    count_nans,
    file_metrics,
    float_columns,
)
from icesql.write.metrics_config import MetricsMode
from icesql.write.options import WriteOptions
from icesql.write.parquet.dictionaries import leaf_paths, unrepeated_columns
from icesql.write.parquet_schema import leaf_ids, parquet_schema, stored_fields

if TYPE_CHECKING:
    from icesql.storage.open import Storage

_FEWEST_ROWS: Final = 1000
_SMALLEST_RATIO: Final = 0.01


class FileShape(Struct, frozen=True):
    """What all files of a write have in common."""

    schema: Schema
    arrow: pa.Schema
    leaf_ids: tuple[int, ...]
    modes: Mapping[int, MetricsMode]
    options: WriteOptions
    floats: tuple[FloatColumn, ...]
    key_values: Mapping[str, str]

    @classmethod
    def of(
        cls,
        schema: Schema,
        modes: Mapping[int, MetricsMode],
        options: WriteOptions,
        key_values: Mapping[str, str] | None = None,
    ) -> FileShape:
        """That of a table's schema. Raises UnsupportedTableError for types that are not written."""
        floats = float_columns(stored_fields(schema.fields))
        arrow, leaves = parquet_schema(schema), leaf_ids(schema)
        return cls(schema, arrow, leaves, modes, options, floats, key_values or {})


class WrittenFile(Struct, frozen=True):
    """A whole file under its name."""

    path: str
    size: int
    rows: int
    metrics: FileMetrics


class ParquetFile:
    """One file being written; each table that it takes is a row group.

    ``plain`` columns have no dictionary.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        shape: FileShape,
        plain: frozenset[str] = frozenset(),
    ) -> None:
        self._shape = shape
        self._file = NewFile(storage, path)
        self._nans: list[Mapping[int, int]] = []
        self.rows = 0
        try:
            self._writer = pq.ParquetWriter(
                pa.PythonFile(_Target(self._file), mode="w"),
                shape.arrow,
                **_arguments(shape, plain),
            )
            if shape.key_values:
                self._writer.add_key_value_metadata(dict(shape.key_values))
        except BaseException:
            self._file.abandon()
            raise

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._file.size

    def write(self, table: pa.Table) -> None:
        """Write a row group."""
        self._nans.append(count_nans(table, self._shape.floats))
        self._writer.write_table(table, row_group_size=table.num_rows)
        self.rows += table.num_rows

    def finish(self) -> WrittenFile:
        """Let the file appear under its name. What fails leaves nothing behind."""
        try:
            self._writer.close()
            footer = self._writer.writer.metadata
            shape = self._shape
            metrics = file_metrics(footer, shape.leaf_ids, shape.schema, shape.modes, self._nans)
            size = self._file.finish()
        except BaseException:
            self._file.abandon()
            raise
        return WrittenFile(self._file.path, size, self.rows, metrics)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(Exception):
            self._writer.close()
        self._file.abandon()


class _Target:
    """A new file as pyarrow writes to it."""

    closed = False

    def __init__(self, file: NewFile) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.size

    def flush(self) -> None:
        """Nothing: the file is flushed when it is finished."""

    def close(self) -> None:
        """Nothing: whoever made the file finishes it."""


class RollingFiles:
    """The files of one partition, one after the other.

    ``path_of`` gives the path of the next. A file ends once it has the target size; the row groups
    are as large as the options allow, judged by how many bytes the rows before have taken.
    """

    def __init__(self, storage: Storage, shape: FileShape, path_of: Callable[[], str]) -> None:
        self._storage, self._shape, self._path_of = storage, shape, path_of
        self._file: ParquetFile | None = None
        self._bytes_per_byte = 1.0
        self._plain: frozenset[str] | None = None
        self.written: list[WrittenFile] = []

    def write(self, table: pa.Table) -> None:
        """Write rows, none of which is kept."""
        options = self._shape.options
        start = 0
        while start < table.num_rows:
            if self._plain is None:
                self._plain = unrepeated_columns(table)
            if self._file is None:
                self._file = ParquetFile(self._storage, self._path_of(), self._shape, self._plain)
            rest = table.slice(start)
            left = min(options.row_group_size, options.target_file_size - self._file.size)
            part = rest.slice(0, self._rows_for(rest, left))
            before = self._file.size
            self._file.write(part)
            share = (self._file.size - before) / max(part.nbytes, 1)
            self._bytes_per_byte = max(share, _SMALLEST_RATIO)
            start += part.num_rows
            if self._file.size >= options.target_file_size:
                self.end_file()

    def _rows_for(self, table: pa.Table, size: int) -> int:
        """How many rows of ``table`` take about ``size`` bytes in a file."""
        estimate = table.nbytes * self._bytes_per_byte
        if estimate <= size * 1.1:
            return int(table.num_rows)
        return max(int(table.num_rows * size / estimate), _FEWEST_ROWS)

    def end_file(self) -> None:
        """Finish the current file; the next row begins another."""
        file, self._file = self._file, None
        if file is not None:
            self.written.append(file.finish())

    def abandon(self) -> None:
        """Remove everything that was written."""
        file, self._file = self._file, None
        if file is not None:
            file.abandon()
        for each in self.written:
            remove_file(self._storage, each.path)
        self.written.clear()


def _arguments(shape: FileShape, unrepeated: frozenset[str]) -> dict[str, Any]:
    options = shape.options
    names = set(shape.arrow.names)
    plain = {avro_name(each) for each in options.without_dictionary} & names
    plain |= unrepeated
    kept = [path for path, top in leaf_paths(shape.arrow) if top not in plain] if plain else True
    bare = {avro_name(each) for each in options.without_statistics} & names
    arguments: dict[str, Any] = {
        "version": "2.6",
        "compression": options.codec,
        "compression_level": options.level,
        "data_page_size": options.page_size,
        "dictionary_pagesize_limit": options.dictionary_size,
        "use_dictionary": kept if kept else False,
        "write_statistics": [*(names - bare)] if bare else True,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_page_index": True,
    }
    known = pq.ParquetWriter.__init__.__code__.co_varnames
    if "max_rows_per_page" in known:
        arguments["max_rows_per_page"] = options.page_rows
    filters = {avro_name(each.column): each for each in options.bloom_filters}
    filters = {name: each for name, each in filters.items() if name in names}
    if filters and "bloom_filter_options" in known:
        arguments["bloom_filter_options"] = {
            name: {"fpp": each.false_positives} for name, each in filters.items()
        }
    return arguments
