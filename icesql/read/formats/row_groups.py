"""Which row groups of a Parquet file a range holds, and which cannot hold a matching row.

Errs towards reading: values that the footer does not determine "may match". NaN is in no minimum or
maximum, and no comparison is true for it. Source: Iceberg Java, ParquetMetricsRowGroupFilter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.bounds import NANOS_PER_DAY, decode_bound
from icesql.iceberg.decimals import scaled
from icesql.iceberg.expressions.predicate import Leaf, Predicate, holds
from icesql.iceberg.schema import Schema
from icesql.read.formats.file_fields import FileField
from icesql.scan.pruning.column_summary import ColumnSummary, why_none

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
