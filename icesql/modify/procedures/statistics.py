"""compute_partition_stats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from icesql.errors import SnapshotNotFoundError
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.modify.procedures.call import Call


def compute_partition_stats(call: Call) -> Plan:
    """The statistics file of a snapshot's partitions."""
    from icesql.maintain.statistics.partitions import compute_partition_statistics, partition_rows

    catalog, table = call.target()
    wanted: int | None = call["snapshot_id"]
    snapshot: Snapshot | None = (
        table.metadata.current_snapshot if wanted is None else table.metadata.snapshot(wanted)
    )
    if snapshot is None and wanted is not None:
        raise SnapshotNotFoundError(f"snapshot {wanted}", table=table.name)
    found = snapshot
    if found is None:
        return Plan((), lambda: Rows([]), "the table has no snapshot yet")

    def run() -> Rows:
        return Rows([(compute_partition_statistics(catalog, table, found, call.work.query),)])

    if not call.explain:
        return Plan((), run)
    count = len(partition_rows(table, found, call.work.query))
    reason = f"of snapshot {found.snapshot_id}, by its manifests alone"
    return Plan([Step("write", "partition statistics", "(new)", reason, None, count)], run)


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "compute_partition_stats": compute_partition_stats
}
