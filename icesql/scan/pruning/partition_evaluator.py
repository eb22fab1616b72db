"""Decide by partition values which manifests and entries satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Predicate, evaluate, matches
from icesql.iceberg.expressions.render import render_partition_leaf, render_partition_value
from icesql.iceberg.manifest.entries import FilterColumns
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.partitioning import partition_types as partition_types_of
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, UnknownType, is_floating
from icesql.scan.pruning.column_summary import ColumnSummary, decoded_bounds, why_none, why_not


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


# ------------------------------------------------------------------ manifests
# Decide from the field summaries of a manifest list whether a manifest can hold matching files.


def manifest_may_match(
    manifest: ManifestFile,
    partition_predicate: Predicate,
    partition_types: Mapping[int, IcebergType],
) -> bool:
    """False only if no file of ``manifest`` has a partition satisfying ``partition_predicate``.

    ``partition_types`` gives the result type of each field of the manifest's spec by partition
    field id, in the order of the spec. Missing summaries count as "may match".
    Source: Iceberg spec, "Scan Planning"; Java ``ManifestEvaluator``.
    """
    return _why_not(manifest, partition_predicate, partition_types, lambda _: "") is None


def explain_manifest(
    manifest: ManifestFile, partition_predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> tuple[str, str] | None:
    """The part of the predicate that no file satisfies and the bound that decided, as text.

    None when files may match. ``spec`` is the manifest's, ``schema`` holds its sources.
    """
    by_id = {each.field_id: each for each in spec.fields}
    types = dict(zip(by_id, partition_types_of(spec, schema), strict=False))
    return _why_not(
        manifest,
        partition_predicate,
        types,
        lambda leaf: render_partition_leaf(leaf, spec, schema),
        lambda field_id, value: render_partition_value(by_id[field_id], value, schema=schema),
    )


def _why_not(
    manifest: ManifestFile,
    partition_predicate: Predicate,
    partition_types: Mapping[int, IcebergType],
    text_of: Callable[[Leaf], str],
    show: Callable[[int, Any], str] | None = None,
) -> tuple[str, str] | None:
    summaries = manifest.partitions
    if summaries is None or len(summaries) != len(partition_types):
        return None
    by_id = {
        field_id: (summary, value_type)
        for summary, (field_id, value_type) in zip(summaries, partition_types.items(), strict=True)
    }

    def reason_of(leaf: Leaf) -> str | None:
        found = by_id.get(leaf.term.field_id)
        if found is None or isinstance(found[1], UnknownType):
            return None
        column = summarize(*found)
        if show is not None:
            column = replace(column, show=partial(show, leaf.term.field_id))
        return why_none(leaf, column)

    return why_not(partition_predicate, reason_of, text_of)


def summarize(summary: FieldSummary, value_type: IcebergType) -> ColumnSummary:
    """The column summary of one field by its field summary."""
    floating = is_floating(value_type)
    lower, upper = decoded_bounds(value_type, summary.lower_bound, summary.upper_bound)
    bare = summary.lower_bound is None and summary.upper_bound is None
    # contains_nan may be unknown: only a known False rules NaN out.
    no_nans = not floating or summary.contains_nan is False
    has_nans = floating and summary.contains_nan is True
    all_null = bare and summary.contains_null and no_nans
    return ColumnSummary(
        value_type=value_type,
        lower=lower,
        upper=upper,
        no_nulls=not summary.contains_null,
        all_null=all_null,
        no_nans=no_nans,
        # Without bounds there are only nulls and NaN, but one of them must be there.
        valueless=bare and (summary.contains_null or has_nans),
        nulls_text="all values are NULL" if all_null else "all values are NULL or NaN",
    )
