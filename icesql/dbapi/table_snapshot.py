"""TableSnapshot: the state of a table that a statement read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from icesql.frozen import Frozen

if TYPE_CHECKING:
    from icesql.scan.plan import TableScan

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TableSnapshot(Frozen):
    """A snapshot that a statement read; ``id`` is None for a table without snapshots.

    ``ref`` is the branch or tag by which the statement named it, None for an id or a time.
    ``committed_at`` is in UTC, None without a snapshot and for times that datetime cannot
    represent.
    """

    id: int | None
    ref: str | None
    committed_at: datetime | None


def snapshots_of(scans: Iterable[TableScan]) -> dict[str, tuple[TableSnapshot, ...]]:
    """The snapshots of each table by its name, in the order of the statement, each once."""
    found: dict[str, tuple[TableSnapshot, ...]] = {}
    for scan in scans:
        if scan.rows is not None:  # rows of a statement such as SHOW, not of a table
            continue
        snapshot = scan.snapshot
        if snapshot is None:
            read = TableSnapshot(None, scan.ref, None)
        else:
            read = TableSnapshot(snapshot.snapshot_id, scan.ref, _instant(snapshot.timestamp_ms))
        known = found.get(scan.table.name, ())
        if read not in known:
            found[scan.table.name] = (*known, read)
    return found


def _instant(milliseconds: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
