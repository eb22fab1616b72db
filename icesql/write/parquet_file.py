"""Writes a Parquet file, whose row groups may be encoded in parallel."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.schema import Schema
from icesql.read.columns.numbers import to_numbers
from icesql.storage.new_files import NewFile
from icesql.write.binary_values import Extent, extents
from icesql.write.metrics import (
    FileMetrics,
    MetricsMode,
    count_nans,
    file_metrics,
)
from icesql.write.options import WriteOptions
from icesql.write.parquet_footer import MAGIC, Part, annotated, logical_types, rest_of_file
from icesql.write.parquet_schema import (
    annotated_schema,
    check_release,
    inner_columns,
    leaf_ids,
    stored_fields,
)
from icesql.write.written import FIELDS, EncodedOrigins, RowOrigins, encode_origins

if TYPE_CHECKING:
    from icesql.storage.open import Storage


# ------------------------------------------------------------------ columns that get no dictionary
# A dictionary of values that hardly repeat is built, found too large and discarded, which costs
# time and bytes. With such dictionaries an INSERT of 1.5 million rows of TPC-H's lineitem takes
# 1.3 times the CPU time, and an eighth more bytes (tests/benchmarks insert).


_SAMPLE: Final = 1 << 15
_FEWEST: Final = 20_000
# Shares of distinct values above which a column gets no dictionary.
_MOST_OF_NUMBERS: Final = 0.2
_MOST_OF_TEXTS: Final = 0.7
# After so many equal partitions in a row, only one of as many is examined.
_AGREEING: Final = 6


def unrepeated_columns(rows: pa.Table) -> frozenset[str]:
    """The names of columns whose values hardly repeat; nested columns are ignored."""
    sample = rows.slice(0, _SAMPLE)
    if sample.num_rows < _FEWEST:
        return frozenset()
    found = []
    for field, column in zip(sample.schema, sample.columns, strict=True):
        kind = field.type
        if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
            continue
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
        is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
        most = _MOST_OF_TEXTS if is_text else _MOST_OF_NUMBERS
        # ``unique`` of the combined chunks takes half the time of counting distinct values.
        if len(pc.unique(column.combine_chunks())) > most * len(column):
            found.append(field.name)
    return frozenset(found)


class PlainColumns:
    """The columns without a dictionary in the files of each partition of a write.

    Once several partitions in a row agree, the next few are assumed to be alike, and then one is
    examined again: examining each of 84 took an eighth of the CPU time of an INSERT by month.
    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: frozenset[str] | None = None
        self._agreeing = self._unseen = 0

    def of(self, rows: pa.Table) -> frozenset[str]:
        """The columns for a partition that begins with ``rows``."""
        if rows.num_rows < _FEWEST:
            return frozenset()
        with self._lock:
            latest = self._latest
            if latest is not None and self._agreeing >= _AGREEING and self._unseen < _AGREEING:
                self._unseen += 1
                return latest
        found = unrepeated_columns(rows)
        with self._lock:
            self._agreeing = self._agreeing + 1 if found == self._latest else 1
            self._latest, self._unseen = found, 0
        return found


def leaf_paths(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path in the Parquet schema, top-level column) of every leaf.

    >>> list(leaf_paths([pa.field("a", pa.list_(pa.int32())), pa.field("b", pa.int32())]))
    [('a.list.element', 'a'), ('b', 'b')]
    """
    for field in fields:
        path, kind = prefix + field.name, field.type
        top = path.partition(".")[0] if prefix else field.name
        if pa.types.is_struct(kind):
            inner, below = list(kind), f"{path}."
        elif pa.types.is_map(kind):
            inner = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
            below = f"{path}.key_value."
        elif pa.types.is_list(kind):
            inner, below = [kind.value_field.with_name("element")], f"{path}.list."
        else:
            yield path, top
            continue
        yield from ((each, top) for each, _ in leaf_paths(inner, below))


# ------------------------------------------------------------------ parquet file


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
