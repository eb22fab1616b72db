"""publish_changes: apply the change of a staged snapshot to main."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import SnapshotNotFoundError
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
    """Apply the change of the snapshot that was staged with a wap.id to ``main``."""
    from icesql.modify.procedures.refs import picked_snapshot

    catalog, table = call.target()
    wanted = call["wap_id"]
    for each in table.metadata.snapshots.values():
        if each.summary.get("wap.id") == wanted:
            return picked_snapshot(call, catalog, table, each)
    raise SnapshotNotFoundError(f"a snapshot with wap.id {wanted!r}", table=table.name)
