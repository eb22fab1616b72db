"""ancestors_of: the snapshots before a snapshot, in its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import SNAPSHOT, TABLE, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "the snapshots that led to one, the latest first",
    TABLE,
    SNAPSHOT,
    rows="snapshot_id bigint, timestamp bigint",
    changes=False,
)
def ancestors_of(call: Call) -> Plan:
    """The ancestors of a snapshot, latest first."""
    _, table = call.target()
    found = [*table.metadata.ancestry(call.snapshot_of(table))]
    steps = [
        Step("read", "snapshot", str(each.snapshot_id), each.operation or "") for each in found
    ]
    return Plan(steps, lambda: Rows([(each.snapshot_id, each.timestamp_ms) for each in found]))
