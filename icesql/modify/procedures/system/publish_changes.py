"""publish_changes: apply the change of a staged snapshot to main."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import ProgrammingError, SnapshotNotFoundError
from icesql.modify.procedures.procedure import PICKED, TABLE, Plan, procedure, required

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "brings the snapshot that was staged with a wap.id to main",
    TABLE,
    required("wap_id", "string"),
    rows=PICKED,
)
def publish_changes(call: Call) -> Plan:
    """Apply the change of the snapshot that was staged with a wap.id to ``main``.

    Raises ProgrammingError if several have the id, as Java does from 1.11 on: only one of them can
    be published under it, and the rows of the others would be lost.
    """
    from icesql.modify.procedures.refs import picked_snapshot

    catalog, table = call.target()
    wanted = call["wap_id"]
    snapshots = table.metadata.snapshots.values()
    staged = [each for each in snapshots if each.summary.get("wap.id") == wanted]
    if not staged:
        raise SnapshotNotFoundError(f"a snapshot with wap.id {wanted!r}", table=table.name)
    if len(staged) > 1:
        ids = ", ".join(str(each.snapshot_id) for each in staged)
        raise ProgrammingError(
            f"{len(staged)} snapshots have wap.id {wanted!r}: {ids}; CALL "
            "system.cherrypick_snapshot publishes one, and FOR VERSION AS OF reads the rows of "
            "the others"
        )
    return picked_snapshot(call, catalog, table, staged[0])
