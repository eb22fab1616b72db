"""A Parquet file whose row groups may be encoded in parallel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.schema import Schema
from icesql.read.columns.numbers import to_numbers
from icesql.storage.new_file import NewFile
from icesql.write.file_metrics import (
    FileMetrics,
    count_nans,
    file_metrics,
)
from icesql.write.metrics_config import MetricsMode
from icesql.write.options import WriteOptions
from icesql.write.parquet.annotations import annotated, logical_types
from icesql.write.parquet.dictionaries import leaf_paths
from icesql.write.parquet.joined import MAGIC, Part, rest_of_file
from icesql.write.parquet_schema import (
    annotated_schema,
    check_release,
    inner_columns,
    leaf_ids,
    stored_fields,
)
from icesql.write.row_origins import FIELDS, EncodedOrigins, RowOrigins, encode_origins
from icesql.write.values.geometry import Extent, extents

if TYPE_CHECKING:
    from icesql.storage.open import Storage

# The capacity limit of a Bloom filter, which is then about a megabyte.
_MOST_DISTINCT: Final = 1 << 20


class FileShape:
    """The properties that all files of a write share.

    ``origins``: rows have two more columns with their origins, which files do not store. Raises
    UnsupportedTableError for unsupported types.
    """

    def __init__(
        self,
        schema: Schema,
        modes: Mapping[int, MetricsMode],
        options: WriteOptions,
        key_values: Mapping[str, str] | None = None,
        *,
        origins: bool = False,
    ) -> None:
        stored = stored_fields(schema.fields)
        check_release(stored)
        self.schema, self.modes, self.options, self.origins = schema, modes, options, origins
        self.key_values = key_values or {}
        self.arrow, self.leaf_ids = annotated_schema(schema), leaf_ids(schema)
        self.floats = [*inner_columns(stored, t.FloatType, t.DoubleType)]
        self.geometries = [*inner_columns(stored, t.GeometryType, t.GeographyType)]
        self.logical_types = logical_types(t.walk(stored))


class WrittenFile(Frozen):
    """A finished file; ``origins`` are those of its rows, if rows carried them."""

    path: str
    size: int
    rows: int
    metrics: FileMetrics
    origins: EncodedOrigins = ()


class EncodedRows(Frozen):
    """A row group encoded as a Parquet file of its own, in memory."""

    data: pa.Buffer
    part: Part
    rows: int
    nans: Mapping[int, int]
    extents: Mapping[int, Extent]
    origins: bytes | None


def encode_rows(table: pa.Table, shape: FileShape, plain: frozenset[str]) -> EncodedRows:
    """Encode rows as one row group; ``plain`` columns get no dictionary."""
    origins = None
    if shape.origins:
        source, position = table.columns[-len(FIELDS) :]
        places = (to_numbers(each.combine_chunks()) for each in (source, position))
        origins = encode_origins(RowOrigins.of(*places))
        table = table.select(range(table.num_columns - len(FIELDS)))
    nans, boxes = count_nans(table, shape.floats), extents(table, shape.geometries)
    for place, field in enumerate(shape.arrow):
        if isinstance(field.type, pa.BaseExtensionType) and field.type != pa.uuid():
            typed = field.type.wrap_array(table.column(place))
            table = table.set_column(place, field, typed)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, shape.arrow, **writer_arguments(shape, plain, table.num_rows)
    ) as writer:
        if shape.key_values:
            writer.add_key_value_metadata(dict(shape.key_values))
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
    data = sink.getvalue()
    return EncodedRows(data, Part(data), table.num_rows, nans, boxes, origins)


class ParquetFile:
    """A file being written; each table that it takes becomes a row group.

    ``plain`` columns get no dictionary. As a context manager it leaves no file after an error.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        shape: FileShape,
        plain: frozenset[str] = frozenset(),
    ) -> None:
        self.shape, self.plain = shape, plain
        self._file = NewFile(storage, path)
        self._parts: list[Part] = []
        self._nans: list[Mapping[int, int]] = []
        self._extents: list[Mapping[int, Extent]] = []
        self._origins: list[bytes] = []
        self.rows = 0

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._file.size

    def write(self, table: pa.Table) -> None:
        """Write a row group."""
        self.add(encode_rows(table, self.shape, self.plain))

    def add(self, encoded: EncodedRows) -> None:
        """Write a row group that was encoded for this file."""
        part = encoded.part
        # The magic bytes at the start of each part are written only once.
        start = len(MAGIC) if self._parts else 0
        part.moved = self._file.size - start
        self._file.write(encoded.data[start : part.pages])
        self._parts.append(part)
        if encoded.rows:
            self._nans.append(encoded.nans)
            self._extents.append(encoded.extents)
            if encoded.origins is not None:
                self._origins.append(encoded.origins)
            self.rows += encoded.rows

    def finish(self) -> WrittenFile:
        """Finish the file, which appears under its name."""
        if not self._parts:
            self.write(self.shape.arrow.empty_table())
        rest = rest_of_file(self._parts, self._file.size, self.rows)
        rest = annotated(rest, self.shape.logical_types)
        # The footer as readers will see it.
        footer = pq.read_metadata(pa.BufferReader(rest))
        self._file.write(rest)
        shape = self.shape
        metrics = file_metrics(
            footer, shape.leaf_ids, shape.schema, shape.modes, self._nans, self._extents
        )
        size = self._file.finish()
        return WrittenFile(self._file.path, size, self.rows, metrics, tuple(self._origins))

    def abandon(self) -> None:
        """Remove the file."""
        self._file.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abandon()


def writer_arguments(shape: FileShape, unrepeated: frozenset[str], rows: int) -> dict[str, Any]:
    """The arguments of ``pyarrow.parquet.ParquetWriter`` for a row group of ``rows`` rows."""
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
    filters = {
        avro_name(name): {"fpp": share, "ndv": min(max(rows, 1), _MOST_DISTINCT)}
        for name, share in options.bloom_filters.items()
        if avro_name(name) in names
    }
    if filters and "bloom_filter_options" in known:
        arguments["bloom_filter_options"] = filters
    return arguments
