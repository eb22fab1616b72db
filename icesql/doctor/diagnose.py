"""The doctor's round: facts in, findings out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.doctor import bounds, files, metadata
from icesql.doctor.facts import Ask, facts_of
from icesql.doctor.finding import Diagnosis
from icesql.doctor.mending import examine_history
from icesql.sql.table_name import name_text

_EXAMINATIONS: Final = (
    files.small_files, files.delete_files, bounds.overlap, bounds.missing_bounds,
    bounds.missing_nan_counts, files.skew, metadata.manifests, metadata.snapshots,
    metadata.metadata_files, metadata.metadata_size, metadata.orphans,
)  # fmt: skip
_WEIGHTS: Final = ("high", "medium", "low")


def diagnose(parts: Sequence[str], ask: Ask, table: Table, query: QueryContext) -> Diagnosis:
    """What ails the table of a name, the heaviest first; from metadata alone, nothing is changed.

    Raises errors of stores, and CorruptFileError.
    """
    history = examine_history(parts, table, query)
    found = [*history.findings]
    if history.is_readable:
        facts = facts_of(parts, table, query, history.last_good)
        found += [finding for examine in _EXAMINATIONS for finding in examine(facts, ask)]
    found.sort(key=lambda each: _WEIGHTS.index(each.weight))
    return Diagnosis(name_text(parts), table.metadata.current_snapshot_id, tuple(found))
