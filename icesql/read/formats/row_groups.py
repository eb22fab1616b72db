"""Which row groups of a Parquet file a range holds, and which cannot hold a matching row.

Errs towards reading: values that the footer does not determine "may match". NaN is in no minimum or
maximum, and no comparison is true for it. Source: Iceberg Java, ParquetMetricsRowGroupFilter.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
from msgspec import Struct

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, And, Leaf, Operation, Or, Predicate
from icesql.iceberg.schema import Schema
from icesql.read.formats.file_fields import FileField, is_list, walk

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NANOS_PER_DAY = 86_400_000_000_000


class ColumnFacts(Struct, frozen=True):
    """Facts of a footer about one column in one row group; None is unknown.

    ``lower`` and ``upper`` are in the internal form of the table's type, strings as UTF-8 bytes.
    """

    rows: int
    nulls: int | None
    lower: Any
    upper: Any


class RowGroups:
    """The row groups of one file."""

    def __init__(
        self,
        metadata: Any,
        fields: Sequence[FileField],
        leaves: Sequence[tuple[int, ...]],
        schema: Schema,
    ) -> None:
        self._metadata, self._fields, self._leaves = metadata, fields, leaves
        self._schema = schema

    @cached_property
    def row_counts(self) -> list[int]:
        """Rows of each row group."""
        metadata = self._metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def midpoint(self, group: int) -> int:
        """The byte that decides to which split a row group belongs."""
        row_group = self._metadata.row_group(group)
        first = row_group.column(0)
        start = first.data_page_offset
        if first.has_dictionary_page and first.dictionary_page_offset:
            start = min(start, first.dictionary_page_offset)
        size = sum(
            row_group.column(index).total_compressed_size for index in range(row_group.num_columns)
        )
        return int(start + size // 2)

    @cached_property
    def _leaf_by_id(self) -> dict[int, tuple[FileField, int]]:
        """Field id → leaf and Parquet column; leaves inside lists and maps are left out."""
        found: dict[int, tuple[FileField, int]] = {}

        def visit(each: FileField, column: int) -> int:
            if not each.children:
                if each.field_id is not None:
                    found[each.field_id] = (each, column)
                return column + 1
            if is_list(each.type) or pa.types.is_map(each.type):
                return column + sum(1 for child in walk(each.children) if not child.children)
            for child in each.children:
                column = visit(child, column)
            return column

        for each in self._fields:
            visit(each, self._leaves[each.index][0])
        return found

    def may_match(self, group: int, predicate: Predicate) -> bool:
        """False only if no row of the row group can satisfy ``predicate``."""
        match predicate:
            case And(left, right):
                return self.may_match(group, left) and self.may_match(group, right)
            case Or(left, right):
                return self.may_match(group, left) or self.may_match(group, right)
            case Leaf():
                return self._leaf_may_match(group, predicate)
            case _:
                return predicate is not ALWAYS_FALSE

    def _leaf_may_match(self, group: int, leaf: Leaf) -> bool:
        known = self._leaf_by_id.get(leaf.term.field_id)
        # A column that the file lacks is a constant: the rows are filtered by it exactly.
        if known is None or leaf.term.transform != "identity":
            return True
        file_field, column = known
        table_field = self._schema.field_by_id.get(leaf.term.field_id)
        if table_field is None:
            return True
        facts = self._facts(group, column, file_field.type, table_field.type)
        return facts is None or _may_match(leaf, facts)

    def _facts(
        self, group: int, column: int, stored: pa.DataType, type: t.IcebergType
    ) -> ColumnFacts | None:
        chunk = self._metadata.row_group(group).column(column)
        statistics = chunk.statistics
        if statistics is None:
            return None
        nulls = statistics.null_count if statistics.has_null_count else None
        lower = upper = None
        if statistics.has_min_max:
            lower = _internal(statistics.min_raw, stored, type)
            upper = _internal(statistics.max_raw, stored, type)
        return ColumnFacts(self.row_counts[group], nulls, lower, upper)


def _may_match(leaf: Leaf, facts: ColumnFacts) -> bool:
    if leaf.operation is Operation.IS_NULL:
        return facts.nulls != 0
    if facts.nulls is not None and facts.nulls == facts.rows:
        return False
    match leaf.operation:
        case Operation.IN:
            return any(_in_range(value, facts, Operation.EQ) for value in leaf.literal)
        case (
            Operation.LT
            | Operation.LT_EQ
            | Operation.GT
            | Operation.GT_EQ
            | Operation.EQ
            | Operation.STARTS_WITH
        ):
            return _in_range(leaf.literal, facts, leaf.operation)
        case _:
            return True


def _in_range(literal: Any, facts: ColumnFacts, operation: Operation) -> bool:
    lower, upper = facts.lower, facts.upper
    # NaN where a number should be, or bounds in disorder: the writer's bounds mean nothing.
    if lower is None or upper is None or not lower <= upper:
        return True
    value = literal.encode() if isinstance(literal, str) else literal
    match operation:
        case Operation.LT:
            return bool(lower < value)
        case Operation.LT_EQ:
            return bool(lower <= value)
        case Operation.GT:
            return bool(upper > value)
        case Operation.GT_EQ:
            return bool(upper >= value)
        case Operation.EQ:
            return bool(lower <= value <= upper)
        case _:
            size = len(value)
            return bool(lower[:size] <= value <= upper[:size])


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
        case (
            t.TimestampType()
            | t.TimestamptzType()
            | t.TimestampNanoType()
            | t.TimestamptzNanoType()
        ):
            nano = isinstance(type, t.TimestampNanoType | t.TimestamptzNanoType)
            return _timestamp(raw, stored, nano)
        case t.DecimalType() if pa.types.is_decimal(stored):
            return _decimal(raw, stored.scale)
        case t.StringType() | t.BinaryType() | t.FixedType() | t.UUIDType() if isinstance(
            raw, bytes
        ):
            return raw
        case _:
            return None


def _timestamp(raw: Any, stored: pa.DataType, nano: bool) -> int | None:
    if not isinstance(raw, int):
        return None
    if pa.types.is_date32(stored):
        value = raw * _NANOS_PER_DAY
    elif pa.types.is_timestamp(stored):
        value = raw * _NANOS[stored.unit]
    else:
        return None
    return value if nano else value // 1000


def _decimal(raw: Any, scale: int) -> Decimal | None:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    # Built from digits: arithmetic would round to the context's 28 digits.
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))
