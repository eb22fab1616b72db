"""set_current_snapshot: set main to any snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import SnapshotNotFoundError
from icesql.modify.procedures.procedure import MOVED, TABLE, Parameter, Plan, procedure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icesql.iceberg.metadata.changes.updates import Update
    from icesql.iceberg.metadata.table_metadata import TableMetadata
    from icesql.modify.procedures.call import Call


@procedure(
    "sets main to any snapshot of the table, or to the head of a branch or tag",
    TABLE,
    Parameter("snapshot_id", "bigint"),
    Parameter("ref", "string"),
    rows=MOVED,
)
def set_current_snapshot(call: Call) -> Plan:
    """Set ``main`` to any snapshot, by its id or by a ref."""
    from icesql.commit import refs
    from icesql.modify.procedures.refs import moved

    wanted, ref = call["snapshot_id"], call["ref"]
    if (wanted is None) == (ref is None):
        raise call.wrong("snapshot_id", "or ref says the snapshot: give one of them")

    def updates(base: TableMetadata) -> Sequence[Update]:
        if ref is None:
            return refs.set_current_snapshot(wanted)(base)
        if ref not in base.refs:
            raise SnapshotNotFoundError(
                f"branch or tag {ref!r}", table=base.location, similar=base.refs
            )
        return refs.set_current_snapshot(base.refs[ref].snapshot_id)(base)

    return moved(call, updates)
