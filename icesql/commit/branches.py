"""The id, the branch and the engine name of a new snapshot."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Container
from typing import Final

from icesql.errors import CommitConflictError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata


class Staged(Frozen):
    """No branch: the snapshot's parent is the head of main; its ``wap_id`` is for publishing it."""

    wap_id: str


Branch = str | Staged


def branch_head(metadata: TableMetadata, branch: Branch) -> tuple[Snapshot | None, Snapshot | None]:
    """The head of a branch, and the parent of a new snapshot of it.

    They differ for a new branch, which has no head: the parent is main's head, and its totals
    start at zero. Raises CommitConflictError if ``branch`` is a tag.
    """
    if isinstance(branch, Staged):
        return metadata.current_snapshot, metadata.current_snapshot
    ref = metadata.refs.get(branch)
    if ref is not None and ref.kind == "tag":
        raise CommitConflictError(f"{branch!r} is a tag; only a branch takes new snapshots")
    if ref is not None:
        head = metadata.snapshots[ref.snapshot_id]
        return head, head
    return None, metadata.current_snapshot if branch != MAIN else None


def start_of(metadata: TableMetadata, branch: Branch) -> int | None:
    """The snapshot whose rows a statement on a branch sees; None for an empty table."""
    _, found = branch_head(metadata, branch)
    return None if found is None else found.snapshot_id


def moved_ref(metadata: TableMetadata, branch: str, snapshot_id: int) -> SnapshotRef:
    """A branch at another snapshot, with its present retention settings."""
    from msgspec.structs import replace

    known = metadata.refs.get(branch)
    return SnapshotRef(snapshot_id) if known is None else replace(known, snapshot_id=snapshot_id)


def engine_summary() -> dict[str, str]:
    """The fields of a snapshot's summary that name its writer."""
    # ``icesql`` itself is above this package, which may not import it.
    return {"engine-name": "icesql", "engine-version": sys.modules["icesql"].__version__}


# Ids of new snapshots: random, positive, 63 bits.

_LAST_63: Final = (1 << 63) - 1


def new_snapshot_id(taken: Container[int]) -> int:
    """An id that is not among those ``taken``."""
    while True:
        number = uuid.uuid4().int
        found = ((number >> 64) ^ number) & _LAST_63
        if found and found not in taken:
            return found
