"""Decide from column bounds and counts in which files every row satisfies a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.iceberg.expressions.predicate import (
    ALWAYS_TRUE,
    NEGATED,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
    negated,
)
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.scan.pruning.metrics_evaluator import metrics_mask

# NaN satisfies none of these, and no opposite of them either.
_FALSE_FOR_NAN: Final = (
    Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ, Operation.EQ, Operation.IN,
)  # fmt: skip


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
    indices = range(entries.count) if among is None else among
    failing = metrics_mask(entries, _failing(predicate, schema), schema, indices)
    mask = [False] * entries.count
    for index in indices:
        mask[index] = not failing[index]
    return mask


def _failing(predicate: Predicate, schema: Schema) -> Predicate:
    """A predicate that holds for every row that does not satisfy ``predicate``."""
    match predicate:
        case And(left, right):
            return _failing(left, schema) | _failing(right, schema)
        case Or(left, right):
            return _failing(left, schema) & _failing(right, schema)
        case Leaf(operation, term, literal):
            if term.field_id in schema.parent_by_id:
                return ALWAYS_TRUE
            found: Predicate = Leaf(NEGATED[operation], term, literal)
            if operation not in (Operation.IS_NULL, Operation.NOT_NULL):
                found = found | Leaf(Operation.IS_NULL, term)
            if operation in _FALSE_FOR_NAN:
                found = found | Leaf(Operation.IS_NAN, term)
            return found
        case _:
            return negated(predicate)
