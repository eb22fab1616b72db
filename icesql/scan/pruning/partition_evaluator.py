"""Decide for each entry of a manifest whether its partition satisfies a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icesql.iceberg.expressions.evaluate import evaluate, matches
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Predicate
from icesql.iceberg.expressions.render import render_partition_leaf, render_partition_value
from icesql.iceberg.manifest.entries import FilterColumns
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.scan.pruning.column_summary import why_not


def partition_mask(
    entries: FilterColumns,
    partition_predicate: Predicate,
    spec: PartitionSpec,
    among: Sequence[int] | None = None,
) -> list[bool]:
    """Whether the partition of each entry satisfies a predicate that was projected by ``spec``.

    False for entries outside ``among``, which is all of them when None.
    """
    if partition_predicate is ALWAYS_TRUE and among is None:
        return [True] * entries.count
    verdicts: dict[tuple[Any, ...], bool] = {}
    mask = [False] * entries.count
    positions = {each.field_id: position for position, each in enumerate(spec.fields)}
    partitions = entries.partition
    for index in range(entries.count) if among is None else among:
        partition = partitions[index]
        verdict = verdicts.get(partition)
        if verdict is None:
            values = {field_id: partition[at] for field_id, at in positions.items()}
            verdict = verdicts[partition] = evaluate(partition_predicate, values.__getitem__)
        mask[index] = verdict
    return mask


def explain_partition(
    predicate: Predicate, spec: PartitionSpec, partition: tuple[Any, ...], schema: Schema
) -> tuple[str, str] | None:
    """The part of ``predicate`` that ``partition`` fails and the value that decided.

    None when the partition satisfies it.
    """
    by_id = {
        each.field_id: (each, value) for each, value in zip(spec.fields, partition, strict=True)
    }

    def reason_of(leaf: Leaf) -> str | None:
        field, value = by_id[leaf.term.field_id]
        if matches(leaf.operation, leaf.literal, value):
            return None
        return f"partition value is {render_partition_value(field, value, schema=schema)}"

    return why_not(predicate, reason_of, lambda leaf: render_partition_leaf(leaf, spec, schema))
