"""Whether snapshots that a change adds are, or were, part of a table, by its metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from icesql.iceberg.metadata.changes.updates import AddSnapshot, Update
from icesql.iceberg.metadata.table_metadata import TableMetadata

_SOURCE: Final = "source-snapshot-id"


def snapshot_ids(updates: Iterable[Update]) -> tuple[int, ...]:
    """The ids of the snapshots that updates add."""
    return tuple(each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshot))


def has_snapshots(now: TableMetadata, base: TableMetadata, ids: Sequence[int]) -> bool:
    """Whether a table has, or had since ``base``, one of these snapshots.

    One that expired is known by what was made of it.
    """
    if any(each in now.snapshots for each in ids):
        return True
    if any(each.snapshot_id in ids for each in now.snapshot_log):
        return True
    texts = {str(each) for each in ids}
    return any(
        each.parent_snapshot_id in ids or each.summary.get(_SOURCE) in texts
        for key, each in now.snapshots.items()
        if key not in base.snapshots
    )


def has_lost_snapshots(base: TableMetadata, now: TableMetadata) -> bool:
    """Whether a snapshot may have come since ``base`` and be gone again, with an id nobody knows.

    Sequence numbers count snapshots; in format version 1 each names its parent.
    """
    came = [each for key, each in now.snapshots.items() if key not in base.snapshots]
    if base.format_version > 1:
        numbers = {each.sequence_number for each in came}
        last = now.last_sequence_number
        return any(each not in numbers for each in range(base.last_sequence_number + 1, last + 1))
    known = {*base.snapshots, *now.snapshots, *(() if base.snapshots else (None,))}
    return any(each.parent_snapshot_id not in known for each in came)
