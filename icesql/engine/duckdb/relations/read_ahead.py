"""Predict the byte ranges that DuckDB will read of a large file in an object store.

DuckDB opens one file after the other and reads each row group when it reaches it, with new requests
each time. These ranges, from the footer and the filter, are requested all at once. The prediction
affects only requests: DuckDB requests any other range itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, holds, leaves
from icesql.iceberg.schema import Schema
from icesql.read.formats.parquet_footer import Chunk, RowCounts
from icesql.scan.pruning.column_summary import ColumnSummary, decoded_bounds, why_none

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
