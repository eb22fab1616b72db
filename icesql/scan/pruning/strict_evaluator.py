"""Decide from column bounds and counts in which files every row satisfies a predicate."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, And, Leaf, Or, Predicate
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.scan.pruning.column_summary import all_match
from icesql.scan.pruning.metrics_evaluator import ColumnStatistics


def strict_mask(
    entries: ManifestEntries,
    predicate: Predicate,
    schema: Schema,
    among: Sequence[int] | None = None,
) -> list[bool]:
    """Per entry, True only if every row of its file satisfies ``predicate``.

    True rests on counts that are known: a missing null or NaN count is not zero. Columns nested
    in structs, lists and maps never prove anything; a file without rows always matches, one of
    unknown row count (below 0) never. Entries outside ``among`` (None: all) are False.
    Source: Java ``StrictMetricsEvaluator``, with SQL's rules for NULL.
    """
    mask = [False] * entries.count
    columns = ColumnStatistics(entries, schema)

    def holds(node: Predicate, index: int) -> bool:
        match node:
            case Leaf():
                if node.term.field_id in schema.parent_by_id:
                    return False
                column = columns.summary(node, index)
                return column is not None and all_match(node, column)
            case And(left, right):
                return holds(left, index) and holds(right, index)
            case Or(left, right):
                return holds(left, index) or holds(right, index)
            case _:
                return node is ALWAYS_TRUE

    for index in range(entries.count) if among is None else among:
        rows = entries.record_count[index]
        mask[index] = rows == 0 or (rows > 0 and holds(predicate, index))
    return mask
