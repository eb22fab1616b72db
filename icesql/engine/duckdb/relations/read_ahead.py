"""Predict the byte ranges that DuckDB will read of a large file in an object store.

DuckDB opens one file after the other and reads each row group when it reaches it, with new requests
each time. These ranges, from the footer and the filter, are requested all at once. The prediction
affects only requests: DuckDB requests any other range itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, leaves
from icesql.iceberg.manifest.entries import ADDED, ManifestEntries, PlainMaps
from icesql.iceberg.schema import Schema
from icesql.read.formats.parquet_footer import Chunk, RowCounts
from icesql.scan.pruning.metrics_evaluator import metrics_mask

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
    may_match = _may_match(groups, counts, conditions, condition, schema)
    leaf_columns = [leaf for each in columns for leaf in counts.layout.columns.get(each, ())]
    found: list[Range] = []
    for (_, chunks), wanted in zip(groups, may_match, strict=True):
        if not wanted:
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
    groups: Sequence[tuple[int, tuple[Chunk, ...]]],
    counts: RowCounts,
    conditions: Sequence[Leaf],
    condition: Predicate,
    schema: Schema,
) -> list[bool]:
    field_ids = {
        each.term.field_id
        for each in conditions
        if (column := schema.field_by_id.get(each.term.field_id)) is not None
        and isinstance(column.type, _SAME_BYTES)
    }
    maps: dict[str, list[dict[int, bytes | int]]] = {
        "value_counts": [], "null_value_counts": [], "lower_bounds": [], "upper_bounds": [],
    }  # fmt: skip
    for _, chunks in groups:
        row: dict[str, dict[int, bytes | int]] = {name: {} for name in maps}
        for field_id in field_ids:
            chunk = _chunk(counts, chunks, field_id)
            if chunk is not None and chunk.nulls >= 0 and None not in (chunk.lower, chunk.upper):
                row["value_counts"][field_id] = chunk.values
                row["null_value_counts"][field_id] = chunk.nulls
                row["lower_bounds"][field_id] = chunk.lower or b""
                row["upper_bounds"][field_id] = chunk.upper or b""
        for name, values in maps.items():
            values.append(row[name])
    count = len(groups)
    entries = ManifestEntries(
        spec_id=0,
        status=[ADDED] * count,
        snapshot_id=[None] * count,
        sequence_number=[0] * count,
        file_sequence_number=[None] * count,
        content=[0] * count,
        path=[""] * count,
        file_format=["PARQUET"] * count,
        partition=[()] * count,
        record_count=[rows for rows, _ in groups],
        file_size_in_bytes=[0] * count,
        maps={name: PlainMaps(column) for name, column in maps.items()},
    )
    return metrics_mask(entries, condition, schema)


def _chunk(counts: RowCounts, chunks: Sequence[Chunk], field_id: int) -> Chunk | None:
    """The chunk of a top-level column that has a single leaf."""
    found = counts.layout.columns.get(field_id, ())
    return chunks[found[0]] if len(found) == 1 and found[0] < len(chunks) else None
