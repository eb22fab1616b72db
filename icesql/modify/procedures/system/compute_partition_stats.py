"""compute_partition_stats: write the partition statistics file of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import SNAPSHOT, TABLE, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "writes the statistics of a snapshot's partitions",
    TABLE,
    SNAPSHOT,
    rows="partition_statistics_file varchar",
)
def compute_partition_stats(call: Call) -> Plan:
    """Write the statistics file of a snapshot's partitions."""
    from icesql.maintain.statistics_files import compute_partition_statistics, partition_rows

    catalog, table = call.target()
    found = call.snapshot_of(table)
    if found is None:
        return Plan((), lambda: Rows([]), "the table has no snapshot yet")

    def run() -> Rows:
        return Rows([(compute_partition_statistics(catalog, table, found, call.query),)])

    if not call.explain:
        return Plan((), run)
    count = len(partition_rows(table, found, call.query))
    reason = f"of snapshot {found.snapshot_id}, by its manifests alone"
    return Plan([Step("write", "partition statistics", "(new)", reason, None, count)], run)
