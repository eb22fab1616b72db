"""Decide which snapshots and refs of a table expire.

Source: Java ``RemoveSnapshots``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from icesql.errors import ProgrammingError, SnapshotNotFoundError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata

MAX_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_KEPT: Final = "history.expire.min-snapshots-to-keep"
_REF_AGE: Final = "history.expire.max-ref-age-ms"
_FIVE_DAYS: Final = 432_000_000


class Expiry(Frozen):
    """The refs and snapshots to remove, in the order of the table's metadata."""

    refs: tuple[str, ...]
    snapshot_ids: tuple[int, ...]


def plan_expiry(
    metadata: TableMetadata,
    *,
    now_ms: int,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Collection[int] = (),
) -> Expiry:
    """Plan an expiry at ``now_ms`` (since 1970): by age, or only of the named snapshots.

    Without ``older_than_ms`` and ``retain_last`` the table's properties decide, by default five
    days and one snapshot are kept. The head of each ref is kept, unless the ref is older than its
    maximum age; a branch may have its own minimum number and maximum age of snapshots.

    Raises ProgrammingError for a named snapshot that is the head of a ref, SnapshotNotFoundError.
    """
    if retain_last is not None and retain_last < 1:
        raise ProgrammingError(f"retain_last is {retain_last}; at least one snapshot is kept")
    # The head of a ref is kept even for 0.
    least = (
        number_property(metadata.properties, MIN_KEPT, 1) if retain_last is None else retain_last
    )
    kept = {name: ref for name, ref in metadata.refs.items() if _lives(metadata, name, ref, now_ms)}
    gone = tuple(name for name in metadata.refs if name not in kept)
    heads = {ref.snapshot_id: name for name, ref in kept.items()}
    if snapshot_ids:
        for each in snapshot_ids:
            if metadata.snapshot(each) is None:
                raise SnapshotNotFoundError(f"snapshot {each}", table=metadata.location)
            if each in heads:
                raise ProgrammingError(f"snapshot {each} is the head of {heads[each]!r} and stays")
        return Expiry((), tuple(each for each in metadata.snapshots if each in {*snapshot_ids}))
    if older_than_ms is None:
        older_than_ms = now_ms - number_property(metadata.properties, MAX_AGE, _FIVE_DAYS)
    retained = {*heads}
    # The whole histories of branches.
    reachable = {ref.snapshot_id for ref in kept.values() if ref.kind == "tag"}
    for ref in kept.values():
        if ref.kind != "branch":
            continue
        count, age = ref.min_snapshots_to_keep or least, ref.max_snapshot_age_ms
        oldest = older_than_ms if age is None else now_ms - age
        keeps = True
        for number, snapshot in enumerate(metadata.ancestry(metadata.snapshot(ref.snapshot_id))):
            reachable.add(snapshot.snapshot_id)
            keeps = keeps and (number < count or snapshot.timestamp_ms >= oldest)
            if keeps:
                retained.add(snapshot.snapshot_id)
    for snapshot in metadata.snapshots.values():
        if snapshot.snapshot_id not in reachable and snapshot.timestamp_ms >= older_than_ms:
            retained.add(snapshot.snapshot_id)
    return Expiry(gone, tuple(each for each in metadata.snapshots if each not in retained))


def _lives(metadata: TableMetadata, name: str, ref: SnapshotRef, now_ms: int) -> bool:
    most = ref.max_ref_age_ms
    if most is None:
        most = number_property(metadata.properties, _REF_AGE, -1)
    if name == MAIN or most < 0:
        return True
    snapshot = metadata.snapshot(ref.snapshot_id)
    return snapshot is not None and now_ms - snapshot.timestamp_ms <= most


def check_ages(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property of expiry that is not an integer from 0 on."""
    for name in (MAX_AGE, MIN_KEPT, _REF_AGE):
        number_property(properties, name, 0)
