"""The doctor's round: facts in, findings out."""

from __future__ import annotations

from collections.abc import Callable

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.doctor import files, metadata
from icesql.doctor.facts import Ask, facts_of
from icesql.doctor.finding import Diagnosis

_EXAMINATIONS = (
    files.small_files, files.delete_files, files.overlap, files.missing_bounds, files.skew,
    metadata.manifests, metadata.snapshots, metadata.metadata_log, metadata.orphans,
)  # fmt: skip
_WEIGHTS = ("high", "medium", "low")


def diagnose(
    table: str, ask: Ask, open_table: Callable[[], Table], query: QueryContext
) -> Diagnosis:
    """What ails ``table``, the heaviest first; from metadata alone, nothing is changed.

    Raises what the statements raise: TableNotFoundError and errors of catalogs and stores.
    """
    facts = facts_of(table, ask, open_table, query)
    found = [finding for examine in _EXAMINATIONS for finding in examine(facts, ask)]
    found.sort(key=lambda each: _WEIGHTS.index(each.weight))
    return Diagnosis(table, facts.snapshot_id, tuple(found))
