"""cherrypick_snapshot: apply the change of a snapshot to main."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import PICKED, TABLE, Plan, procedure, required

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "brings the change of one snapshot to main",
    TABLE,
    required("snapshot_id", "bigint"),
    rows=PICKED,
)
def cherrypick_snapshot(call: Call) -> Plan:
    """Apply the change of a snapshot to ``main``."""
    from icesql.modify.procedures.refs import picked_snapshot

    catalog, table = call.target()
    found = call.snapshot_of(table)
    assert found is not None
    return picked_snapshot(call, catalog, table, found)
