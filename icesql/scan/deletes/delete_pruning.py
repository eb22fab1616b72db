"""Which delete files may delete rows that satisfy a row filter."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate, keep_columns
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.scan.pruning.metrics_evaluator import metrics_mask


def group_by_relaxed_filter(
    entries: ManifestEntries, indexes: Sequence[int], row_filter: Predicate
) -> dict[Predicate, list[int]]:
    """Group the delete files by the part of ``row_filter`` that their deleted rows must satisfy.

    For an equality delete that is the filter on its equality columns, relaxed to true elsewhere:
    a deleted row equals its key there and nowhere else, whatever other columns the file
    stores. For position deletes that part is true.
    """
    equality_ids = entries.rare.get("equality_ids", {})
    relaxed: dict[tuple[int, ...], Predicate] = {}
    groups: dict[Predicate, list[int]] = {}
    for index in indexes:
        predicate = ALWAYS_TRUE
        if entries.content[index] == FileContent.EQUALITY_DELETES and index in equality_ids:
            ids = equality_ids[index]
            if ids not in relaxed:
                relaxed[ids] = keep_columns(row_filter, frozenset(ids))
            predicate = relaxed[ids]
        groups.setdefault(predicate, []).append(index)
    return groups


def may_delete_matching_rows(
    entries: ManifestEntries, indexes: Sequence[int], row_filter: Predicate, schema: Schema
) -> list[int]:
    """Those of ``indexes`` that may delete a row satisfying ``row_filter``, in order."""
    kept: list[int] = []
    for predicate, members in group_by_relaxed_filter(entries, indexes, row_filter).items():
        if predicate is ALWAYS_TRUE:
            kept += members
        else:
            mask = metrics_mask(entries, predicate, schema, members)
            kept += [index for index in members if mask[index]]
    kept.sort()
    return kept
