"""Parquet files: row groups of a byte range as batches, with their true row positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import NANOS_PER_DAY, decode_bound, scaled
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Predicate, holds
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import TimestampNanoType, TimestamptzNanoType
from icesql.read.columns.arrow_schema import FIELD_ID
from icesql.read.formats.file_fields import (
    FileField,
    arrow_fields,
    table_fields,
    walk,
)
from icesql.read.formats.parquet_footer import read_row_counts
from icesql.read.formats.reader import BATCH_ROWS, FileBatch, check_row_count, decoding
from icesql.read.formats.thrift import BadThrift
from icesql.scan.pruning.column_summary import ColumnSummary, why_none
from icesql.scan.tasks import ScanContext
from icesql.storage.stores.files import StoredStream

# ------------------------------------------------------------------ row groups
# Which row groups of a Parquet file a range holds, and which cannot hold a matching row.
#
# Errs towards reading: values that the footer does not determine "may match". NaN is in no minimum
# or maximum, and no comparison is true for it. Source: Iceberg Java, ParquetMetricsRowGroupFilter.


_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class RowGroups:
    """The row groups of one file; ``leaves`` are its Parquet columns."""

    def __init__(
        self,
        metadata: Any,
        leaves: Sequence[FileField],
        schema: Schema,
    ) -> None:
        self._metadata, self._leaves = metadata, leaves
        self._schema = schema

    @cached_property
    def row_counts(self) -> list[int]:
        """Rows of each row group."""
        metadata = self._metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def midpoint(self, group: int) -> int:
        """The byte that decides to which split a row group belongs."""
        row_group = self._metadata.row_group(group)
        size = sum(
            row_group.column(index).total_compressed_size for index in range(row_group.num_columns)
        )
        return int(chunk_start(row_group.column(0)) + size // 2)

    @cached_property
    def _leaf_by_id(self) -> dict[int, tuple[FileField, int]]:
        """Field id → leaf and Parquet column; leaves inside lists and maps are left out."""
        schema = self._metadata.schema
        return {
            each.field_id: (each, column)
            for column, each in enumerate(self._leaves)
            if each.field_id is not None and not schema.column(column).max_repetition_level
        }

    def may_match(self, group: int, predicate: Predicate) -> bool:
        """False only if no row of the row group can satisfy ``predicate``."""
        return holds(predicate, partial(self._leaf_may_match, group))

    def _leaf_may_match(self, group: int, leaf: Leaf) -> bool:
        known = self._leaf_by_id.get(leaf.term.field_id)
        # A column that the file lacks is a constant: the rows are filtered by it exactly.
        if known is None or leaf.term.transform != "identity":
            return True
        file_field, column = known
        table_field = self._schema.field_by_id.get(leaf.term.field_id)
        if table_field is None:
            return True
        summary = self._summary(group, column, file_field.type, table_field.type)
        return summary is None or why_none(leaf, summary) is None

    def _summary(
        self, group: int, column: int, stored: pa.DataType, type: t.IcebergType
    ) -> ColumnSummary | None:
        statistics = self._metadata.row_group(group).column(column).statistics
        if statistics is None:
            return None
        nulls = statistics.null_count if statistics.has_null_count else None
        lower = upper = None
        if statistics.has_min_max:
            lower = _internal(statistics.min_raw, stored, type)
            upper = _internal(statistics.max_raw, stored, type)
        # NaN where a number should be, or bounds in disorder: the writer's bounds mean nothing.
        if lower is None or upper is None or not lower <= upper:
            lower = upper = None
        only_null = nulls == self.row_counts[group]
        return ColumnSummary(
            type,
            lower,
            upper,
            no_nulls=nulls == 0,
            all_null=only_null,
            no_nans=not t.is_floating(type),
            valueless=only_null,
        )


def chunk_start(chunk: Any) -> int:
    """The offset of the first page of a column chunk."""
    first, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    return int(min(first, dictionary) if chunk.has_dictionary_page and dictionary else first)


def _internal(raw: Any, stored: pa.DataType, type: t.IcebergType) -> Any:
    """A footer's raw minimum or maximum as a value of the table's type; None when unsure."""
    if isinstance(stored, pa.BaseExtensionType):
        stored = stored.storage_type
    if isinstance(stored, pa.DictionaryType):
        stored = stored.value_type
    match type:
        case t.BooleanType() if pa.types.is_boolean(stored):
            return bool(raw)
        case t.IntegerType() | t.LongType() if pa.types.is_signed_integer(stored):
            return int(raw)
        case t.FloatType() | t.DoubleType() if pa.types.is_float32(stored) or pa.types.is_float64(
            stored
        ):
            return float(raw)
        case t.DateType() if pa.types.is_date32(stored):
            return int(raw)
        case t.TimeType() if pa.types.is_time(stored) and isinstance(raw, int):
            return raw * _NANOS[stored.unit] // 1000
        case t.AnyTimestamp():
            nano = isinstance(type, t.TimestampNanoType | t.TimestamptzNanoType)
            return _timestamp(raw, stored, nano)
        case t.DecimalType() if pa.types.is_decimal(stored):
            whole = isinstance(raw, bytes)
            return scaled(
                int.from_bytes(raw, "big", signed=True) if whole else int(raw), stored.scale
            )
        case t.StringType() if isinstance(raw, bytes):
            return decode_bound(type, raw)
        case t.BinaryType() | t.FixedType() | t.UUIDType() if isinstance(raw, bytes):
            return raw
        case _:
            return None


def _timestamp(raw: Any, stored: pa.DataType, nano: bool) -> int | None:
    if not isinstance(raw, int):
        return None
    if pa.types.is_date32(stored):
        value = raw * NANOS_PER_DAY
    elif pa.types.is_timestamp(stored):
        value = raw * _NANOS[stored.unit]
    else:
        return None
    return value if nano else value // 1000


# ------------------------------------------------------------------ files


# A data file as Arrow reads it: a local file, or blocks fetched from an object store.


def open_data_stream(file: DataFile, context: ScanContext) -> tuple[Any, StoredStream | None]:
    """Arrow's stream, and the stream below it for an object store."""
    storage = context.storage
    local = storage.local_path(file.path)
    with decoding(local or file.path):
        if local is not None:
            return pa.OSFile(local, "rb"), None
        stream = storage.open(file.path, file.file_size_in_bytes)
        if not isinstance(stream, StoredStream):
            return stream, None
        if stream.file.is_whole:
            data = stream.read()
            return pa.BufferReader(data), None
        return pa.PythonFile(stream, mode="r"), stream


class ParquetFileReader:
    """An open Parquet file."""

    def __init__(self, file: DataFile, context: ScanContext) -> None:
        self.path = context.storage.location(file.path)
        self._stream, self._stored = open_data_stream(file, context)
        try:
            self._open(file, context)
        except BaseException:
            self._stream.close()
            raise

    def _open(self, file: DataFile, context: ScanContext) -> None:
        self._file = self._parquet_file("us")
        with decoding(self.path):
            self.metadata = self._file.metadata
            arrow = self._file.schema_arrow
            fields = arrow_fields(arrow, FIELD_ID)
        self._check_counts(file)
        self.fields, self.missing_is_null = table_fields(fields, self.path, context)
        self._schema = context.file_schema
        # Each Parquet column: its top-level field and leaf. Names with dots cannot mislead it.
        self._leaves = [
            (each.index, leaf)
            for each in self.fields
            for leaf in walk((each,))
            if not leaf.children
        ]
        if len(self._leaves) != self.metadata.num_columns:
            raise CorruptFileError(
                self.path,
                f"{len(self._leaves)} leaf columns in the schema, "
                f"{self.metadata.num_columns} in the footer",
            )
        self._check_identity(file, context)
        self._nano_ids = frozenset(
            field_id
            for field_id, column in context.file_schema.field_by_id.items()
            if isinstance(column.type, TimestampNanoType | TimestamptzNanoType)
        )

    def _check_counts(self, file: DataFile) -> None:
        metadata = self.metadata
        groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if sum(groups) != metadata.num_rows:
            raise CorruptFileError(
                self.path, f"row groups of {sum(groups)} rows in a file of {metadata.num_rows}"
            )
        check_row_count(file, metadata.num_rows, self.path)

    def _check_identity(self, file: DataFile, context: ScanContext) -> None:
        """Raise CorruptFileError if a file of unexpected length is not the one in the manifest."""
        length = self._stream.size()
        if length == file.file_size_in_bytes:
            return
        try:
            with context.storage.open(file.path, length) as opened:
                problem = read_row_counts(opened, {}).other_file(file, context.file_schema)
        except (OSError, BadThrift):
            return  # Arrow could read it
        if problem is not None:
            raise CorruptFileError(self.path, problem)

    def _parquet_file(self, int96_unit: str) -> Any:
        with decoding(self.path):
            return pq.ParquetFile(
                self._stream,
                coerce_int96_timestamp_unit=int96_unit,
                page_checksum_verification=True,
                pre_buffer=False,
            )

    def batches(
        self,
        wanted: Sequence[FileField],
        part: tuple[int, int] | None = None,
        predicate: Predicate = ALWAYS_TRUE,
    ) -> Iterator[FileBatch]:
        """Rows of the row groups whose midpoint lies in the range (see ``FileReader``)."""
        with decoding(self.path):
            groups = RowGroups(self.metadata, [leaf for _, leaf in self._leaves], self._schema)
            chosen = [
                group
                for group in range(self.metadata.num_row_groups)
                if part is None or part[0] <= groups.midpoint(group) < part[1]
            ]
            if predicate is not ALWAYS_TRUE:
                chosen = [group for group in chosen if groups.may_match(group, predicate)]
            counts = groups.row_counts
        firsts = [0]
        for count in counts:
            firsts.append(firsts[-1] + count)
        for run in _consecutive([group for group in chosen if counts[group]]):
            first, rows = firsts[run[0]], sum(counts[group] for group in run)
            if wanted:
                yield from self._run(run, wanted, first, rows)
            else:
                for begin in range(0, rows, BATCH_ROWS):
                    yield FileBatch((), min(BATCH_ROWS, rows - begin), first + begin)

    def _run(
        self, groups: list[int], wanted: Sequence[FileField], first: int, rows: int
    ) -> Iterator[FileBatch]:
        """Rows of consecutive row groups, so that positions go up by one."""
        in_file_order = sorted({each.index for each in wanted})
        # Ascending: Arrow returns the columns in the order in which they are requested.
        indices = [column for column, (top, _) in enumerate(self._leaves) if top in in_file_order]
        file = self._reader_for(indices)
        places = [in_file_order.index(each.index) for each in wanted]
        self._fetch(groups, indices)
        # Waking threads costs more than decoding a small column.
        threads = len(indices) > 1 and rows >= BATCH_ROWS // 2
        with decoding(self.path):
            batches = file.reader.iter_batches(
                BATCH_ROWS, row_groups=groups, column_indices=indices, use_threads=threads
            )
        seen = 0
        while True:
            with decoding(self.path):
                batch = next(batches, None)
            if batch is None:
                break
            if batch.num_rows:
                arrays = tuple(batch.column(place) for place in places)
                yield FileBatch(arrays, batch.num_rows, first + seen)
            seen += batch.num_rows
        if seen != rows:
            raise CorruptFileError(self.path, f"{rows} rows expected, {seen} found")

    def _fetch(self, groups: list[int], leaves: list[int]) -> None:
        """Request all column chunks from an object store at once; Arrow reads them one by one."""
        if self._stored is None:
            return
        ranges = []
        for group in groups:
            for leaf in leaves:
                chunk = self.metadata.row_group(group).column(leaf)
                first = chunk_start(chunk)
                ranges.append((first, first + chunk.total_compressed_size))
        self._stored.file.fetch(ranges)

    def _reader_for(self, columns: Sequence[int]) -> Any:
        """The reader for some columns; Arrow must be given the unit to decode INT96 to."""
        schema = self._file.schema
        stamps = [
            self._leaves[each][1]
            for each in columns
            if schema.column(each).physical_type == "INT96"
        ]
        nano = [each for each in stamps if each.field_id in self._nano_ids]
        if not nano:
            return self._file
        if len(nano) < len(stamps):
            raise UnsupportedTableError(
                "INT96 columns of both microsecond and nanosecond types in one file",
                path=self.path,
            )
        return self._parquet_file("ns")

    def close(self) -> None:
        """Release the file."""
        self._file.close()
        self._stream.close()


def _consecutive(groups: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for group in groups:
        if runs and runs[-1][-1] + 1 == group:
            runs[-1].append(group)
        else:
            runs.append([group])
    return runs
