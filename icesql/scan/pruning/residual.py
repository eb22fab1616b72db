"""Residuals: the rest of a row filter once the partition of a file is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Predicate,
    leaves,
    replace_leaves,
)
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema


class ResidualEvaluator:
    """The residuals of one predicate for the partitions of one spec; projects each leaf once.

    On the rows of a partition the residual is true exactly where the predicate is. NULL partition
    values come from NULL source values, which satisfy IS NULL alone.

    >>> for value in (10, 20, 30):
    ...     left_over("i < 25", "truncate[10]", "i", value)
    true
    i < 25
    false

    ``is_constant``: it is ``predicate`` in all partitions. Source: Java ``ResidualEvaluator``.
    """

    def __init__(self, predicate: Predicate, spec: PartitionSpec, schema: Schema) -> None:
        self.predicate = predicate
        self._positions = {each.field_id: at for at, each in enumerate(spec.fields)}
        self._projections = _projections(predicate, spec, schema)
        self.is_constant = all(
            may is ALWAYS_TRUE and must is ALWAYS_FALSE for may, must in self._projections.values()
        )
        self._known: dict[tuple[Any, ...], Predicate] = {}

    def residual(self, partition: tuple[Any, ...]) -> Predicate:
        """The simplified residual for one partition tuple."""
        if self.is_constant:
            return self.predicate
        found = self._known.get(partition)
        if found is None:
            # If a partition value is unknown, no row is known to match or to fail.
            unknown = UNSTORED in partition
            found = self.predicate
            if not unknown:
                found = replace_leaves(found, lambda leaf: self._reduced(leaf, partition))
            self._known[partition] = found
        return found

    def _reduced(self, leaf: Leaf, partition: tuple[Any, ...]) -> Predicate:
        from icesql.iceberg.expressions.evaluate import evaluate

        may, must = self._projections[leaf]

        def value_of(field_id: int) -> Any:
            return partition[self._positions[field_id]]

        if not evaluate(may, value_of):
            return ALWAYS_FALSE
        return ALWAYS_TRUE if evaluate(must, value_of) else leaf


def _projections(
    predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> Mapping[Leaf, tuple[Predicate, Predicate]]:
    found = list(leaves(predicate))
    if not found or not spec.fields:
        return dict.fromkeys(found, (ALWAYS_TRUE, ALWAYS_FALSE))
    from icesql.iceberg.expressions.projection import inclusive_leaf, strict_leaf

    return {
        leaf: (inclusive_leaf(leaf, spec, schema), strict_leaf(leaf, spec, schema))
        for leaf in found
    }
