"""rollback_to_timestamp: set main back to its snapshot at an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import MOVED, TABLE, Plan, procedure, required

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "sets main back to its latest snapshot before an instant",
    TABLE,
    required("timestamp", "timestamp"),
    rows=MOVED,
)
def rollback_to_timestamp(call: Call) -> Plan:
    """Set ``main`` back to its last snapshot before an instant."""
    from icesql.commit import refs
    from icesql.modify.procedures.refs import moved

    return moved(call, refs.rollback_to_timestamp(call["timestamp"]))
